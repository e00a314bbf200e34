/* A stand-in for parts of NVIDIA's management library, told by the test itself, call by call, what to answer.
 *
 * It is loaded into the test's process; sc_* functions set answers. What was not set is not supported. Own code: the
 * structs follow the layout that nvidia-ml-py declares. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long ull;
typedef int Return;
enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, TOO_SMALL = 7, TIMEOUT = 10, VERSION = 25 };
enum { SILENT = -1, GPUS = 4, INSTANCES = 8, LINKS = 18, MOST = 4096, PROCESSES = 64 };

typedef struct { int gpu, instance; } Device; /* instance 0: the GPU itself */

static Device devices[GPUS][INSTANCES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

/* What a function answers in place of what it would. */
typedef struct { char function[64]; int gpu; Return code; } Forced;
static Forced forced[64];
static int forced_count;
static struct { char function[64]; int calls; } called[64];
static int called_count;

static Return enter(const char *function, Device *device) {
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
#define ENTER(device) do { Return code_ = enter(__func__, device); if (code_) return code_; } while (0)

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

/* Field values. */
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

/* Counters of the chip: a metric's value grows by its rate with each sample, so that a mixed-up pair shows. */
typedef struct { unsigned serial; int gpu, instance; } Sample;
typedef struct { unsigned id; Return code; double value; const char *names[3]; } Metric;
typedef struct { unsigned version, count; Sample *older, *newer; Metric metrics[]; } Request;
static struct { int gpu, instance; unsigned id; Return code; double value; } metrics[MOST];
static int metric_count, samples_alive;
static unsigned sample_serial, metric_limit;

void sc_metric(int gpu, int instance, unsigned id, Return code, double value) {
    int i;
    for (i = 0; i < metric_count; i++)
        if (metrics[i].gpu == gpu && metrics[i].instance == instance && metrics[i].id == id) break;
    if (i == MOST) return;
    if (i == metric_count) metric_count++;
    metrics[i].gpu = gpu, metrics[i].instance = instance, metrics[i].id = id;
    metrics[i].code = code, metrics[i].value = value;
}
void sc_metric_limit(unsigned limit) { metric_limit = limit; }
int sc_samples_alive(void) { return samples_alive; }

Return nvmlGpmQueryDeviceSupport(Device *device, unsigned *support) {
    ENTER(device);
    support[1] = device->gpu != 3; /* the last GPU is an old one */
    return OK;
}
Return nvmlGpmSampleAlloc(Sample **out) {
    ENTER(0);
    *out = calloc(1, sizeof(Sample));
    samples_alive++;
    return OK;
}
Return nvmlGpmSampleFree(Sample *sample) {
    samples_alive--;
    free(sample);
    return OK;
}
Return nvmlGpmSampleGet(Device *device, Sample *sample) {
    ENTER(device);
    *sample = (Sample){++sample_serial, device->gpu, 0};
    return OK;
}
Return nvmlGpmMigSampleGet(Device *device, unsigned instance, Sample *sample) {
    ENTER(device);
    *sample = (Sample){++sample_serial, device->gpu, instance};
    return OK;
}
Return nvmlGpmMetricsGet(Request *request) {
    Sample *older = request->older, *newer = request->newer;
    ENTER(&devices[newer->gpu][0]);
    if (request->version != 1 || older->serial >= newer->serial || older->gpu != newer->gpu
        || older->instance != newer->instance)
        return INVALID;
    for (unsigned i = 0; i < request->count; i++)
        if (metric_limit && request->metrics[i].id > metric_limit) return INVALID;
    for (unsigned i = 0; i < request->count; i++) {
        Metric *metric = &request->metrics[i];
        metric->code = NOT_SUPPORTED;
        for (int k = 0; k < metric_count; k++)
            if (metrics[k].gpu == newer->gpu && metrics[k].instance == newer->instance && metrics[k].id == metric->id)
                metric->code = metrics[k].code, metric->value = metrics[k].value;
    }
    return OK;
}

/* NVLink. */
static struct { int there, up, remote; ull errors[5]; } links[GPUS][LINKS];
void sc_link(int gpu, int link, int up, int remote) {
    links[gpu][link].there = 1, links[gpu][link].up = up, links[gpu][link].remote = remote;
}
void sc_link_errors(int gpu, int link, int counter, ull times) { links[gpu][link].errors[counter] = times; }
#define LINK(device, link) \
    do { ENTER(device); if ((link) >= LINKS || !links[(device)->gpu][link].there) return INVALID; } while (0)

Return nvmlDeviceGetNvLinkState(Device *device, unsigned link, int *out) {
    LINK(device, link);
    *out = links[device->gpu][link].up;
    return OK;
}
Return nvmlDeviceGetNvLinkVersion(Device *device, unsigned link, unsigned *out) {
    LINK(device, link);
    *out = 6;
    return OK;
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, unsigned *out) {
    LINK(device, link);
    *out = links[device->gpu][link].remote;
    return OK;
}
Return nvmlDeviceGetNvLinkErrorCounter(Device *device, unsigned link, int counter, ull *out) {
    LINK(device, link);
    *out = links[device->gpu][link].errors[counter];
    return OK;
}

/* Fabric: version 3 of the struct is newer by its last field; a driver may know version 2 alone. */
typedef struct {
    unsigned version;
    unsigned char cluster[16];
    Return status;
    unsigned clique, state, mask;
    unsigned char summary;
} Fabric;
static Fabric fabric;
static unsigned fabric_version = 3;
void sc_fabric(unsigned version, unsigned state, Return status, unsigned clique, unsigned mask, int summary) {
    fabric_version = version;
    fabric = (Fabric){0, "0123456789abcde", status, clique, state, mask, (unsigned char)summary};
}
Return nvmlDeviceGetGpuFabricInfoV(Device *device, Fabric *out) {
    ENTER(device);
    unsigned version = out->version, number = version >> 24;
    if (number > fabric_version) return VERSION;
    memcpy(out, &fabric, number == 3 ? sizeof fabric : 36);
    out->version = version;
    return OK;
}

/* Processes: list 0 compute, 1 graphics, 2 MPS. */
typedef struct { unsigned pid; ull memory; unsigned instance, compute; } Process;
static struct { int gpu, instance, list; Process process; } processes[PROCESSES];
static int process_count;
void sc_process(int gpu, int instance, int list, unsigned pid, ull memory) {
    if (process_count == PROCESSES) return;
    processes[process_count].gpu = gpu, processes[process_count].instance = instance;
    processes[process_count].list = list;
    processes[process_count++].process = (Process){pid, memory, instance ? (unsigned)instance : ~0u, ~0u};
}
static Return list(Device *device, int which, unsigned *count, Process *out) {
    unsigned found = 0;
    for (int i = 0; i < process_count; i++) {
        if (processes[i].gpu != device->gpu || processes[i].instance != device->instance || processes[i].list != which)
            continue;
        if (out && found < *count) out[found] = processes[i].process;
        found++;
    }
    Return code = found > *count ? TOO_SMALL : OK;
    *count = found;
    return code;
}
#define LIST(name, which) \
    Return name(Device *device, unsigned *count, Process *out) { ENTER(device); return list(device, which, count, out); }
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 2)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 0)

