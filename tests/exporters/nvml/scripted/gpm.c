/* Counters of the chip. A pair of samples in the wrong order, or of two devices, is refused. */
#include "scripted.h"

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

void reset_metrics(void) {
    metric_count = 0;
    metric_limit = 0;
}
