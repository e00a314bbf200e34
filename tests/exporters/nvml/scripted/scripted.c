/* Devices, forced codes, counts of calls. */
#include "scripted.h"

Device devices[GPUS][INSTANCES];
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What a function answers in place of what it would. */
typedef struct { char function[64]; int gpu; Return code; } Forced;
static Forced forced[64];
static int forced_count;
static struct { char function[64]; int calls; } called[64];
static int called_count;

Return enter(const char *function, Device *device) {
    int i;
    Return code = OK;
    pthread_mutex_lock(&lock);
    for (i = 0; i < called_count && strcmp(called[i].function, function); i++) {}
    if (i == called_count && i < 64) strcpy(called[called_count++].function, function);
    if (i < 64) called[i].calls++;
    for (i = 0; i < forced_count; i++)
        if (!strcmp(forced[i].function, function) && (forced[i].gpu < 0 || (device && device->gpu == forced[i].gpu)))
            code = forced[i].code;
    pthread_mutex_unlock(&lock);
    return code;
}
void sc_return(const char *function, int gpu, Return code) {
    pthread_mutex_lock(&lock);
    if (forced_count < 64) {
        strcpy(forced[forced_count].function, function);
        forced[forced_count].gpu = gpu;
        forced[forced_count++].code = code;
    }
    pthread_mutex_unlock(&lock);
}
void sc_allow(void) { forced_count = 0; }
int sc_calls(const char *function) {
    for (int i = 0; i < called_count; i++)
        if (!strcmp(called[i].function, function)) return called[i].calls;
    return 0;
}

/* Handles. */
Return nvmlDeviceGetHandleByPciBusId_v2(const char *bus, Device **out) {
    char expected[] = "0000:18:00.0";
    for (int gpu = 0; gpu < GPUS; gpu++) {
        expected[5] = '1' + gpu;
        if (!strcmp(bus, expected)) {
            ENTER(&devices[gpu][0]);
            *out = &devices[gpu][0];
            return OK;
        }
    }
    return 6;
}
Device *sc_device(int gpu, int instance) { return &devices[gpu][instance]; }

void sc_reset(void) {
    for (int gpu = 0; gpu < GPUS; gpu++)
        for (int instance = 0; instance < INSTANCES; instance++) devices[gpu][instance] = (Device){gpu, instance};
    memset(called, 0, sizeof called);
    forced_count = called_count = 0;
    reset_fields();
    reset_metrics();
    reset_links();
    reset_events();
}
