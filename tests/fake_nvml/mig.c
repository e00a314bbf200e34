/* MIG mode and MIG devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

R nvmlDeviceGetMigMode(Dev* d, u* c, u* q) {
  PHYS(d);
  S(d);
  *c = *q = p->mig;
  return OK;
}
R nvmlDeviceIsMigDeviceHandle(Dev* d, u* o) {
  P(d);
  *o = d->kind == 'M';
  return OK;
}
R nvmlDeviceGetMigDeviceHandleByIndex(Dev* d, u i, Dev** o) {
  PHYS(d);
  if ((int)i >= nmig[d->gpu]) return NOTFOUND;
  *o = &md[d->gpu][i];
  return OK;
}
R nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Dev* d, Dev** o) {
  P(d);
  if (d->kind != 'M') return INVAL;
  *o = &gd[d->gpu];
  return OK;
}
R nvmlDeviceGetGpuInstanceId(Dev* d, u* o) {
  P(d);
  if (d->kind != 'M') return NOTSUP;
  *o = d->gi;
  return OK;
}
R nvmlDeviceGetComputeInstanceId(Dev* d, u* o) {
  P(d);
  if (d->kind != 'M') return NOTSUP;
  *o = d->ci;
  return OK;
}
R nvmlDeviceGetAttributes_v2(Dev* d, u* a) {
  P(d);
  if (d->kind != 'M') return NOTSUP;
  u s = d->slices;
  u c = d->ci_slices ? d->ci_slices : s;
  u v[8] = {16 * c, s, 1, 0, 1, 0, s, c};
  memcpy(a, v, 32);
  *(ull*)(a + 8) = d->mem >> 20;
  return OK;
}
