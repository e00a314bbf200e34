/* Field values. */
#include "scripted.h"

typedef union { double real; unsigned word; ull longword; } Bits;
typedef struct { unsigned id, scope; long long at, latency; unsigned type; Return code; Bits value; } Field;
static struct { int gpu; Field field; } fields[MOST];
static int field_count;
static unsigned field_limit, field_batch;

void sc_field(int gpu, unsigned id, unsigned scope, unsigned type, Return code, ull bits) {
    int i;
    for (i = 0; i < field_count; i++)
        if (fields[i].gpu == gpu && fields[i].field.id == id && fields[i].field.scope == scope) break;
    if (i == MOST) return;
    if (i == field_count) field_count++;
    fields[i].gpu = gpu;
    fields[i].field = (Field){.id = id, .scope = scope, .type = type, .code = code, .value.longword = bits};
}
/* A field of the code SILENT is left as it was handed over, as a driver does that does not know it. */
/* Refuses a whole call that names an id above the limit (0: never); counts fields asked for in the last call. */
void sc_field_limit(unsigned limit) { field_limit = limit; }
unsigned sc_field_batch(void) { return field_batch; }

Return nvmlDeviceGetFieldValues(Device *device, int count, Field *asked) {
    ENTER(device);
    field_batch = count;
    for (int i = 0; i < count; i++)
        if (field_limit && asked[i].id > field_limit) return INVALID;
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < field_count
               && (fields[k].gpu != device->gpu || fields[k].field.id != asked[i].id
                   || fields[k].field.scope != asked[i].scope))
            k++;
        if (k == field_count)
            asked[i].code = NOT_SUPPORTED;
        else if (fields[k].field.code != SILENT)
            asked[i] = fields[k].field;
    }
    return OK;
}

void reset_fields(void) {
    field_count = 0;
    field_limit = 0;
}
