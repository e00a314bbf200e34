/* The state file, the faults that it asks for, and the library as a whole. The README tells the language. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

typedef struct {
  int gpu;
  char symbol[64];
  int code;
  u delay_us;
  int hang;
} Fault;

G g[MAXG];
Dev gd[MAXG], md[MAXG][MAXM];
int nmig[MAXG], N = -1, nxid;
Xid xid[MAXE];
ull t0;
char model[96] = "NVIDIA H100 80GB HBM3", host[64] = "node000";

static char driver[64] = "580.95.05";
static Fault faults[MAXE];
static int nfaults, init_error, references, eager = -1;
static u delay_us;
static ull calls, device_calls[MAXG], checked;
static struct timespec seen;
static int device_files[MAXG + 1];
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* What a file says is built here and copied in one go: other threads must not see half of it. */
static struct {
  G g[MAXG];
  Dev md[MAXG][MAXM];
  int nmig[MAXG], nxid, nfaults, init_error, N;
  Xid xid[MAXE];
  Fault faults[MAXE];
  u delay_us;
  char model[96], driver[64];
} next;

ull now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

R str(char* b, u n, const char* s) {
  if (strlen(s) + 1 > n) return SMALL;
  strcpy(b, s);
  return OK;
}

static void text_of(const char* name, char* into, size_t size) {
  const char* told = getenv(name);
  if (told) snprintf(into, size, "%s", told);
}

/* Each third board idles, the others work for this process. */
static void defaults(void) {
  const char* count = getenv("FAKE_NVML_GPUS");
  memset(&next, 0, sizeof next);
  next.N = count ? atoi(count) : 8;
  if (next.N > MAXG) next.N = MAXG;
  snprintf(next.model, sizeof next.model, "NVIDIA H100 80GB HBM3");
  text_of("FAKE_NVML_MODEL", next.model, sizeof next.model);
  snprintf(next.driver, sizeof next.driver, "580.95.05");
  for (int i = 0; i < next.N; i++) {
    G* p = &next.g[i];
    p->total = 85520809984ull;
    p->used = i % 3 ? 40ull << 30 : 1ull << 29;
    p->util = i % 3 ? 90 - 3 * i : 0;
    p->mutil = p->util / 2;
    p->temp = 35 + p->util / 3;
    p->mtemp = p->temp + 8;
    p->power = 70000 + 6000 * p->util;
    p->limit = 700000;
    p->sm = p->util ? 1980 : 345;
    p->mclk = 2619;
    p->pcie_gen = 5;
    p->pcie_w = 16;
    p->throttle = p->util ? 0 : 1;
    p->energy0 = 1000000000ull * (i + 1);
    if (p->util) {
      p->nproc = 1;
      p->pid[0] = getpid();
      p->pmem[0] = p->used - (1ull << 29);
      p->pgi[0] = -1;
    }
  }
}

static Fault* fault(int gpu, const char* symbol) {
  static Fault full;
  Fault* f = next.nfaults < MAXE ? &next.faults[next.nfaults++] : &full;
  f->gpu = gpu;
  snprintf(f->symbol, sizeof f->symbol, "%s", symbol);
  return f;
}

/* <gpu> <key> <value> */
static void setting(int i, const char* key, const char* text) {
  G* p = &next.g[i];
  ull x = strtoull(text, 0, 0);
  const struct {
    const char* key;
    u* into;
  } whole[] = {
      {"util", &p->util},          {"mem_util", &p->mutil},           {"temp", &p->temp},
      {"mem_temp", &p->mtemp},     {"power_mw", &p->power},           {"limit_mw", &p->limit},
      {"sm_mhz", &p->sm},          {"remap_pending", &p->remap_pend}, {"remap_failed", &p->remap_fail},
      {"remap_corr", &p->remap_c}, {"remap_uncorr", &p->remap_u},     {"nvlink_down", &p->nvl_down},
      {"mig_mode", &p->mig},       {"pcie_gen", &p->pcie_gen},        {"pcie_width", &p->pcie_w},
      {"procs", &p->nproc},
  };
  const struct {
    const char* key;
    ull* into;
  } large[] = {
      {"throttle", &p->throttle},  {"ecc_corr", &p->ecc_c},    {"ecc_uncorr", &p->ecc_u},
      {"nvlink_err", &p->nvl_err}, {"energy_mj", &p->energy0},
  };
  if (!strcmp(key, "mem_total")) p->total = x << 20;
  if (!strcmp(key, "mem_used")) p->used = x << 20;
  for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
    if (!strcmp(key, whole[k].key)) *whole[k].into = x;
  for (size_t k = 0; k < sizeof large / sizeof *large; k++)
    if (!strcmp(key, large[k].key)) *large[k].into = x;
}

/* gi 0: numbered from 1 in order. ci_slices 0: the compute instance has all of its GPU instance. */
static void mig_device(int i, u slices, ull mib, int gi, int ci, u ci_slices) {
  if (i < 0 || i >= MAXG || next.nmig[i] >= MAXM) return;
  int m = next.nmig[i]++;
  next.md[i][m] = (Dev){'M', i, gi ? gi : m + 1, slices, mib << 20, ci, ci_slices};
  next.g[i].mig = 1;
}

