/* Profiles of GPU instances and where they may lie. Memory has eight slices; the newest instance takes the highest
 * place that is free, in the order of the state file. Sizes follow from the product's name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "fake.h"

#define SLICES 8
#define COMPUTE_SLICES 7

typedef struct {
  u kind, id, slices, size, starts, most; /* starts: a bit for each slice at which one may begin */
  const char* suffix;
} Profile;
static const Profile profiles[] = {
    {0, 19, 1, 1, 0x7f, 7, ""}, {7, 20, 1, 1, 0x7f, 1, "+me"}, {9, 15, 1, 2, 0x55, 4, ""}, {1, 14, 2, 2, 0x15, 3, ""},
    {2, 9, 3, 4, 0x11, 2, ""},  {3, 5, 4, 4, 0x01, 1, ""},     {4, 0, 7, 8, 0x01, 1, ""},
};
#define PROFILES (sizeof profiles / sizeof *profiles)

/* GB in a profile's name by its size in slices. */
static u named_gb(const char* product, u size) {
  static const struct {
    const char* model;
    u one, two, four, eight;
  } sizes[] = {{"B200", 23, 45, 90, 180}, {"H200", 18, 35, 71, 141}, {"A100-SXM4-40GB", 5, 10, 20, 40}};
  u one = 10, two = 20, four = 40, eight = 80;
  for (u k = 0; k < sizeof sizes / sizeof *sizes; k++)
    if (strstr(product, sizes[k].model)) {
      one = sizes[k].one;
      two = sizes[k].two;
      four = sizes[k].four;
      eight = sizes[k].eight;
    }
  return size == 1 ? one : size == 2 ? two : size == 4 ? four : eight;
}

static ull memory_mib(const char* product, const Profile* p) {
  static const ull h100[] = {0, 9856, 20096, 0, 40448, 0, 0, 0, 81153};
  return named_gb(product, 8) == 80 ? h100[p->size] : named_gb(product, p->size) * 1000ull;
}

static void name_of(const char* product, const Profile* p, char* into) {
  sprintf(into, "%ug.%ugb%s", p->slices, named_gb(product, p->size), p->suffix);
}

int profile_named(const char* product, const char* name, u* slices, ull* mib, u* id) {
  char mine[32];
  for (u k = 0; k < PROFILES; k++) {
    name_of(product, &profiles[k], mine);
    if (strcasecmp(mine, name)) continue;
    *slices = profiles[k].slices;
    *mib = memory_mib(product, &profiles[k]);
    *id = profiles[k].id;
    return 1;
  }
  return 0;
}

/* The profile of an instance: the one that it was made of, else the closest in memory with so many slices. */
static const Profile* profile_of(const Dev* m) {
  const Profile* best = &profiles[0];
  long long least = 1ll << 60;
  for (u k = 0; k < PROFILES; k++) {
    long long off = (long long)memory_mib(model, &profiles[k]) - (long long)(m->mem >> 20);
    if (m->profile ? profiles[k].id + 1 == m->profile : profiles[k].slices == m->slices && llabs(off) < least) {
      best = &profiles[k];
      least = llabs(off);
    }
  }
  return best;
}

static u room(const Profile* p, u start) { return ((1u << p->size) - 1) << start; }

/* What is taken of the memory slices by the instances before this MIG device (all of them: 0), and its own start. */
static u taken(int gpu, const Dev* until, u* start, u* compute) {
  u mask = 0, at[MAXM];
  if (compute) *compute = 0;
  for (int m = 0; m < nmig[gpu]; m++) {
    const Dev* each = &md[gpu][m];
    const Profile* p = profile_of(each);
    int same = -1;
    for (int k = 0; k < m; k++)
      if (md[gpu][k].gi == each->gi) same = k;
    at[m] = 0;
    if (same >= 0)
      at[m] = at[same];
    else {
      for (u s = 0; s < SLICES; s++)
        if (p->starts >> s & 1 && !(mask & room(p, s))) at[m] = s;
      mask |= room(p, at[m]);
      if (compute) *compute += p->slices;
    }
    if (each == until) {
      *start = at[m];
      return mask;
    }
  }
  return mask;
}

