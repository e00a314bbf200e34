/* Calls and fields of newer libraries. What a device has follows from its product name: Blackwell has NVLink counters
 * of its own and smooths its power, and a superchip (GB200, GH200) has links to its CPU. */
#include <string.h>
#include "fake.h"

int is_blackwell(void) { return strstr(model, "B200") || strstr(model, "B300"); }
int has_cpu_link(void) { return strstr(model, "GB") || strstr(model, "GH"); }

static void whole(FV* f, u amount) {
  f->type = 1;
  f->v.ui = amount;
}
static void large(FV* f, ull amount) {
  f->type = 3;
  f->v.ul = amount;
}
static void signed_(FV* f, int amount) {
  f->type = 5;
  f->v.i = amount;
}

static void power_field(G* p, FV* f) {
  if (f->scope == 0)
    whole(f, p->power);
  else if (f->scope == 1 && has_cpu_link())
    whole(f, p->power + 250000);
  else if (f->scope == 2 && is_blackwell())
    whole(f, p->power / 5);
  else
    f->ret = NOTSUP;
}

/* Throttling is counted while its bit is set: a tenth of the time since the start stands for it. */
static ull throttled(G* p, ull bit) { return p->throttle & bit ? moment() / 10 : 0; }

static void link_field(G* p, FV* f) {
  if (!is_blackwell()) {
    f->ret = NOTSUP;
    return;
  }
  if (f->id >= 201 && f->id <= 204)
    large(f, (ull)p->util << 30);
  else if (f->id == 220 || f->id == 222 || f->id == 293)
    large(f, 1 << 8 | 15); /* 1e-15, packed */
  else if (f->id == 164)
    whole(f, 53125);
  else if (f->id == 294)
    large(f, (ull)p->util << 20);
  else if (f->id == 235)
    large(f, 1000000);
  else
    large(f, p->nvl_err);
}

void newer_field(G* p, FV* f) {
  u id = f->id;
  if (is_old_numbering() && id >= 251 && id <= 273) id = id <= 255 ? id + 18 : id - 5;
  switch (id) {
    case 185:
    case 186:
      power_field(p, f);
      return;
    case 192:
      whole(f, p->limit);
      return;
    case 193:
      signed_(f, -10);
      return;
    case 194:
      signed_(f, -2);
      return;
    case 195:
      signed_(f, 0);
      return;
    case 196:
      signed_(f, 0);
      return;
    case 269:
      large(f, throttled(p, 0x20));
      return;
    case 270:
      large(f, throttled(p, 0x40));
      return;
    case 271:
      large(f, throttled(p, 0x80));
      return;
    case 95:
    case 169:
      whole(f, 0);
      return;
    case 147:
      whole(f, 18);
      return;
    case 197:
    case 198:
      large(f, (ull)p->util << 32);
      return;
    case 274:
      whole(f, 100);
      return;
    case 301:
    case 302:
    case 303:
    case 304:
    case 307:
      whole(f, 0);
      return;
    case 305:
      whole(f, 640);
      return;
    case 306:
      whole(f, 0);
      return;
    default:
      break;
  }
  if (id >= 173 && id <= 183) {
    whole(f, 0);
    return;
  }
  if (id == 164 || (id >= 201 && id <= 222) || (id >= 235 && id <= 250) || (id >= 293 && id <= 295)) {
    link_field(p, f);
    return;
  }
  if (is_blackwell()) switch (id) {
      case 251:
        whole(f, 1);
        return;
      case 254:
        whole(f, 1000000);
        return;
      case 255:
        whole(f, 200000);
        return;
      case 258:
        whole(f, 99);
        return;
      case 264:
        whole(f, 0);
        return;
      default:
        break;
    }
  if (has_cpu_link()) switch (id) {
      case 170:
        whole(f, 10);
        return;
      case 171:
        whole(f, 1);
        return;
      case 172:
        whole(f, 45000);
        return;
      case 231:
      case 232:
      case 233:
      case 234:
        whole(f, 0);
        return;
      default:
        break;
    }
  f->ret = NOTSUP;
}

#define TEXT(name, text)         \
  R name(Dev* d, char* b, u n) { \
    PHYS(d);                     \
    return str(b, n, text);      \
  }
TEXT(nvmlDeviceGetVbiosVersion, "96.00.74.00.01")
TEXT(nvmlDeviceGetBoardPartNumber, "692-2G520-0200-000")
TEXT(nvmlDeviceGetInforomImageVersion, "G520.0200.00.05")
R nvmlDeviceGetGspFirmwareVersion(Dev* d, char* b) {
  PHYS(d);
  strcpy(b, "580.95.05");
  return OK;
}

