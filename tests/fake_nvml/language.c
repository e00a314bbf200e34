/* The language of the state file; the README tells it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "state.h"

State next;

void text_of(const char* name, char* into, size_t size) {
  const char* told = getenv(name);
  if (told) snprintf(into, size, "%s", told);
}

/* Each third board idles, the others work for this process. */
void defaults(void) {
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

void understand(const char* l) {
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
  else if (sscanf(l, "mig %d %63s", &i, name) == 2 && profile_named(next.model, name, &s, &a, &part))
    mig_profile(i, s, a, part);
  else if (sscanf(l, "proc %d %llu %lld %d %15s", &i, &a, &mib, &c, kind) >= 4)
    process(i, a, mib, c, kind[0]);
  else if (sscanf(l, "%d %63s %127s", &i, name, text) == 3 && i >= 0 && i < MAXG)
    setting(i, name, text);
}
