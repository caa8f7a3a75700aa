// priority.h - operations that do not wait in turn: of high priority, and of the background.
//
// Contracts stand here, the argument (N1.., P46..) in priority.c.

#ifndef CSCHEDULER_PRIORITY_H
#define CSCHEDULER_PRIORITY_H

#include "cscheduler/scheduler.h"
#include "port.h"

/// The priorities that an operation can have in a queue: each thread has an inbox, and each worker a deque,
/// for each of them.
#define CSCHED_PRIORITIES 3u

/// Flags of a scheduler's `priorities`: something of this priority may wait; something once had it.
#define CSCHED_WAITS(priority) (1u << (priority))
#define CSCHED_USED(priority) (16u << (priority))

/// Before operations of a priority that is not the default are published.
void csched_priority_use(csched_scheduler *scheduler, csched_priority priority);
/// After they were published (seq_cst).
void csched_priority_raise(csched_scheduler *scheduler, csched_priority priority);
/// By a worker, outside of read sections, that found nothing of it.
void csched_priority_lower(csched_scheduler *scheduler, csched_priority priority);

/// Reader, inside a read section. Whether operations of any priority but the default wait; those that were
/// not raised are then. `lone`: also one that is left to the worker that has it. seq_cst: the re-check before
/// sleeping.
bool csched_priority_any_waits(csched_scheduler *scheduler, bool lone);

#endif
