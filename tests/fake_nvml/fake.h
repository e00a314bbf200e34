/* What the files of the stand-in share: devices, their state, and the check that every call begins with. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H
#define MAXG 16
#define MAXM 8
#define MAXE 1024
#define MAXP 16
typedef unsigned u;
typedef unsigned long long ull;
typedef int R;
enum {
  OK = 0,
  UNINIT = 1,
  INVAL = 2,
  NOTSUP = 3,
  NOTFOUND = 6,
  SMALL = 7,
  NOT_LOADED = 9,
  TIMEOUT = 10,
  MISSING = 13,
  LOST = 15,
  VERS = 25
};
/* kind 'G': a GPU, 'M': a MIG device; in lower case a handle of an earlier opening or layout, which is refused */
typedef struct {
  int kind, gpu, gi;
  u slices;
  ull mem;
  int ci;
  u ci_slices;
  u profile; /* id of its profile, plus one; 0: the one that fits its sizes */
  u spare;   /* no padding: handles are compared as bytes */
} Dev;
typedef struct {
  ull total, used;
  u util, mutil, temp, mtemp, power, limit, sm, mclk, pstate, pcie_gen, pcie_w;
  ull throttle, energy0, ecc_c, ecc_u, nvl_err;
  u remap_c, remap_u, remap_pend, remap_fail, mig, nvl_down, nproc, unified;
  u pid[MAXP];
  ull pmem[MAXP]; /* all ones: not told */
  int pgi[MAXP];
  char pkind[MAXP]; /* compute, graphics, mps: their first letters */
} G;
typedef struct {
  u id, scope;
  long long ts, lat;
  u type;
  R ret;
  union {
    double d;
    u ui;
    ull ul;
    int i;
  } v;
} FV;
typedef struct {
  char legacy[16];
  u domain, bus, device, id, sub;
  char busId[32];
} Pci;
typedef struct {
  int gpu;
  ull code, seq;
} Xid;
extern G g[MAXG];          /* the boards */
extern Dev *gd, *md[MAXG]; /* handles of boards and of MIG devices, those that are valid now */
extern int nmig[MAXG], N;  /* MIG devices of each board; boards */
extern Xid xid[MAXE];
extern int nxid;
extern ull t0; /* when the library was loaded */
extern char host[64];
void load(void);    /* reads the state again if it changed */
void attach(int i); /* opens the device file, where FAKE_NVML_DEV names a folder of such */
extern char model[96];
ull now(void);
ull moment(void); /* nanoseconds since the library was loaded, or what the state says: counters depend on it alone */
R pre(Dev* d, const char* fn);      /* counts the call, reads the state again, sleeps, hangs, and answers faults */
R str(char* b, u n, const char* s); /* copies a text, or says that the buffer is too small */
int profile_named(const char* product, const char* name, u* slices, ull* mib,
                  u* id);                    /* whether there is such a profile */
R told_metric(int gpu, u id, double* value); /* the same of one of the chip's counters */
ull answer(Dev* d, const char* symbol, int place,
           ull otherwise);    /* a number of a call's answer, if the state says it */
R told_field(int gpu, FV* f); /* what the state says of the field; -1 where it says nothing */
int is_old_numbering(void);   /* a driver that has some fields by other numbers */
int is_blackwell(void);       /* by the product's name */
int has_cpu_link(void);
void newer_field(G* p, FV* f); /* fields that fields.c does not know; NOT_SUPPORTED where nobody does */
/* Number `place` of the answer: what the state says, else this. */
#define TOLD(place, otherwise) answer((Dev*)d, __func__, place, (ull)(otherwise))
#define P(d)                         \
  do {                               \
    R r_ = pre((Dev*)(d), __func__); \
    if (r_) return r_;               \
  } while (0)
#define PHYS(d)                                  \
  do {                                           \
    P(d);                                        \
    if (((Dev*)(d))->kind != 'G') return NOTSUP; \
  } while (0)
#define S(d)                   \
  G* p = &g[((Dev*)(d))->gpu]; \
  (void)p
#endif
