/* What a board measures and how it is set up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

static void memory(Dev* d, ull* m) { /* total, free, used */
  S(d);
  m[0] = d->kind == 'M' ? d->mem : p->total;
  m[2] = d->kind == 'M' ? d->mem / 4 : p->used;
  m[1] = m[0] - m[2];
}
R nvmlDeviceGetMemoryInfo(Dev* d, ull* m) {
  P(d);
  memory(d, m);
  return OK;
}
R nvmlDeviceGetMemoryInfo_v2(Dev* d, u* v) {
  P(d);
  if (*v != 0x02000028) return VERS;
  ull m[3], *q = (ull*)(v + 2);
  memory(d, m);
  q[0] = m[0];
  q[1] = 600ull << 20;
  q[2] = m[1] > q[1] ? m[1] - q[1] : 0;
  q[3] = m[2];
  return OK;
}
R nvmlDeviceGetBAR1MemoryInfo(Dev* d, ull* m) {
  P(d);
  m[0] = 128ull << 30;
  m[2] = 1ull << 20;
  m[1] = m[0] - m[2];
  return OK;
}
#define GET(name, T, expr) \
  R name(Dev* d, T* o) {   \
    PHYS(d);               \
    S(d);                  \
    *o = (expr);           \
    return OK;             \
  }
R nvmlDeviceGetUtilizationRates(Dev* d, u* o) {
  PHYS(d);
  S(d);
  if (p->mig) return NOTSUP;
  o[0] = p->util;
  o[1] = p->mutil;
  return OK;
}
R nvmlDeviceGetEncoderUtilization(Dev* d, u* a, u* b) {
  PHYS(d);
  *a = 0;
  *b = 167000;
  return OK;
}
R nvmlDeviceGetDecoderUtilization(Dev* d, u* a, u* b) {
  PHYS(d);
  *a = 0;
  *b = 167000;
  return OK;
}
R nvmlDeviceGetTemperature(Dev* d, int s, u* o) {
  PHYS(d);
  S(d);
  if (s) return INVAL;
  *o = p->temp;
  return OK;
}
R nvmlDeviceGetTemperatureV(Dev* d, int* t) {
  PHYS(d);
  S(d);
  if ((u)t[0] != 0x100000C) return VERS;
  t[2] = p->temp;
  return OK;
}
R nvmlDeviceGetTemperatureThreshold(Dev* d, int t, u* o) {
  PHYS(d);
  static const u v[] = {92, 89, 95, 87, 0, 0, 0, 0};
  if (t < 0 || t > 7 || !v[t]) return NOTSUP;
  *o = v[t];
  return OK;
}
GET(nvmlDeviceGetPowerUsage, u, p->power)
GET(nvmlDeviceGetPowerManagementLimit, u, p->limit)
GET(nvmlDeviceGetEnforcedPowerLimit, u, p->limit)
GET(nvmlDeviceGetPowerManagementDefaultLimit, u, 700000) GET(nvmlDeviceGetPerformanceState, int, p->pstate)
    GET(nvmlDeviceGetPowerState, int, p->pstate)
        GET(nvmlDeviceGetTotalEnergyConsumption, ull, p->energy0 + (now() - t0) / 1000000ull * p->power / 1000)
            GET(nvmlDeviceGetCurrentClocksThrottleReasons, ull, p->throttle) GET(nvmlDeviceGetCurrentClocksEventReasons,
                                                                                 ull, p->throttle)
                GET(nvmlDeviceGetSupportedClocksThrottleReasons, ull, 0x1ff) GET(nvmlDeviceGetPcieReplayCounter, u, 0)
                    GET(nvmlDeviceGetPersistenceMode, int, 1) GET(nvmlDeviceGetComputeMode, int, 0)
                        GET(nvmlDeviceGetCurrPcieLinkGeneration, u, p->pcie_gen)
                            GET(nvmlDeviceGetCurrPcieLinkWidth, u, p->pcie_w)
                                GET(nvmlDeviceGetMaxPcieLinkGeneration, u, 5) GET(nvmlDeviceGetMaxPcieLinkWidth, u, 16)
                                    GET(nvmlDeviceGetNumGpuCores, u, 16896) GET(nvmlDeviceGetDisplayActive, int, 0)
                                        GET(nvmlDeviceGetArchitecture, u, 9) GET(nvmlDeviceGetMemoryBusWidth, u, 5120)
                                            GET(nvmlDeviceGetMaxMigDeviceCount, u, 7)
                                                GET(nvmlDeviceGetSupportedEventTypes, ull, 0x1d) R
    nvmlDeviceGetDisplayMode(Dev* d, int* o) {
  PHYS(d);
  *o = 0;
  return OK;
}
R nvmlDeviceGetDriverModel_v2(Dev* d, int* a, int* b) {
  PHYS(d);
  (void)a;
  (void)b;
  return NOTSUP;
} /* Windows only */
R nvmlDeviceGetDriverModel(Dev* d, int* a, int* b) { return nvmlDeviceGetDriverModel_v2(d, a, b); }
R nvmlDeviceGetConfComputeMemSizeInfo(Dev* d, ull* o) {
  PHYS(d);
  o[0] = o[1] = 0;
  return OK;
}
R nvmlDeviceGetFanSpeed(Dev* d, u* o) {
  PHYS(d);
  (void)o;
  return NOTSUP;
} /* HGX boards have no fan */
R nvmlDeviceGetPcieThroughput(Dev* d, int c, u* o) {
  PHYS(d);
  S(d);
  *o = (c ? 2000 : 1000) * p->util;
  return OK;
}
R nvmlDeviceGetClockInfo(Dev* d, int c, u* o) {
  PHYS(d);
  S(d);
  *o = c == 2 ? p->mclk : p->sm;
  return OK;
}
R nvmlDeviceGetMaxClockInfo(Dev* d, int c, u* o) {
  PHYS(d);
  *o = c == 2 ? 2619 : 1980;
  return OK;
}
R nvmlDeviceGetCudaComputeCapability(Dev* d, int* a, int* b) {
  P(d);
  *a = 9;
  *b = 0;
  return OK;
}
R nvmlDeviceGetViolationStatus(Dev* d, int t, ull* o) {
  PHYS(d);
  (void)t;
  o[0] = now() / 1000;
  o[1] = 0;
  return OK;
}
R nvmlDeviceGetEccMode(Dev* d, int* c, int* q) {
  PHYS(d);
  *c = *q = 1;
  return OK;
}
R nvmlDeviceGetTotalEccErrors(Dev* d, int t, int c, ull* o) {
  PHYS(d);
  S(d);
  (void)c;
  *o = t ? p->ecc_u : p->ecc_c;
  return OK;
}
R nvmlDeviceGetMemoryErrorCounter(Dev* d, int t, int c, int l, ull* o) {
  PHYS(d);
  S(d);
  (void)c;
  *o = l == 2 ? (t ? p->ecc_u : p->ecc_c) : 0;
  return OK;
}
R nvmlDeviceGetRemappedRows(Dev* d, u* a, u* b, u* c, u* e) {
  PHYS(d);
  S(d);
  *a = p->remap_c;
  *b = p->remap_u;
  *c = p->remap_pend;
  *e = p->remap_fail;
  return OK;
}
