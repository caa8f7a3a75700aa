// capacity.h - backpressure: how many operations from outside may wait.

#ifndef CSCHEDULER_CAPACITY_H
#define CSCHEDULER_CAPACITY_H

#include "cscheduler/scheduler.h"
#include "port.h"

typedef struct {
    uint64_t limit; // CSCHED_CAPACITY_UNBOUNDED: the fields below are not used
    csched_when_full when_full;
    csched_aligned_to_line csched_atomic(uint64_t) pending;
    csched_atomic(uint32_t) waiting; // submitters that sleep, or are about to
    csched_atomic(uint32_t) room;    // changes whenever a sleeper may find room
} csched_capacity;

void csched_capacity_init(csched_capacity *capacity, uint64_t limit, csched_when_full when_full);

static inline bool csched_capacity_is_bounded(const csched_capacity *capacity)
{
    return capacity->limit != CSCHED_CAPACITY_UNBOUNDED;
}

/// Counts `count` more waiting operations, or none. Lock-free.
bool csched_capacity_try_enter(csched_capacity *capacity, uint64_t count);
/// Counts `count` more in any case: for operations exempt from the limit.
void csched_capacity_enter_exempt(csched_capacity *capacity, uint64_t count);
/// Sleeps until there is room, then counts. False: `*control` has one of the bits of `closed`.
bool csched_capacity_enter(csched_capacity *capacity, uint64_t count, const csched_atomic(uint32_t) *control,
                           uint32_t closed);
/// `count` operations no longer wait.
void csched_capacity_leave(csched_capacity *capacity, uint64_t count);
/// Makes every sleeper look at `control` again.
void csched_capacity_interrupt(csched_capacity *capacity);

#endif
