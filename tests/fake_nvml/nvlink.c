/* NVLinks, one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

R nvmlDeviceGetNvLinkState(Dev* d, u l, int* o) {
  PHYS(d);
  S(d);
  if (l >= 18) return INVAL;
  *o = !(p->nvl_down >> l & 1);
  return OK;
}
R nvmlDeviceGetNvLinkErrorCounter(Dev* d, u l, int c, ull* o) {
  PHYS(d);
  S(d);
  (void)c;
  if (l >= 18) return INVAL;
  *o = p->nvl_err;
  return OK;
}
R nvmlDeviceGetNvLinkRemoteDeviceType(Dev* d, u l, int* o) {
  PHYS(d);
  if (l >= 18) return INVAL;
  *o = 1;
  return OK;
}
R nvmlDeviceGetNvLinkRemotePciInfo_v2(Dev* d, u l, Pci* o) {
  PHYS(d);
  if (l >= 18) return INVAL;
  memset(o, 0, sizeof *o);
  sprintf(o->busId, "00000000:%02X:00.0", 4 + l % 4);
  return OK;
}
R nvmlDeviceGetTopologyCommonAncestor(Dev* a, Dev* b, int* o) {
  P(a);
  *o = a->gpu / 4 == b->gpu / 4 ? 40 : 50;
  return OK;
}
