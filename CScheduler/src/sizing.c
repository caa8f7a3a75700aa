// sizing.c - how many CPUs this process may use.

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cscheduler/internals/sizing.h"
#include "cscheduler/scheduler.h"
#include "port.h"

static uint32_t affinity(void)
{
    // A mask for more CPUs than the kernel knows is refused until it is large enough.
    for (int cpus = 1024; cpus <= 1024 * 1024; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        if (set == NULL) {
            break;
        }
        int found = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (found > 0) {
            return (uint32_t)found;
        }
        if (errno != EINVAL) {
            break;
        }
    }
    return 1;
}

// Reads the first line of <root><first `length` bytes of group>/<name>. False: there is none, or the path is
// too long.
static bool read_line(const char *root, const char *group, size_t length, const char *name, char *line,
                      size_t size)
{
    char path[4096];
    int needed = snprintf(path, sizeof path, "%s%.*s/%s", root, (int)length, group, name);
    if (needed < 0 || (size_t)needed >= sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(line, (int)size, file) != NULL;
    fclose(file);
    return read;
}

uint32_t csched_sizing_parse_quota(const char *quota, const char *period)
{
    char *end;
    long long quota_us = strtoll(quota, &end, 10);
    if (end == quota || quota_us <= 0) {
        return UINT32_MAX; // "max", or -1: no limit
    }
    long long period_us = strtoll(period, &end, 10);
    if (end == period || period_us <= 0) {
        return UINT32_MAX;
    }
    long long cpus = quota_us / period_us + (quota_us % period_us != 0);
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

// cpu.max holds "quota period"; the tightest limit between our own group and the root counts.
static uint32_t walk(const char *root, const char *group, bool version2)
{
    uint32_t least = UINT32_MAX;
    size_t length = strlen(group);
    for (;;) {
        char quota[64] = "", period[64] = "";
        if (version2) {
            char line[128];
            if (read_line(root, group, length, "cpu.max", line, sizeof line)) {
                (void)sscanf(line, "%63s %63s", quota, period);
            }
        } else {
            (void)read_line(root, group, length, "cpu.cfs_quota_us", quota, sizeof quota);
            (void)read_line(root, group, length, "cpu.cfs_period_us", period, sizeof period);
        }
        uint32_t cpus = csched_sizing_parse_quota(quota, period);
        least = cpus < least ? cpus : least;
        if (length == 0) {
            return least;
        }
        do {
            length--;
        } while (length > 0 && group[length] != '/');
    }
}

static bool names_controller(const char *controllers, size_t length, const char *wanted)
{
    for (const char *from = controllers; from < controllers + length;) {
        size_t step = strcspn(from, ",:");
        if (step == strlen(wanted) && strncmp(from, wanted, step) == 0) {
            return true;
        }
        from += step + 1;
    }
    return false;
}

uint32_t csched_sizing_quota(const char *membership, const char *mount)
{
    FILE *file = fopen(membership, "re");
    if (file == NULL) {
        return UINT32_MAX;
    }
    uint32_t least = UINT32_MAX;
    char line[4096];
    while (fgets(line, sizeof line, file) != NULL) { // hierarchy:controllers:/group
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (group == NULL) {
            continue;
        }
        controllers++;
        size_t length = (size_t)(group - controllers);
        group += strcmp(group, ":/") == 0 ? 2 : 1;
        char root[4096];
        bool version2 = length == 0;
        if (!version2 && !names_controller(controllers, length, "cpu")) {
            continue;
        }
        int needed =
            snprintf(root, sizeof root, "%s%s%.*s", mount, version2 ? "" : "/", (int)length, controllers);
        if (needed < 0 || (size_t)needed >= sizeof root) {
            continue;
        }
        uint32_t cpus = walk(root, group, version2);
        least = cpus < least ? cpus : least;
    }
    fclose(file);
    return least;
}

// The number in CSCHED_WORKERS; 0: none. An invalid value is reported once per process: a mistake in a
// service's configuration must be seen, but must not keep the service from starting.
static uint32_t wished(void)
{
    static csched_atomic(bool) told;
    const char *wish = getenv("CSCHED_WORKERS");
    if (wish == NULL || *wish == '\0') {
        return 0;
    }
    char *end;
    errno = 0;
    unsigned long number = strtoul(wish, &end, 10);
    if (*wish >= '0' && *wish <= '9' && *end == '\0' && errno == 0 && number > 0 &&
        number <= CSCHED_WORKERS_MAX) {
        return (uint32_t)number;
    }
    if (!csched_exchange(&told, true, relaxed)) { // selects one writer; publishes nothing
        fprintf(stderr,
                "CScheduler: CSCHED_WORKERS in the environment is not a number between 1 and 256; the number "
                "of CPUs is used instead.\n");
    }
    return 0;
}

csched_status csched_automatic_workers(uint32_t *workers)
{
    uint32_t wish = wished();
    if (wish != 0) {
        *workers = wish;
        return CSCHED_OK;
    }
    uint32_t cpus = affinity();
    uint32_t quota = csched_sizing_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    cpus = quota < cpus ? quota : cpus;
    *workers = cpus < CSCHED_WORKERS_MAX ? cpus : CSCHED_WORKERS_MAX;
    return CSCHED_OK;
}
