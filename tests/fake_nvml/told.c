/* Answers that the state says outright. */
#include <stdlib.h>
#include <string.h>
#include "state.h"

ull answer(Dev* d, const char* symbol, int place, ull otherwise) {
  for (int k = holds.nanswers - 1; k >= 0; k--) {
    const Answer* a = &holds.answers[k];
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
  for (int k = holds.ntold - 1; k >= 0; k--) { /* the last line wins */
    const Told* t = &holds.told[k];
    if (t->gpu != gpu || t->id != f->id || (t->scope >= 0 && (u)t->scope != f->scope)) continue;
    f->type = t->type;
    f->v.ul = t->bits;
    return t->ret;
  }
  return -1;
}

int is_old_numbering(void) {
  double version = strtod(holds.driver, 0);
  return version >= 575 && version < 580.82;
}
