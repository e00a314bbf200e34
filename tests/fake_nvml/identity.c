/* Which devices there are and who they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

R nvmlDeviceGetHandleByIndex_v2(u i, Dev** d) {
  P(0);
  if ((int)i >= N) return INVAL;
  *d = &gd[i];
  R r = pre(*d, __func__);
  if (!r) attach(i);
  return r;
}
static void uuid(Dev* d, char* b) {
  u h = 5381;
  for (char* c = host; *c; c++) h = h * 33 + *c;
  sprintf(b, "%s-%08x-0000-4000-8000-%08x%04x", d->kind == 'M' ? "MIG" : "GPU", h,
          d->kind == 'M' ? 0xabc00000u + (d->ci << 8) + d->gi : 0xdef00000u, d->gpu);
}
R nvmlDeviceGetUUID(Dev* d, char* b, u n) {
  P(d);
  char s[80];
  uuid(d, s);
  return str(b, n, s);
}
R nvmlDeviceGetHandleByUUID(const char* s, Dev** o) {
  P(0);
  char b[80];
  for (int i = 0; i < N; i++) {
    uuid(&gd[i], b);
    if (!strcmp(b, s)) {
      *o = &gd[i];
      return OK;
    }
    for (int m = 0; m < nmig[i]; m++) {
      uuid(&md[i][m], b);
      if (!strcmp(b, s)) {
        *o = &md[i][m];
        return OK;
      }
    }
  }
  return NOTFOUND;
}
static void bus(int i, char* b) { sprintf(b, "00000000:%02X:00.0", 0x18 + i * 16); }
R nvmlDeviceGetHandleByPciBusId_v2(const char* s, Dev** o) {
  P(0);
  char b[32];
  for (int i = 0; i < N; i++) {
    bus(i, b);
    if (!strcasecmp(b, s) || !strcasecmp(b + 4, s)) {
      *o = &gd[i];
      R r = pre(*o, __func__);
      if (!r) attach(i);
      return r;
    }
  }
  return NOTFOUND;
}
R nvmlDeviceGetName(Dev* d, char* b, u n) {
  P(d);
  if (d->kind == 'M') {
    char s[160];
    sprintf(s, "%s MIG %ug.%llugb", model, d->slices, (d->mem + (1 << 30) - 1) >> 30);
    return str(b, n, s);
  }
  return str(b, n, model);
}
R nvmlDeviceGetSerial(Dev* d, char* b, u n) {
  PHYS(d);
  char s[32];
  sprintf(s, "16540230%05d", d->gpu);
  return str(b, n, s);
}
R nvmlDeviceGetIndex(Dev* d, u* i) {
  P(d);
  *i = d->kind == 'G' ? d->gpu : d->gi - 1;
  return OK;
}
R nvmlDeviceGetMinorNumber(Dev* d, u* i) {
  PHYS(d);
  *i = d->gpu;
  return OK;
}
R nvmlDeviceGetPciInfo_v3(Dev* d, Pci* o) {
  P(d);
  memset(o, 0, sizeof *o);
  bus(d->gpu, o->busId);
  snprintf(o->legacy, 16, "%.15s", o->busId + 4);
  o->bus = 0x18 + d->gpu * 16;
  o->id = 0x233010de;
  o->sub = 0x16c110de;
  return OK;
}
