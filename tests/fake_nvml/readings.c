/* What a board measures and how it is set up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

static const ull reserved = 600ull << 20;

/* total, free, used: what is reserved counts as used */
R nvmlDeviceGetMemoryInfo(Dev* d, ull* m) {
  P(d);
  S(d);
  if (p->unified) return NOTSUP;
  m[0] = d->kind == 'M' ? d->mem : p->total;
  m[2] = (d->kind == 'M' ? d->mem / 4 : p->used) + reserved;
  m[1] = m[0] > m[2] ? m[0] - m[2] : 0;
  return OK;
}
#ifndef OLD_DRIVER
/* version, total, reserved, free, used */
R nvmlDeviceGetMemoryInfo_v2(Dev* d, u* v) {
  P(d);
  S(d);
  if (*v != 0x02000028) return VERS;
  if (p->unified) return NOTSUP;
  ull* q = (ull*)(v + 2);
  q[0] = d->kind == 'M' ? d->mem : p->total;
  q[1] = reserved;
  q[3] = d->kind == 'M' ? d->mem / 4 : p->used;
  q[2] = q[0] > q[1] + q[3] ? q[0] - q[1] - q[3] : 0;
  return OK;
}
#endif
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
    *o = TOLD(0, expr);    \
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
  *a = TOLD(0, 0);
  *b = TOLD(1, 167000);
  return OK;
}
R nvmlDeviceGetDecoderUtilization(Dev* d, u* a, u* b) {
  PHYS(d);
  *a = TOLD(0, 0);
  *b = TOLD(1, 167000);
  return OK;
}
R nvmlDeviceGetTemperature(Dev* d, int s, u* o) {
  PHYS(d);
  S(d);
  if (s) return INVAL;
  *o = p->temp;
  return OK;
}
#ifndef OLD_DRIVER
R nvmlDeviceGetTemperatureV(Dev* d, int* t) {
  PHYS(d);
  S(d);
  if ((u)t[0] != 0x100000C) return VERS;
  t[2] = TOLD(0, p->temp);
  return OK;
}
#endif
R nvmlDeviceGetTemperatureThreshold(Dev* d, int t, u* o) {
  PHYS(d);
  static const u v[] = {92, 89, 95, 87, 0, 0, 0, 0};
  if (t < 0 || t > 7) return NOTSUP;
  *o = t < 4 ? TOLD(t, v[t]) : v[t];
  if (!*o) return NOTSUP;
  return OK;
}
/* clang-format off */
GET(nvmlDeviceGetPowerUsage, u, p->power)
GET(nvmlDeviceGetPowerManagementLimit, u, p->limit)
GET(nvmlDeviceGetEnforcedPowerLimit, u, p->limit)
GET(nvmlDeviceGetPowerManagementDefaultLimit, u, 700000)
GET(nvmlDeviceGetPerformanceState, int, p->pstate)
GET(nvmlDeviceGetPowerState, int, p->pstate)
GET(nvmlDeviceGetTotalEnergyConsumption, ull, p->energy0 + moment() / 1000000ull * p->power / 1000)
GET(nvmlDeviceGetCurrentClocksThrottleReasons, ull, p->throttle)
GET(nvmlDeviceGetSupportedClocksThrottleReasons, ull, 0x1ff)
GET(nvmlDeviceGetPcieReplayCounter, u, 0)
GET(nvmlDeviceGetPersistenceMode, int, 1)
GET(nvmlDeviceGetComputeMode, int, 0)
GET(nvmlDeviceGetCurrPcieLinkGeneration, u, p->pcie_gen)
GET(nvmlDeviceGetCurrPcieLinkWidth, u, p->pcie_w)
GET(nvmlDeviceGetMaxPcieLinkGeneration, u, 5)
GET(nvmlDeviceGetMaxPcieLinkWidth, u, 16)
GET(nvmlDeviceGetNumGpuCores, u, 16896)
GET(nvmlDeviceGetDisplayActive, int, 0)
GET(nvmlDeviceGetArchitecture, u, 9)
GET(nvmlDeviceGetMemoryBusWidth, u, 5120)
GET(nvmlDeviceGetMaxMigDeviceCount, u, 7)
GET(nvmlDeviceGetSupportedEventTypes, ull, 0x1d)
GET(nvmlDeviceGetDisplayMode, int, 0)
#ifndef OLD_DRIVER
GET(nvmlDeviceGetCurrentClocksEventReasons, ull, p->throttle)
#endif
/* clang-format on */
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
  *o = TOLD(c, c == 2 ? p->mclk : p->sm);
  return OK;
}
R nvmlDeviceGetMaxClockInfo(Dev* d, int c, u* o) {
  PHYS(d);
  *o = TOLD(c, c == 2 ? 2619 : 1980);
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
  *c = TOLD(0, 1);
  *q = TOLD(1, 1);
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
