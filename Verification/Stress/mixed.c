// mixed.c - the workloads that check operations: `mixed`, `sparse` and `oversubscribed`.

#include <string.h>

#include "load.h"
#include "watchdog.h"

static stress_load load;

static uint64_t progress(void) { return stress_load_progress(&load); }
static void describe(void) { stress_load_describe(&load); }
static const stress_watched watched = {.progress = progress, .describe = describe};

static uint64_t end_of(const stress_options *options)
{
    return options->seconds == UINT32_MAX ? UINT64_MAX
                                          : stress_now_ns() + options->seconds * UINT64_C(1000000000);
}

static void run(const stress_options *options, uint32_t producers, uint32_t workers, uint64_t operations,
                uint64_t end_ns, stress_tally *tally)
{
    stress_load_create(&load, options, producers, workers);
    load.sparse = strcmp(options->workload, "sparse") == 0;
    stress_watch(&watched);
    stress_load_run(&load, operations, end_ns);
    stress_watch(NULL);
    stress_load_destroy(&load, tally);
}

static bool finish(const stress_tally *tally)
{
    bool passed = stress_tally_is_clean(tally);
    stress_report(tally, "", passed ? "passed" : "failed");
    return passed;
}

bool stress_mixed(const stress_options *options)
{
    stress_tally tally = {0};
    run(options, options->threads, options->workers, options->operations, end_of(options), &tally);
    return finish(&tally);
}

// As many producers as workers: 1, 2, 4 ... 64, however few CPUs there are.
bool stress_oversubscribed(const stress_options *options)
{
    enum { STEPS = 7 };
    stress_tally tally = {0};
    stress_options part = *options;
    part.operations = options->operations / STEPS;
    uint64_t end_ns = end_of(options);
    for (uint32_t step = 0; step < STEPS; step++) {
        run(&part, 1u << step, 1u << step, part.operations, end_ns, &tally);
    }
    return finish(&tally);
}
