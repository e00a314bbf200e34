/* Stands in for libnvidia-ml.so.1: GPU-bbbb with three MIG devices, of which two lie in one GPU instance; a gap in the
 * list of devices. MIG_LIBRARY_FAILS names a function that fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, UNKNOWN = 999, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };

struct device {
    const char *uuid;
    unsigned gpu_instance;
};

static struct device gpu = {"GPU-bbbb", 0};
static struct device migs[4] = {{"MIG-a", 1}, {0, 0}, {"MIG-b", 5}, {"MIG-c", 5}};
static int opened;

static int fails(const char *name)
{
    const char *wanted = getenv("MIG_LIBRARY_FAILS");
    return wanted && !strcmp(wanted, name);
}

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    opened++;
    return fails("init") ? DRIVER_NOT_LOADED : OK;
}

int nvmlShutdown(void)
{
    opened--;
    fprintf(stderr, "still open: %d\n", opened);
    return OK;
}

const char *nvmlErrorString(int code)
{
    (void)code;
    return "told by the test";
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **handle)
{
    *handle = &gpu;
    return strcmp(uuid, gpu.uuid) ? NOT_FOUND : OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct device *of, unsigned index, struct device **handle)
{
    (void)of;
    if (index >= 4 || !migs[index].uuid)
        return NOT_FOUND;
    *handle = &migs[index];
    return OK;
}

int nvmlDeviceGetGpuInstanceId(struct device *of, unsigned *id)
{
    *id = of->gpu_instance;
    return fails("instance") ? UNKNOWN : OK;
}

int nvmlDeviceGetUUID(struct device *of, char *uuid, unsigned length)
{
    snprintf(uuid, length, "%s", of->uuid);
    return OK;
}