static u existing(int gpu, const Profile* p) {
  u count = 0;
  for (int m = 0; m < nmig[gpu]; m++) count += profile_of(&md[gpu][m]) == p && md[gpu][m].ci == 0;
  return count;
}

static const Profile* by_id(u id) {
  for (u k = 0; k < PROFILES; k++)
    if (profiles[k].id == id) return &profiles[k];
  return 0;
}

typedef struct {
  u id, p2p, slices, count, mp, ce, dec, enc, jpeg, ofa;
  ull mib;
} Info;
typedef struct {
  u version, id, p2p, slices, count, mp, ce, dec, enc, jpeg, ofa;
  ull mib;
  char name[96];
} NamedInfo;

R nvmlDeviceGetGpuInstanceProfileInfo(Dev* d, u kind, Info* o) {
  PHYS(d);
  for (u k = 0; k < PROFILES; k++) {
    const Profile* p = &profiles[k];
    if (p->kind != kind) continue;
    *o = (Info){p->id,     0, p->slices, p->most, 16 * p->slices,      p->slices,
                p->slices, 0, p->slices, 0,       memory_mib(model, p)};
    return OK;
  }
  return NOTSUP;
}

#ifndef OLD_DRIVER
static R named(const Profile* p, NamedInfo* o) {
  if (o->version >> 24 != 2) return VERS;
  if (!p) return NOTSUP;
  *o = (NamedInfo){o->version, p->id,     0, p->slices, p->most, 16 * p->slices,
                   p->slices,  p->slices, 0, p->slices, 0,       memory_mib(model, p),
                   "MIG "};
  name_of(model, p, o->name + 4);
  return OK;
}
R nvmlDeviceGetGpuInstanceProfileInfoV(Dev* d, u kind, NamedInfo* o) {
  PHYS(d);
  for (u k = 0; k < PROFILES; k++)
    if (profiles[k].kind == kind) return named(&profiles[k], o);
  return named(0, o);
}
R nvmlDeviceGetGpuInstanceProfileInfoByIdV(Dev* d, u id, NamedInfo* o) {
  PHYS(d);
  return named(by_id(id), o);
}
#endif

R nvmlDeviceGetGpuInstanceRemainingCapacity(Dev* d, u id, u* o) {
  PHYS(d);
  const Profile* p = by_id(id);
  if (!p) return INVAL;
  u compute, mask = taken(d->gpu, 0, 0, &compute), free = 0, had = existing(d->gpu, p);
  for (u s = 0; s < SLICES; s++) {
    if (!(p->starts >> s & 1) || mask & room(p, s)) continue;
    mask |= room(p, s);
    free++;
  }
  u left = (COMPUTE_SLICES - compute) / p->slices, unused = p->most > had ? p->most - had : 0;
  if (free > left) free = left;
  *o = free < unused ? free : unused;
  return OK;
}

typedef struct {
  u start, size;
} Place;
R nvmlDeviceGetGpuInstancePossiblePlacements_v2(Dev* d, u id, Place* o, u* n) {
  PHYS(d);
  const Profile* p = by_id(id);
  if (!p) return INVAL;
  u count = 0;
  for (u s = 0; s < SLICES; s++) {
    if (!(p->starts >> s & 1)) continue;
    if (o && count >= *n) return SMALL;
    if (o) o[count] = (Place){s, p->size};
    count++;
  }
  *n = count;
  return OK;
}

R nvmlDeviceGetGpuInstances(Dev* d, u id, Dev** o, u* n) {
  PHYS(d);
  const Profile* p = by_id(id);
  if (!p) return INVAL;
  *n = 0;
  for (int m = 0; m < nmig[d->gpu]; m++) {
    int same = 0;
    for (int k = 0; k < m; k++) same |= md[d->gpu][k].gi == md[d->gpu][m].gi;
    if (!same && profile_of(&md[d->gpu][m]) == p) o[(*n)++] = &md[d->gpu][m];
  }
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
  Dev* device;
  u id, profile;
  Place place;
} InstanceInfo;
R nvmlGpuInstanceGetInfo(Dev* m, InstanceInfo* o) {
  P(m);
  const Profile* p = profile_of(m);
  u start = 0;
  taken(m->gpu, m, &start, 0);
  *o = (InstanceInfo){&gd[m->gpu], m->gi, p->id, {start, p->size}};
  return OK;
}
