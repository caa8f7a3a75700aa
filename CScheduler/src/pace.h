// pace.h - whether a searching worker lets other threads run between its looks, or sleeps at once.
//
// Contracts are stated here, the reasons in pace.c.

#ifndef CSCHEDULER_PACE_H
#define CSCHEDULER_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t done;     // operations of the worker when its last run ended
    uint64_t average;  // moving average of the operations in a run, in parts
    uint32_t hasty;    // coming searches without a yield; counted as they end in sleep
    uint32_t more;     // that number after the last slow yield, halved by quick ones
    uint64_t found;    // operations of the worker when its last search began
    uint64_t found_ns; // when that search last read the clock
    uint32_t slow;     // recent runs with slow operations, minus those without
} csched_pace;

void csched_pace_init(csched_pace *pace);

/// A search begins, after `done` operations in all. Returns whether it may yield. Reads the clock.
bool csched_pace_begin(csched_pace *pace, uint64_t done);

/// Yields; `first`: for the first time in this search. Returns whether the search may continue to yield.
bool csched_pace_yield(csched_pace *pace, bool first);

/// The search has found nothing: the worker sleeps.
void csched_pace_sleep(csched_pace *pace, uint64_t done);
/// The search continues after a sleep, at `now_ns`.
void csched_pace_wake(csched_pace *pace, uint64_t now_ns);

#endif
