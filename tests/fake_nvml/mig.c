/* MIG devices, GPU instances, their profiles and placements. */
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
typedef struct {
  u version, id, p2p, slices, count, mp, ce, dec, enc, jpeg, ofa;
  ull mb;
  char name[96];
} PI;
static const struct {
  u slices;
  u mb;
  u count;
  const char* n;
} PR[] = {{1, 9856, 7, "1g.10gb"},
          {2, 20096, 3, "2g.20gb"},
          {3, 40448, 2, "3g.40gb"},
          {4, 40448, 1, "4g.40gb"},
          {7, 81153, 1, "7g.80gb"}};
R nvmlDeviceGetGpuInstanceProfileInfoV(Dev* d, u k, PI* o) {
  PHYS(d);
  if (k > 4) return NOTSUP;
  o->id = k + 19;
  o->slices = PR[k].slices;
  o->count = PR[k].count;
  o->mb = PR[k].mb;
  sprintf(o->name, "MIG %s", PR[k].n);
  return OK;
}
R nvmlDeviceGetGpuInstanceProfileInfoByIdV(Dev* d, u id, PI* o) {
  return nvmlDeviceGetGpuInstanceProfileInfoV(d, id - 19, o);
}
R nvmlDeviceGetGpuInstanceRemainingCapacity(Dev* d, u id, u* o) {
  PHYS(d);
  u used = 0;
  for (int m = 0; m < nmig[d->gpu]; m++) used += md[d->gpu][m].slices;
  *o = (7 - used) / PR[id - 19].slices;
  return OK;
}
R nvmlDeviceGetGpuInstanceById(Dev* d, u gi, Dev** o) {
  PHYS(d);
  for (int m = 0; m < nmig[d->gpu]; m++)
    if (md[d->gpu][m].gi == (int)gi) {
      *o = &md[d->gpu][m];
      return OK;
    }
  return NOTFOUND;
}
typedef struct {
  Dev* d;
  u id, profile, start, size;
} GII;
R nvmlGpuInstanceGetInfo(Dev* m, GII* o) {
  o->d = &gd[m->gpu];
  o->id = m->gi;
  o->profile = 19;
  for (u k = 0; k < 5; k++)
    if (PR[k].slices == m->slices) o->profile = 19 + k;
  u s = 0;
  for (int j = 0; j < nmig[m->gpu]; j++) {
    if (&md[m->gpu][j] == m) break;
    s += md[m->gpu][j].slices;
  }
  o->start = s;
  o->size = m->slices;
  return OK;
}
