/* XID errors as events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

typedef struct {
  ull seen, mask;
} ES;
typedef struct {
  Dev* d;
  ull type, data;
  u gi, ci;
} ED;
R nvmlEventSetCreate(ES** s) {
  *s = calloc(1, sizeof(ES));
  return OK;
}
R nvmlDeviceRegisterEvents(Dev* d, ull t, ES* s) {
  PHYS(d);
  s->mask |= 1ull << d->gpu;
  (void)t;
  return OK;
}
R nvmlEventSetWait_v2(ES* s, ED* o, u ms) {
  ull end = now() + ms * 1000000ull;
  do {
    load();
    for (int i = 0; i < nxid; i++)
      if (xid[i].seq > s->seen && (s->mask >> xid[i].gpu & 1)) {
        s->seen = xid[i].seq;
        *o = (ED){&gd[xid[i].gpu], 8, xid[i].code, ~0u, ~0u};
        return OK;
      }
    if (now() >= end) break;
    usleep(ms < 20 ? ms * 1000 : 20000);
  } while (1);
  return TIMEOUT;
}
R nvmlEventSetFree(ES* s) {
  free(s);
  return OK;
}
