// main.c - chooses the workload, and prints the result.

#include "main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hogs.h"
#include "watchdog.h"

enum { PASSED = 0, FAILED = 1, USAGE = 64 };

static stress_options options;
static uint64_t began_ns;

_Noreturn void stress_stop(const char *sentence)
{
    fprintf(stderr, "stress: %s.\n", sentence);
    _Exit(FAILED);
}

uint64_t stress_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void stress_sleep_ns(uint64_t duration_ns)
{
    const struct timespec time = {.tv_sec = (time_t)(duration_ns / UINT64_C(1000000000)),
                                  .tv_nsec = (long)(duration_ns % UINT64_C(1000000000))};
    (void)nanosleep(&time, NULL);
}

void stress_report(const stress_tally *tally, const char *more, const char *verdict)
{
#ifdef CSCHED_PORT
    const char *build = "yielding";
#else
    const char *build = "shipping";
#endif
    printf("{\"workload\":\"%s\",\"shots\":\"%s\",\"build\":\"%s\",\"threads\":%u,\"workers\":%u,\"seed\":%"
           "llu,\"hogs\":%u,"
           "\"seconds\":%.1f,\"operations\":%llu,\"ran\":%llu,\"cancelled\":%llu,\"lost\":%llu,"
           "\"duplicated\":%llu,\"stale\":%llu,\"disordered\":%llu,\"wrong\":%llu,\"injected\":%llu%s,"
           "\"verdict\":\"%s\"}\n",
           options.workload, options.only == NULL ? "all" : options.only, build, options.threads,
           options.workers, (unsigned long long)options.seed, options.hogs,
           (double)(stress_now_ns() - began_ns) / 1e9, (unsigned long long)tally->operations,
           (unsigned long long)tally->ran, (unsigned long long)tally->cancelled,
           (unsigned long long)tally->lost, (unsigned long long)tally->duplicated,
           (unsigned long long)tally->stale, (unsigned long long)tally->disordered,
           (unsigned long long)tally->wrong, (unsigned long long)tally->injected, more, verdict);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        bool (*run)(const stress_options *options);
    } workloads[] = {
        {"mixed", stress_mixed},   {"sparse", stress_mixed},    {"oversubscribed", stress_oversubscribed},
        {"memory", stress_memory}, {"reclaim", stress_reclaim},
    };
    options = stress_parse(count, arguments);
    began_ns = stress_now_ns();
    for (size_t index = 0; index < sizeof workloads / sizeof workloads[0]; index++) {
        if (strcmp(options.workload, workloads[index].name) == 0) {
            stress_watchdog_start(options.patience);
            stress_hogs_start(options.hogs);
            bool passed = workloads[index].run(&options);
            stress_hogs_stop();
            stress_watchdog_stop();
            return passed ? PASSED : FAILED;
        }
    }
    fprintf(stderr,
            "stress: '%s' is not a workload; mixed, sparse, oversubscribed, memory and reclaim are.\n",
            options.workload);
    return USAGE;
}
