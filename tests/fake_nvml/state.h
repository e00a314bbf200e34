/* What the state file says, as it is read and as it holds. */
#ifndef FAKE_NVML_STATE_H
#define FAKE_NVML_STATE_H
#include <stddef.h>
#include "fake.h"
#define METRIC 0x10000 /* added to the ids of the chip's counters, which stand among the fields */
typedef struct {
  int gpu;
  u id;
  long scope; /* -1: any */
  R ret;
  u type;
  ull bits;
} Told;
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
typedef struct {
  G g[MAXG];
  Dev md[MAXG][MAXM];
  int nmig[MAXG], nxid, nfaults, ntold, nanswers, init_error, driver_gone, N;
  double standing; /* the moment at which the clock stands; negative: it goes */
  Told told[MAXE];
  Answer answers[MAXE];
  Xid xid[MAXE];
  Fault faults[MAXE];
  u delay_us;
  char model[96], driver[64];
} State;
/* What a file says is built in `next` and copied in one go: other threads must not see half of it. */
extern State next, holds;
void text_of(const char* name, char* into, size_t size); /* a variable, if it is set */
void defaults(void);
void understand(const char* line);
void new_handles(void); /* handles of an opening before are refused from now on */
#endif
