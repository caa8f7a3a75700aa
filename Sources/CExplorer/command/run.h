// run.h - runs programs of the explorer, several at a time, each in its own process.

#ifndef EXPLORE_RUN_H
#define EXPLORE_RUN_H

#include "explorer.h"

typedef struct {
    explorer_options options; // of the exhaustive search; the fields below adapt them for the other searches
    uint64_t random;          // executions of the random search (PCT)
    uint32_t frozen_bound;    // departures in addition to a thread that stops forever
    bool without_frozen;
    uint32_t jobs;
    bool first; // after a violation no further program is begun
} run_plan;

/// How one search over one program ended.
typedef struct {
    explorer_result result;
    uint32_t departures; // of the failing schedule, when it was shrunk
    double seconds;
    bool ran;
    int signal; // the signal that ended the process; 0: none
} search_report;

typedef struct {
    const explorer_program *program;
    search_report exhaustive;
    search_report random;
    search_report frozen;
} run_report;

bool explorer_report_failed(const run_report *report);

/// Makes a fault of the explored program a violation.
void explorer_catch_faults(void);

/// Fills `reports`, each of which names its program, and calls `ended` for each as soon as its program has
/// ended. Returns how many programs were begun, always the first ones.
size_t explorer_run_all(const run_plan *plan, run_report *reports, size_t count,
                        void (*ended)(const run_report *report));

#endif
