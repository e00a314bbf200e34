/* A stand-in for parts of NVIDIA's management library, told by the test itself, call by call, what to answer.
 *
 * It is loaded into the test's process; sc_* functions set answers. What was not set is not supported. Own code: the
 * structs follow the layout that nvidia-ml-py declares. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long ull;
typedef int Return;
enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, TOO_SMALL = 7, TIMEOUT = 10, VERSION = 25 };
enum { SILENT = -1, GPUS = 4, INSTANCES = 8, LINKS = 18, MOST = 4096, PROCESSES = 64 };

typedef struct { int gpu, instance; } Device; /* instance 0: the GPU itself */

extern Device devices[GPUS][INSTANCES];
extern pthread_mutex_t lock;

/* Counts the call and returns the code that is forced on it, if any. */
Return enter(const char *function, Device *device);
#define ENTER(device) do { Return code_ = enter(__func__, device); if (code_) return code_; } while (0)

void reset_fields(void);
void reset_metrics(void);
void reset_links(void);
void reset_events(void);