static void process(int i, ull pid, ull mib, int instance) {
  if (i < 0 || i >= MAXG || next.g[i].nproc >= 8) return;
  G* p = &next.g[i];
  u n = p->nproc++;
  p->pid[n] = pid;
  p->pmem[n] = mib << 20;
  p->pgi[n] = instance;
}

static void line(const char* l) {
  char name[64], text[128];
  int i, c;
  ull a, b;
  u s, part;
  int gi;
  if (*l == '#' || *l == '\n') return;
  if (sscanf(l, "err %d %63s %d", &i, name, &c) == 3)
    fault(i, name)->code = c;
  else if (sscanf(l, "delay %d %63s %u", &i, name, &s) == 3)
    fault(i, name)->delay_us = s;
  else if (sscanf(l, "hang %d %63s", &i, name) == 2)
    fault(i, name)->hang = 1;
  else if (sscanf(l, "hang %d", &i) == 1)
    fault(i, "*")->hang = 1;
  else if (sscanf(l, "delay_us %u", &next.delay_us) == 1)
    return;
  else if (sscanf(l, "init_err %d", &next.init_error) == 1)
    return;
  else if (sscanf(l, "model %95[^\n]", next.model) == 1)
    return;
  else if (sscanf(l, "driver %63s", next.driver) == 1)
    return;
  else if (sscanf(l, "gpus %d", &next.N) == 1)
    return;
  else if (sscanf(l, "xid %d %llu %llu", &i, &a, &b) == 3) {
    if (next.nxid < MAXE) next.xid[next.nxid++] = (Xid){i, a, b};
  } else if (sscanf(l, "mig %d %u %llu %d %d %u", &i, &s, &a, &gi, &c, &part) == 6)
    mig_device(i, s, a, gi, c, part);
  else if (sscanf(l, "mig %d %u %llu", &i, &s, &a) == 3)
    mig_device(i, s, a, 0, 0, 0);
  else if (sscanf(l, "proc %d %llu %llu %d", &i, &a, &b, &c) == 4)
    process(i, a, b, c);
  else if (sscanf(l, "%d %63s %127s", &i, name, text) == 3 && i >= 0 && i < MAXG)
    setting(i, name, text);
}

static void take_over(void) {
  memcpy(g, next.g, sizeof g);
  memcpy(md, next.md, sizeof md);
  memcpy(nmig, next.nmig, sizeof nmig);
  memcpy(xid, next.xid, sizeof xid);
  memcpy(faults, next.faults, sizeof faults);
  memcpy(model, next.model, sizeof model);
  memcpy(driver, next.driver, sizeof driver);
  nxid = next.nxid;
  nfaults = next.nfaults;
  init_error = next.init_error;
  delay_us = next.delay_us;
  N = next.N;
  for (int i = 0; i < MAXG; i++) gd[i] = (Dev){'G', i, -1, 8, 0, 0, 0};
}

static void load_locked(void) {
  const char* path = getenv("FAKE_NVML_STATE");
  struct stat s;
  if (N < 0) {
    text_of("FAKE_NVML_HOST", host, sizeof host);
    defaults();
    take_over();
    t0 = now();
  }
  if (!path || stat(path, &s)) return;
  if (s.st_mtim.tv_sec == seen.tv_sec && s.st_mtim.tv_nsec == seen.tv_nsec) return;
  FILE* file = fopen(path, "r");
  if (!file) return;
  seen = s.st_mtim;
  char l[256];
  defaults();
  while (fgets(l, sizeof l, file)) line(l);
  fclose(file);
  take_over();
}

void load(void) {
  pthread_mutex_lock(&reading);
  load_locked();
  pthread_mutex_unlock(&reading);
}

R pre(Dev* d, const char* symbol) {
  int gpu = d ? d->gpu : -1;
  calls++;
  if (eager < 0) eager = getenv("FAKE_NVML_EAGER") != 0;
  if (now() - checked > (eager ? 0 : 20000000ull)) {
    checked = now();
    load();
  }
  if (gpu >= 0) device_calls[gpu]++;
  if (delay_us) usleep(delay_us);
  for (int i = 0; i < nfaults; i++) {
    const Fault* f = &faults[i];
    if ((f->gpu != gpu && f->gpu != -1) || (strcmp(f->symbol, "*") && strcmp(f->symbol, symbol))) continue;
    if (f->delay_us) usleep(f->delay_us);
    if (f->code) return f->code;
    if (f->hang) {
      usleep(5000);
      load();
      i = -1; /* until the file says something else */
    }
  }
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

R nvmlInitWithFlags(u flags) {
  (void)flags;
  load();
  if (init_error) return init_error;
  if (!references++) device_files[MAXG] = open_file("nvidiactl");
  return OK;
}
R nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
R nvmlInit(void) { return nvmlInitWithFlags(0); }
R nvmlShutdown(void) {
  if (references) references--;
  if (references) return OK;
  for (int i = 0; i <= MAXG; i++) {
    if (device_files[i] > 0) close(device_files[i]);
    device_files[i] = 0;
  }
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
  return str(b, n, driver);
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
