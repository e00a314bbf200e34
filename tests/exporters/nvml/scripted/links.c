/* NVLink and the fabric. */
#include "scripted.h"

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

void reset_links(void) {
    memset(links, 0, sizeof links);
    memset(&fabric, 0, sizeof fabric);
    fabric_version = 3;
}
