/* Calls of newer libraries. What a device has follows from its product name: Blackwell smooths its power, and a
 * superchip (GB200, GH200) has links to its CPU. */
#include <string.h>
#include "fake.h"

int is_blackwell(void) { return strstr(model, "B200") || strstr(model, "B300"); }
int has_cpu_link(void) { return strstr(model, "GB") || strstr(model, "GH"); }

#define TEXT(name, text)         \
  R name(Dev* d, char* b, u n) { \
    PHYS(d);                     \
    return str(b, n, text);      \
  }
TEXT(nvmlDeviceGetVbiosVersion, "96.00.74.00.01")
TEXT(nvmlDeviceGetBoardPartNumber, "692-2G520-0200-000")
TEXT(nvmlDeviceGetInforomImageVersion, "G520.0200.00.05")
R nvmlDeviceGetGspFirmwareVersion(Dev* d, char* b) {
  PHYS(d);
  strcpy(b, "580.95.05");
  return OK;
}

#define NUMBER(name, T, amount) \
  R name(Dev* d, T* o) {        \
    PHYS(d);                    \
    S(d);                       \
    *o = TOLD(0, amount);       \
    return OK;                  \
  }
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, u, 5)
#ifndef OLD_DRIVER
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, ull, 0x1ff)
#endif
NUMBER(nvmlDeviceGetAccountingMode, u, 0)
NUMBER(nvmlDeviceGetVirtualizationMode, u, 0)
R nvmlDeviceGetNumaNodeId(Dev* d, int* o) {
  PHYS(d);
  if (!has_cpu_link()) return NOTSUP;
  *o = 1;
  return OK;
}
R nvmlDeviceGetNvLinkVersion(Dev* d, u link, u* o) {
  PHYS(d);
  if (link >= 18) return INVAL;
  *o = is_blackwell() ? 7 : 6;
  return OK;
}
R nvmlDeviceGetClock(Dev* d, u domain, u which, u* o) {
  PHYS(d);
  if (which > 2) return NOTSUP;
  *o = domain == 2 ? 2619 : 1980;
  return OK;
}
R nvmlDeviceGetMaxCustomerBoostClock(Dev* d, u domain, u* o) {
  PHYS(d);
  *o = domain == 2 ? 2619 : 1980;
  return OK;
}
R nvmlDeviceGetPowerManagementLimitConstraints(Dev* d, u* low, u* high) {
  PHYS(d);
  *low = TOLD(0, 200000);
  *high = TOLD(1, 700000);
  return OK;
}
#ifndef OLD_DRIVER
R nvmlDeviceGetJpgUtilization(Dev* d, u* share, u* period) {
  PHYS(d);
  *share = TOLD(0, 0);
  *period = TOLD(1, 167000);
  return OK;
}
R nvmlDeviceGetOfaUtilization(Dev* d, u* share, u* period) {
  PHYS(d);
  *share = TOLD(0, 0);
  *period = TOLD(1, 167000);
  return OK;
}
#endif
R nvmlDeviceGetEncoderStats(Dev* d, ull* count, ull* fps, ull* latency) {
  PHYS(d);
  *count = TOLD(0, 0);
  *fps = TOLD(1, 0);
  *latency = TOLD(2, 0);
  return OK;
}
R nvmlDeviceGetFBCStats(Dev* d, u* o) {
  PHYS(d);
  for (int k = 0; k < 3; k++) o[k] = TOLD(k, 0);
  return OK;
}
R nvmlDeviceGetRowRemapperHistogram(Dev* d, u* o) {
  PHYS(d);
  S(d);
  u spent = p->remap_c + p->remap_u;
  o[0] = 640 - spent;
  o[1] = spent;
  o[2] = o[3] = o[4] = 0; /* max, high, partial, low, none */
  return OK;
}
R nvmlDeviceGetAutoBoostedClocksEnabled(Dev* d, u* now_, u* default_) {
  PHYS(d);
  (void)now_;
  (void)default_;
  return NOTSUP;
}
R nvmlDeviceGetActiveVgpus(Dev* d, u* n, u* o) {
  PHYS(d);
  (void)n;
  (void)o;
  return NOTSUP;
}
R nvmlDeviceGetNumFans(Dev* d, u* o) {
  PHYS(d);
  *o = TOLD(0, 0);
  return OK;
}

#ifndef OLD_DRIVER
/* Structs that begin with their version: a wrong one is refused, as the library does. */
#define VERSIONED(d, o, version)            \
  do {                                      \
    PHYS(d);                                \
    if (*(u*)(o) != (version)) return VERS; \
  } while (0)
R nvmlDeviceGetMarginTemperature(Dev* d, int* o) {
  VERSIONED(d, o, 0x1000008);
  S(d);
  o[1] = (int)TOLD(0, 87 - (int)p->temp);
  return OK;
}
R nvmlDeviceGetRepairStatus(Dev* d, u* o) {
  VERSIONED(d, o, 0x100000C);
  o[1] = TOLD(0, 0);
  o[2] = TOLD(1, 0);
  return OK;
}
R nvmlDeviceGetUnrepairableMemoryFlag_v1(Dev* d, u* o) {
  PHYS(d);
  o[1] = TOLD(0, 0);
  return OK;
}
R nvmlDeviceGetAddressingMode(Dev* d, u* o) {
  VERSIONED(d, o, 0x1000008);
  o[1] = TOLD(0, has_cpu_link() ? 2 : 1);
  return OK;
}
R nvmlDeviceGetDramEncryptionMode(Dev* d, u* current, u* pending) {
  VERSIONED(d, current, 0x1000008);
  if (!is_blackwell()) return NOTSUP;
  current[1] = pending[1] = 0;
  return OK;
}
R nvmlDeviceGetSramEccErrorStatus(Dev* d, u* o) {
  VERSIONED(d, o, 0x1000068);
  S(d);
  ull* count = (ull*)(o + 2);
  memset(count, 0, 11 * sizeof *count);
  count[5] = p->ecc_c;
  o[2 + 22] = 0; /* threshold exceeded */
  return OK;
}
R nvmlDeviceGetC2cModeInfoV(Dev* d, u* o) {
  PHYS(d);
  *o = has_cpu_link();
  return OK;
}
R nvmlDeviceGetPlatformInfo(Dev* d, char* o) {
  VERSIONED(d, o, 0x200002c);
  if (!has_cpu_link()) return NOTSUP;
  memset(o + 4, 0, 40);
  strcpy(o + 20, "1820224110129");
  o[36] = 3;
  o[37] = 2;
  o[38] = 1;
  o[39] = 1;
  o[40] = (char)(d->gpu + 1); /* slot, tray, host, peer, module */
  return OK;
}
R nvmlDeviceGetGpuFabricInfoV(Dev* d, u* o) {
  P(d);
  if (d->kind != 'G') return NOTSUP;
  if (*o != 0x2000024 && *o != 0x3000028) return VERS;
  int third = *o == 0x3000028;
  memset(o + 1, 0x11, 16);
  o[5] = TOLD(0, OK);
  o[6] = TOLD(1, 1);                            /* status, clique */
  ((unsigned char*)(o + 7))[0] = TOLD(2, 3);    /* state: completed */
  o[8] = TOLD(3, 2 | 2 << 2 | 2 << 4 | 2 << 6); /* nothing degraded, recovering, unhealthy or timed out */
  if (third) ((unsigned char*)(o + 9))[0] = 1;
  return OK;
}
#endif
