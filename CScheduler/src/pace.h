// pace.h - whether a worker that looks for work lets other threads run between its looks, or sleeps at once.
//
// Contracts stand here, the reasons in pace.c.

#ifndef CSCHEDULER_PACE_H
#define CSCHEDULER_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t executed; // operations of the worker when its last search began
    uint64_t average;  // operations between two searches, in parts: moving
    uint32_t hasty;    // searches to come that do not yield
    uint32_t more;     // as many come after the next slow yield
} csched_pace;

void csched_pace_init(csched_pace *pace);

/// A search begins, after `executed` operations in all. Returns whether it may yield.
bool csched_pace_begin(csched_pace *pace, uint64_t executed);

/// Yields; `first`: before the first look of the search. Returns whether the search may go on to yield.
bool csched_pace_yield(csched_pace *pace, bool first);

#endif
