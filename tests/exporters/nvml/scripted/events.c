/* Processes and events. */
#include "scripted.h"

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
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
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

void reset_events(void) {
    process_count = event_count = 0;
}