/* Events. */
typedef struct { int registered; int open; } Set;
typedef struct { Device *device; ull type, data; unsigned instance, compute; } Event;
static Event events[MOST];
static int event_count, sets_open;
void sc_event(int gpu, ull type, ull data) {
    pthread_mutex_lock(&lock);
    if (event_count < MOST) events[event_count++] = (Event){&devices[gpu][0], type, data, ~0u, ~0u};
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&lock);
}
int sc_sets_open(void) { return sets_open; }
Return nvmlEventSetCreate(Set **out) {
    ENTER(0);
    *out = calloc(1, sizeof(Set));
    sets_open++;
    return OK;
}
Return nvmlEventSetFree(Set *set) {
    sets_open--;
    free(set);
    return OK;
}
Return nvmlDeviceGetSupportedEventTypes(Device *device, ull *out) {
    ENTER(device);
    *out = 0x800b;
    return OK;
}
Return nvmlDeviceRegisterEvents(Device *device, ull types, Set *set) {
    ENTER(device);
    if (types & ~0x800bull) return NOT_SUPPORTED;
    set->registered |= 1 << device->gpu;
    return OK;
}
Return nvmlEventSetWait_v2(Set *set, Event *out, unsigned milliseconds) {
    ENTER(0);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds * 1000000l;
    until.tv_sec += until.tv_nsec / 1000000000l;
    until.tv_nsec %= 1000000000l;
    Return code = TIMEOUT;
    pthread_mutex_lock(&lock);
    do {
        for (int i = 0; i < event_count && code == TIMEOUT; i++) {
            if (!(set->registered >> events[i].device->gpu & 1)) continue;
            *out = events[i];
            memmove(&events[i], &events[i + 1], (--event_count - i) * sizeof(Event));
            code = OK;
        }
    } while (code == TIMEOUT && !pthread_cond_timedwait(&more, &lock, &until));
    pthread_mutex_unlock(&lock);
    return code;
}

void sc_reset(void) {
    for (int gpu = 0; gpu < GPUS; gpu++)
        for (int instance = 0; instance < INSTANCES; instance++) devices[gpu][instance] = (Device){gpu, instance};
    memset(links, 0, sizeof links);
    memset(&fabric, 0, sizeof fabric);
    memset(called, 0, sizeof called);
    forced_count = called_count = field_count = metric_count = process_count = event_count = 0;
    field_limit = metric_limit = 0;
    fabric_version = 3;
}
