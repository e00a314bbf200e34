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

#define SETS 4 /* handles that can still be told apart: of this opening or layout and of the three before */
#define NO_ATTACH 2

typedef struct {
  int gpu;
  u id;
  long scope; /* -1: any */
  R ret;
  u type;
  ull bits;
} Told;

#define METRIC 0x10000 /* added to the ids of the chip's counters, which stand among the fields */

typedef struct {
  int gpu, count;
  char symbol[64];
  ull numbers[4];
} Answer;

typedef struct {
  int gpu;
  char symbol[64];
  int code;
  u delay_us;
  int hang;
} Fault;

G g[MAXG];
static Dev gpu_sets[SETS][MAXG], mig_sets[MAXG][SETS][MAXM];
static int gpu_set, mig_set[MAXG];
Dev* gd = gpu_sets[0];
Dev* md[MAXG];
int nmig[MAXG], N = -1, nxid;
Xid xid[MAXE];
ull t0;
char model[96] = "NVIDIA H100 80GB HBM3", host[64] = "node000";

static char driver[64] = "580.95.05";
static Fault faults[MAXE];
static Told told[MAXE];
static Answer answers[MAXE];
static int nanswers;
static int nfaults, ntold, init_error, driver_gone, references, eager = -1;
static double standing = -1; /* the moment at which the clock stands; negative: it goes */
static u delay_us;
static ull calls, device_calls[MAXG], checked;
static struct timespec seen;
static int device_files[MAXG + 1];
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* What a file says is built here and copied in one go: other threads must not see half of it. */
static struct {
  G g[MAXG];
  Dev md[MAXG][MAXM];
  int nmig[MAXG], nxid, nfaults, ntold, init_error, driver_gone, N;
  Told told[MAXE];
  Answer answers[MAXE];
  int nanswers;
  double standing;
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

ull moment(void) { return standing < 0 ? now() - t0 : (ull)(standing * 1e9); }

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
  next.standing = -1;
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
      p->pkind[0] = 'c';
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
      {"procs", &p->nproc},        {"unified", &p->unified},
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
  next.md[i][m] = (Dev){'M', i, gi ? gi : m + 1, slices, mib << 20, ci, ci_slices, 0, 0};
  next.g[i].mig = 1;
}

static void mig_profile(int i, u slices, ull mib, u profile) {
  mig_device(i, slices, mib, 0, 0, 0);
  if (i >= 0 && i < MAXG && next.nmig[i]) next.md[i][next.nmig[i] - 1].profile = profile + 1;
}

static void process(int i, ull pid, long long mib, int instance, char kind) {
  if (i < 0 || i >= MAXG || next.g[i].nproc >= MAXP) return;
  G* p = &next.g[i];
  u n = p->nproc++;
  p->pid[n] = pid;
  p->pmem[n] = mib < 0 ? ~0ull : (ull)mib << 20;
  p->pkind[n] = kind;
  p->pgi[n] = instance;
}

/* field <gpu> <id> <scope or *> <type or error> <value> */
static int field(const char* l) {
  static const char* types[] = {"double", "uint", "ulong", "ulonglong", "longlong", "int", "ushort"};
  Told t = {.ret = -1};
  char scope[16], type[16], amount[64];
  if (sscanf(l, "field %d %u %15s %15s %63s", &t.gpu, &t.id, scope, type, amount) != 5) return 0;
  double real = strtod(amount, 0);
  t.scope = *scope == '*' ? -1 : strtol(scope, 0, 0);
  t.bits = *amount == '-' ? (ull)strtoll(amount, 0, 0) : strtoull(amount, 0, 0);
  for (u k = 0; k < 7; k++)
    if (!strcmp(type, types[k])) {
      t.type = k;
      t.ret = OK;
    }
  if (t.ret)
    t.ret = (R)t.bits; /* an error code */
  else if (t.type == 0)
    memcpy(&t.bits, &real, sizeof real);
  if (next.ntold < MAXE) next.told[next.ntold++] = t;
  return 1;
}

/* gpm <gpu> <id> <value> or gpm <gpu> <id> error <code> */
static int metric(const char* l) {
  Told t = {.ret = OK, .scope = -1};
  double value;
  if (sscanf(l, "gpm %d %u error %d", &t.gpu, &t.id, &t.ret) != 3) {
    if (sscanf(l, "gpm %d %u %lf", &t.gpu, &t.id, &value) != 3) return 0;
    memcpy(&t.bits, &value, sizeof value);
  }
  t.id |= METRIC;
  if (next.ntold < MAXE) next.told[next.ntold++] = t;
  return 1;
}

