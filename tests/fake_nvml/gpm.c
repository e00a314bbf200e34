/* Counters of the chip, between two samples. Older drivers have none of this. */
#ifndef OLD_DRIVER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

R nvmlGpmQueryDeviceSupport(Dev* d, u* s) {
  PHYS(d);
  s[1] = 1;
  return OK;
}
R nvmlGpmSampleAlloc(void** s) {
  *s = calloc(1, 16);
  return OK;
}
R nvmlGpmSampleFree(void* s) {
  free(s);
  return OK;
}
R nvmlGpmSampleGet(Dev* d, ull* s) {
  PHYS(d);
  s[0] = now();
  s[1] = d->gpu;
  return OK;
}
R nvmlGpmMigSampleGet(Dev* d, u gi, ull* s) {
  P(d);
  (void)gi;
  s[0] = now();
  s[1] = d->gpu;
  return OK;
}
typedef struct {
  u id;
  R ret;
  double v;
  const char *a, *b, *c;
} GM;
typedef struct {
  u ver, n;
  ull *s1, *s2;
  GM m[1];
} GMG;
R nvmlGpmMetricsGet(GMG* q) {
  P(0);
  if (!q->s1 || !q->s2) return INVAL;
  G* p = &g[q->s2[1]];
  for (u i = 0; i < q->n; i++) {
    GM* m = &q->m[i];
    m->ret = OK;
    m->a = "fake";
    m->b = "fake gpm";
    m->c = "%";
    R said = told_metric(q->s2[1], m->id, &m->v);
    if (said >= 0) {
      m->ret = said;
      continue;
    }
    switch (m->id) {
      case 1:
      case 2:
        m->v = p->util;
        break;
      case 3:
        m->v = p->util * .6;
        break;
      case 5:
        m->v = p->util * .45;
        break;
      case 10:
        m->v = p->mutil;
        break;
      default:
        m->v = 0;
    }
  }
  return OK;
}
#endif
