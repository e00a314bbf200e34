/* Processes on a device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

typedef struct {
  u pid;
  ull mem;
  u gi, ci;
} Proc;
static R procs(Dev* d, char kind, u* n, Proc* o) {
  S(d);
  u k = 0;
  for (u i = 0; i < p->nproc; i++) {
    if (p->pkind[i] != kind || (d->kind == 'M' && p->pgi[i] != d->gi)) continue;
    if (o && k < *n) o[k] = (Proc){p->pid[i], p->pmem[i], p->pgi[i], p->pgi[i] < 0 ? ~0u : 0};
    k++;
  }
  R r = k > *n ? SMALL : OK;
  *n = k;
  return r;
}
#define LIST(name, kind)          \
  R name(Dev* d, u* n, Proc* o) { \
    P(d);                         \
    return procs(d, kind, n, o);  \
  }
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 'c')
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 'g')
#ifndef OLD_DRIVER
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'c')
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g')
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm')
#endif
typedef struct {
  u pid;
  ull ts;
  u sm, mem, enc, dec;
} PU;
R nvmlDeviceGetProcessUtilization(Dev* d, PU* o, u* n, ull since) {
  PHYS(d);
  S(d);
  (void)since;
  if (!p->nproc) return NOTFOUND;
  if (!o || *n < p->nproc) {
    *n = p->nproc;
    return SMALL;
  }
  for (u i = 0; i < p->nproc; i++)
    o[i] = (PU){p->pid[i], (ull)time(0) * 1000000, p->util / p->nproc, p->mutil / p->nproc, 0, 0};
  *n = p->nproc;
  return OK;
}
