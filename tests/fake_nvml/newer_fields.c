/* Fields of newer libraries; Blackwell has NVLink counters of its own. */
#include "fake.h"

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
        whole(f, 1000);
        return;
      case 255:
        whole(f, 200);
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
