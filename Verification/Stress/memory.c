// memory.c - the workload `memory`: whether the same load, repeated, needs more and more memory.
//
// After each of many cycles everything is at rest: every operation has ended, everything retired is
// reclaimed, and the allocator has returned its reserves to the system. The memory that the process holds
// then must not grow with the operations. The process has one arena, because malloc does not return the
// memory at the end of other arenas: with sixteen, the resident pages grew from 7 to 20 MiB in 1e9
// operations, while no more was in use. There are two readings: the resident pages, which is what counts, and
// the bytes that malloc reports as in use, which reveals smaller leaks.

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load.h"
#include "watchdog.h"

enum { CYCLES = 40, WARM = CYCLES / 2, MEASURED = CYCLES - WARM };
/// Growth over the second half that fails, if its slope is significant.
static const double resident_bound = 1024 * 1024;
static const double allocated_bound = 64 * 1024;
/// A slope is significant from this many standard errors on.
static const double significance = 3;
static const uint64_t rest_ns = UINT64_C(5000000000);
enum { LEAK_BYTES = 16, LEAK_INTERVAL = 1000 };

static stress_load load;

static uint64_t progress(void) { return stress_load_progress(&load); }
static void describe(void) { stress_load_describe(&load); }
static const stress_watched watched = {.progress = progress, .describe = describe};

typedef struct {
    double resident;
    double allocated;
} reading;

static double resident(void)
{
    unsigned long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &all, &pages) != 2) {
        stress_stop("/proc/self/statm could not be read");
    }
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

// False: retired memory was not reclaimed within seconds.
static bool rest(void)
{
    uint64_t end_ns = stress_now_ns() + rest_ns;
    csched_statistics now;
    do {
        stress_sleep_ns(5000000);
        now = csched_scheduler_statistics(load.scheduler);
    } while (now.retired != now.reclaimed && stress_now_ns() < end_ns);
    return now.retired == now.reclaimed;
}

static reading take_reading(void)
{
    double allocated = 0; // only glibc reports it
#ifdef __GLIBC__
    (void)malloc_trim(0);
    struct mallinfo2 now = mallinfo2();
    allocated = (double)(now.uordblks + now.hblkhd);
#endif
    return (reading){.resident = resident(), .allocated = allocated};
}

typedef struct {
    double per_cycle;
    double growth; ///< over all cycles measured, by the fitted line
    double errors; ///< the slope, as a multiple of its standard error
} slope;

// Least squares; the readings are one cycle apart.
static slope fit(const double *values, int count)
{
    double middle = (count - 1) / 2.0, mean = 0, products = 0, squares = 0, residuals = 0;
    for (int index = 0; index < count; index++) {
        mean += values[index] / count;
    }
    for (int index = 0; index < count; index++) {
        products += (index - middle) * (values[index] - mean);
        squares += (index - middle) * (index - middle);
    }
    double per_cycle = products / squares;
    for (int index = 0; index < count; index++) {
        double residual = values[index] - mean - per_cycle * (index - middle);
        residuals += residual * residual;
    }
    double error = sqrt(residuals / (count - 2) / squares);
    return (slope){
        .per_cycle = per_cycle,
        .growth = per_cycle * (count - 1),
        .errors = per_cycle == 0 ? 0 : per_cycle / (error > 0 ? error : 1e-9),
    };
}

static bool is_flat(slope line, double bound) { return line.growth < bound || line.errors < significance; }

static void leak(uint64_t operations)
{
    for (uint64_t count = operations / LEAK_INTERVAL; count > 0; count--) {
        // Written to, as leaked memory mostly is; volatile, or the compiler removes it.
        char *volatile forgotten = malloc(LEAK_BYTES);
        if (forgotten != NULL) {
            forgotten[0] = 1;
        }
    }
}

bool stress_memory(const stress_options *options)
{
    double residents[MEASURED], allocateds[MEASURED];
    stress_tally tally = {0};
    uint64_t each = options->operations / CYCLES;
#ifdef __GLIBC__
    (void)mallopt(M_ARENA_MAX, 1);
#endif
    stress_load_create(&load, options, options->threads, options->workers);
    stress_watch(&watched);
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        stress_load_run(&load, each, UINT64_MAX);
        if (!rest()) {
            fprintf(stderr, "stress: what was retired is not reclaimed after %llu s of rest.\n",
                    (unsigned long long)(rest_ns / 1000000000));
            tally.wrong++;
        }
        if (options->injection == STRESS_LEAK) {
            leak(each);
            tally.injected += each / LEAK_INTERVAL;
        }
        reading now = take_reading();
        if (cycle >= WARM) {
            residents[cycle - WARM] = now.resident;
            allocateds[cycle - WARM] = now.allocated;
        }
    }
    stress_watch(NULL);
    stress_load_destroy(&load, &tally);
    slope resident_line = fit(residents, MEASURED);
    slope allocated_line = fit(allocateds, MEASURED);
    bool passed = stress_tally_is_clean(&tally) && is_flat(resident_line, resident_bound) &&
                  is_flat(allocated_line, allocated_bound);
    char more[300];
    (void)snprintf(more, sizeof more,
                   ",\"resident_bytes\":%.0f,\"resident_growth\":%.0f,\"resident_errors\":%.1f,"
                   "\"allocated_bytes\":%.0f,\"allocated_growth\":%.0f,\"allocated_errors\":%.1f,"
                   "\"resident_slope_per_million\":%.1f",
                   residents[MEASURED - 1], resident_line.growth, resident_line.errors,
                   allocateds[MEASURED - 1], allocated_line.growth, allocated_line.errors,
                   resident_line.per_cycle / ((double)each / 1e6));
    stress_report(&tally, more, passed ? "passed" : "failed");
    return passed;
}
