/// lane.h - serial lane: runs operations one at a time, in the order of their submission, on a scheduler's
/// workers.

#ifndef CSCHEDULER_LANE_H
#define CSCHEDULER_LANE_H

#include <stdbool.h>

#include "annotations.h"
#include "operation.h"
#include "scheduler.h"

CSCHED_ASSUME_NONNULL_BEGIN

typedef struct csched_lane csched_lane;

/// Returns a lane on `scheduler`, which must outlive it, or NULL when memory is exhausted.
csched_lane *CSCHED_NULLABLE csched_lane_create(csched_scheduler *scheduler) CSCHED_MUST_USE;

/// Releases a lane. Its memory is freed when the last operation submitted to it has ended.
void csched_lane_release(csched_lane *lane);

/// Appends an operation. Lock-free, one allocation. Writes of an operation are visible to the next one.
/// Statuses as for csched_submit; a lane is not subject to the capacity of its scheduler.
csched_status csched_lane_submit(csched_lane *lane, const csched_operation *operation) CSCHED_MUST_USE;

/// As csched_lane_submit, with a priority: the lane is scheduled as an operation of this priority (background
/// counts as default). The order within the lane remains the order of submission.
csched_status csched_lane_submit_at(csched_lane *lane, const csched_operation *operation,
                                    csched_priority priority) CSCHED_MUST_USE;

/// As csched_lane_submit_at, but operations that a closed scheduler refuses run on `fallback`, still one at a
/// time and in order: for work that must not be refused, such as the jobs of an actor.
csched_status csched_lane_submit_surely(csched_lane *lane, const csched_operation *operation,
                                        csched_priority priority, csched_scheduler *fallback) CSCHED_MUST_USE;

/// Whether the caller is an operation of `lane`. False in another operation that runs nested on the same
/// thread while an operation of `lane` waits.
bool csched_lane_is_current(const csched_lane *lane);

/// Whether an operation of `lane` is on the calling thread's stack: waiting for the lane would then deadlock.
bool csched_lane_is_on_stack(const csched_lane *lane);

CSCHED_ASSUME_NONNULL_END

#endif