#define NUMBER(name, T, amount) \
  R name(Dev* d, T* o) {        \
    PHYS(d);                    \
    S(d);                       \
    *o = TOLD(0, amount);       \
    return OK;                  \
  }
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, u, 5)
#ifndef OLD_DRIVER
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, ull, 0x1ff)
#endif
NUMBER(nvmlDeviceGetAccountingMode, u, 0)
NUMBER(nvmlDeviceGetVirtualizationMode, u, 0)
R nvmlDeviceGetNumaNodeId(Dev* d, int* o) {
  PHYS(d);
  if (!has_cpu_link()) return NOTSUP;
  *o = 1;
  return OK;
}
R nvmlDeviceGetNvLinkVersion(Dev* d, u link, u* o) {
  PHYS(d);
  if (link >= 18) return INVAL;
  *o = is_blackwell() ? 7 : 6;
  return OK;
}
R nvmlDeviceGetClock(Dev* d, u domain, u which, u* o) {
  PHYS(d);
  if (which > 2) return NOTSUP;
  *o = domain == 2 ? 2619 : 1980;
  return OK;
}
R nvmlDeviceGetMaxCustomerBoostClock(Dev* d, u domain, u* o) {
  PHYS(d);
  *o = domain == 2 ? 2619 : 1980;
  return OK;
}
R nvmlDeviceGetPowerManagementLimitConstraints(Dev* d, u* low, u* high) {
  PHYS(d);
  *low = TOLD(0, 200000);
  *high = TOLD(1, 700000);
  return OK;
}
#ifndef OLD_DRIVER
R nvmlDeviceGetJpgUtilization(Dev* d, u* share, u* period) {
  PHYS(d);
  *share = TOLD(0, 0);
  *period = TOLD(1, 167000);
  return OK;
}
R nvmlDeviceGetOfaUtilization(Dev* d, u* share, u* period) {
  PHYS(d);
  *share = TOLD(0, 0);
  *period = TOLD(1, 167000);
  return OK;
}
#endif
R nvmlDeviceGetEncoderStats(Dev* d, ull* count, ull* fps, ull* latency) {
  PHYS(d);
  *count = TOLD(0, 0);
  *fps = TOLD(1, 0);
  *latency = TOLD(2, 0);
  return OK;
}
R nvmlDeviceGetFBCStats(Dev* d, u* o) {
  PHYS(d);
  for (int k = 0; k < 3; k++) o[k] = TOLD(k, 0);
  return OK;
}
R nvmlDeviceGetRowRemapperHistogram(Dev* d, u* o) {
  PHYS(d);
  S(d);
  u spent = p->remap_c + p->remap_u;
  o[0] = 640 - spent;
  o[1] = spent;
  o[2] = o[3] = o[4] = 0; /* max, high, partial, low, none */
  return OK;
}
R nvmlDeviceGetAutoBoostedClocksEnabled(Dev* d, u* now_, u* default_) {
  PHYS(d);
  (void)now_;
  (void)default_;
  return NOTSUP;
}
R nvmlDeviceGetActiveVgpus(Dev* d, u* n, u* o) {
  PHYS(d);
  (void)n;
  (void)o;
  return NOTSUP;
}
R nvmlDeviceGetNumFans(Dev* d, u* o) {
  PHYS(d);
  *o = TOLD(0, 0);
  return OK;
}

#ifndef OLD_DRIVER
/* Structs that begin with their version: a wrong one is refused, as the library does. */
#define VERSIONED(d, o, version)            \
  do {                                      \
    PHYS(d);                                \
    if (*(u*)(o) != (version)) return VERS; \
  } while (0)
R nvmlDeviceGetMarginTemperature(Dev* d, int* o) {
  VERSIONED(d, o, 0x1000008);
  S(d);
  o[1] = (int)TOLD(0, 87 - (int)p->temp);
  return OK;
}
R nvmlDeviceGetRepairStatus(Dev* d, u* o) {
  VERSIONED(d, o, 0x100000C);
  o[1] = TOLD(0, 0);
  o[2] = TOLD(1, 0);
  return OK;
}
R nvmlDeviceGetUnrepairableMemoryFlag_v1(Dev* d, u* o) {
  PHYS(d);
  o[1] = TOLD(0, 0);
  return OK;
}
R nvmlDeviceGetAddressingMode(Dev* d, u* o) {
  VERSIONED(d, o, 0x1000008);
  o[1] = TOLD(0, has_cpu_link() ? 2 : 1);
  return OK;
}
R nvmlDeviceGetDramEncryptionMode(Dev* d, u* current, u* pending) {
  VERSIONED(d, current, 0x1000008);
  if (!is_blackwell()) return NOTSUP;
  current[1] = pending[1] = 0;
  return OK;
}
R nvmlDeviceGetSramEccErrorStatus(Dev* d, u* o) {
  VERSIONED(d, o, 0x1000068);
  S(d);
  ull* count = (ull*)(o + 2);
  memset(count, 0, 11 * sizeof *count);
  count[5] = p->ecc_c;
  o[2 + 22] = 0; /* threshold exceeded */
  return OK;
}
R nvmlDeviceGetC2cModeInfoV(Dev* d, u* o) {
  PHYS(d);
  *o = has_cpu_link();
  return OK;
}
R nvmlDeviceGetPlatformInfo(Dev* d, char* o) {
  VERSIONED(d, o, 0x200002c);
  if (!has_cpu_link()) return NOTSUP;
  memset(o + 4, 0, 40);
  strcpy(o + 20, "1820224110129");
  o[36] = 3;
  o[37] = 2;
  o[38] = 1;
  o[39] = 1;
  o[40] = (char)(d->gpu + 1); /* slot, tray, host, peer, module */
  return OK;
}
R nvmlDeviceGetGpuFabricInfoV(Dev* d, u* o) {
  P(d);
  if (d->kind != 'G') return NOTSUP;
  if (*o != 0x2000024 && *o != 0x3000028) return VERS;
  int third = *o == 0x3000028;
  memset(o + 1, 0x11, 16);
  o[5] = TOLD(0, OK);
  o[6] = TOLD(1, 1);                            /* status, clique */
  ((unsigned char*)(o + 7))[0] = TOLD(2, 3);    /* state: completed */
  o[8] = TOLD(3, 2 | 2 << 2 | 2 << 4 | 2 << 6); /* nothing degraded, recovering, unhealthy or timed out */
  if (third) ((unsigned char*)(o + 9))[0] = 1;
  return OK;
}
#endif
