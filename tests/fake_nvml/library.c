/* The check that every call begins with, opening and closing, device files, the library as a whole. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "state.h"

#define NO_ATTACH 2

static int references, eager = -1;
static ull calls, device_calls[MAXG], checked;
static int device_files[MAXG + 1];

R pre(Dev* d, const char* symbol) {
  int gpu = d ? d->gpu : -1;
  calls++;
  if (eager < 0) eager = getenv("FAKE_NVML_EAGER") != 0;
  if (now() - checked > (eager ? 0 : 20000000ull)) {
    checked = now();
    load();
  }
  if (gpu >= 0) device_calls[gpu]++;
  if (holds.delay_us) usleep(holds.delay_us);
  for (int i = 0; i < holds.nfaults; i++) {
    const Fault* f = &holds.faults[i];
    if ((f->gpu != gpu && f->gpu != -1) || (strcmp(f->symbol, "*") && strcmp(f->symbol, symbol))) continue;
    if (f->delay_us) usleep(f->delay_us);
    if (f->code) return f->code;
    if (f->hang) {
      usleep(5000);
      load();
      i = -1; /* until the file says something else */
    }
  }
  if (holds.driver_gone) references = 0; /* whoever had opened it must do so anew */
  if (!references) return UNINIT;
  if (d && d->kind == 'g') return UNINIT;
  if (d && d->kind == 'm') return INVAL;
  return OK;
}

static int open_file(const char* name) {
  const char* folder = getenv("FAKE_NVML_DEV");
  char path[300];
  if (!folder) return 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return open(path, O_RDONLY);
}

void attach(int i) {
  char name[32];
  if (device_files[i]) return;
  snprintf(name, sizeof name, "nvidia%d", i);
  device_files[i] = open_file(name);
}

static void close_files(void) {
  for (int i = 0; i <= MAXG; i++) {
    if (device_files[i] > 0) close(device_files[i]);
    device_files[i] = 0;
  }
}

R nvmlInitWithFlags(u flags) {
  load();
  if (holds.init_error) return holds.init_error;
  if (holds.driver_gone) return NOT_LOADED;
  if (references++) return OK;
  close_files(); /* of a driver that went away */
  new_handles();
  device_files[MAXG] = open_file("nvidiactl");
  for (int i = 0; i < N && !(flags & NO_ATTACH); i++) attach(i);
  return OK;
}
R nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
R nvmlInit(void) { return nvmlInitWithFlags(0); }
R nvmlShutdown(void) {
  if (!references) return UNINIT;
  if (--references) return OK;
  for (int i = 0; i < MAXG; i++) gd[i].kind = 'g';
  close_files();
  return OK;
}

const char* nvmlErrorString(R r) {
  switch (r) {
    case OK:
      return "Success";
    case NOTSUP:
      return "Not Supported";
    case NOTFOUND:
      return "Not Found";
    case LOST:
      return "GPU is lost";
    default:
      return "An error of the stand-in";
  }
}
R nvmlSystemGetDriverVersion(char* b, u n) {
  P(0);
  return str(b, n, holds.driver);
}
R nvmlSystemGetNVMLVersion(char* b, u n) {
  P(0);
  return str(b, n, "13.580.95.05");
}
R nvmlSystemGetCudaDriverVersion(int* v) {
  P(0);
  *v = 13000;
  return OK;
}
R nvmlSystemGetCudaDriverVersion_v2(int* v) { return nvmlSystemGetCudaDriverVersion(v); }
R nvmlSystemGetProcessName(u pid, char* b, u n) {
  (void)pid;
  return str(b, n, "python");
}
R nvmlDeviceGetCount_v2(u* c) {
  P(0);
  *c = N;
  return OK;
}

/* For tests: calls in all, and calls that named a device. */
ull fakeNvmlCalls(void) { return calls; }
ull fakeNvmlDeviceCalls(int i) { return device_calls[i]; }
