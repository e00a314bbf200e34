/* Field values that every board has; newer.c has the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"

R nvmlDeviceGetFieldValues(Dev* d, int n, FV* f) {
  PHYS(d);
  S(d);
  for (int i = 0; i < n; i++, f++) {
    f->ts = now() / 1000;
    f->lat = 1;
    f->ret = OK;
    f->type = 3;
    f->v.ul = 0;
    R said = told_field(d->gpu, f);
    if (said >= 0) {
      f->ret = said;
      continue;
    }
    switch (f->id) {
      case 82:
        f->type = 1;
        f->v.ui = p->mtemp;
        break;
      case 91:
        f->type = 1;
        f->v.ui = 18;
        break;
      case 83:
        f->v.ul = p->energy0 + moment() / 1000000 * p->power / 1000;
        break;
      case 138:
      case 139:
      case 140:
      case 141:
        f->v.ul = moment() / 1000000 * p->util;
        break;
      case 38:
      case 45:
      case 52:
      case 59:
        f->v.ul = p->nvl_err;
        break;
      case 94:
        f->type = 1;
        break;
      case 230:
        f->type = 1;
        f->v.ui = p->remap_pend ? 1 : 0;
        break;
      case 74:
      case 75:
      case 76:
      case 77:
      case 78:
      case 79:
      case 80:
      case 81:
        break;
      default:
        newer_field(p, f);
    }
  }
  return OK;
}