/* answer <gpu> <symbol> <number> ... */
static int answered(const char* l) {
  Answer a = {0};
  a.count = sscanf(l, "answer %d %63s %lli %lli %lli %lli", &a.gpu, a.symbol, (long long*)a.numbers,
                   (long long*)a.numbers + 1, (long long*)a.numbers + 2, (long long*)a.numbers + 3) -
            2;
  if (a.count < 1) return 0;
  if (next.nanswers < MAXE) next.answers[next.nanswers++] = a;
  return 1;
}

ull answer(Dev* d, const char* symbol, int place, ull otherwise) {
  for (int k = nanswers - 1; k >= 0; k--) {
    const Answer* a = &answers[k];
    if ((a->gpu == d->gpu || a->gpu == -1) && place < a->count && !strcmp(a->symbol, symbol)) return a->numbers[place];
  }
  return otherwise;
}

R told_metric(int gpu, u id, double* value) {
  FV f = {.id = id | METRIC};
  R said = told_field(gpu, &f);
  if (said == OK) *value = f.v.d;
  return said;
}

R told_field(int gpu, FV* f) {
  for (int k = ntold - 1; k >= 0; k--) { /* the last line wins */
    const Told* t = &told[k];
    if (t->gpu != gpu || t->id != f->id || (t->scope >= 0 && (u)t->scope != f->scope)) continue;
    f->type = t->type;
    f->v.ul = t->bits;
    return t->ret;
  }
  return -1;
}

int is_old_numbering(void) {
  double version = strtod(driver, 0);
  return version >= 575 && version < 580.82;
}

static void line(const char* l) {
  char name[64], text[128], kind[16] = "compute";
  int i, c;
  ull a, b;
  long long mib;
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
  else if (sscanf(l, "driver_gone %d", &next.driver_gone) == 1)
    return;
  else if (sscanf(l, "driver %63s", next.driver) == 1)
    return;
  else if (sscanf(l, "gpus %d", &next.N) == 1)
    return;
  else if (sscanf(l, "xid %d %llu %llu", &i, &a, &b) == 3) {
    if (next.nxid < MAXE) next.xid[next.nxid++] = (Xid){i, a, b};
  } else if (sscanf(l, "hide %63s", name) == 1)
    fault(-1, name)->code = MISSING;
  else if (sscanf(l, "clock %lf", &next.standing) == 1 || metric(l) || answered(l))
    return;
  else if (field(l))
    return;
  else if (sscanf(l, "mig %d %u %llu %d %d %u", &i, &s, &a, &gi, &c, &part) == 6)
    mig_device(i, s, a, gi, c, part);
  else if (sscanf(l, "mig %d %u %llu", &i, &s, &a) == 3)
    mig_device(i, s, a, 0, 0, 0);
  else if (sscanf(l, "mig %d %63s", &i, name) == 2 && profile_named(name, &s, &a, &part))
    mig_profile(i, s, a, part);
  else if (sscanf(l, "proc %d %llu %lld %d %15s", &i, &a, &mib, &c, kind) >= 4)
    process(i, a, mib, c, kind[0]);
  else if (sscanf(l, "%d %63s %127s", &i, name, text) == 3 && i >= 0 && i < MAXG)
    setting(i, name, text);
}

/* Handles of the layout before are refused from now on. */
static void new_layout(int i, const Dev* devices) {
  Dev* before = mig_sets[i][mig_set[i]];
  Dev* fresh = mig_sets[i][mig_set[i] = (mig_set[i] + 1) % SETS];
  memcpy(fresh, devices, sizeof mig_sets[i][0]);
  for (int m = 0; m < MAXM; m++) before[m].kind = 'm';
  md[i] = fresh;
}

/* The same for all handles of an opening before. */
static void new_handles(void) {
  Dev devices[MAXM];
  for (int i = 0; i < MAXG; i++) gd[i].kind = 'g';
  gd = gpu_sets[gpu_set = (gpu_set + 1) % SETS];
  for (int i = 0; i < MAXG; i++) {
    gd[i] = (Dev){'G', i, -1, 8, 0, 0, 0, 0, 0};
    memcpy(devices, md[i], sizeof devices);
    new_layout(i, devices);
  }
}

static void take_over(void) {
  memcpy(g, next.g, sizeof g);
  for (int i = 0; i < MAXG; i++)
    if (!md[i] || nmig[i] != next.nmig[i] || memcmp(md[i], next.md[i], sizeof next.md[i])) new_layout(i, next.md[i]);
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
  memcpy(told, next.told, sizeof told);
  ntold = next.ntold;
  memcpy(answers, next.answers, sizeof answers);
  nanswers = next.nanswers;
  standing = next.standing;
  driver_gone = next.driver_gone;
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
  if (driver_gone) references = 0; /* whoever had opened it must do so anew */
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
  if (init_error) return init_error;
  if (driver_gone) return NOT_LOADED;
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
