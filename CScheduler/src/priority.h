// priority.h - operations that do not wait in turn: those of high and of background priority.
//
// Contracts are stated here, the argument (N1.., P46..) in priority.c.

#ifndef CSCHEDULER_PRIORITY_H
#define CSCHEDULER_PRIORITY_H

#include "cscheduler/scheduler.h"
#include "port.h"

/// The priorities that an operation can have in a queue: each thread has an inbox, and each worker a deque,
/// for each of them.
#define CSCHED_PRIORITIES 3u

/// Flags of a scheduler's `priorities`: operations of this priority may wait now; there ever was one.
#define CSCHED_WAITS(priority) (1u << (priority))
#define CSCHED_USED(priority) (16u << (priority))

/// Called before operations of a non-default priority are published.
void csched_priority_use(csched_scheduler *scheduler, csched_priority priority);
/// Called after they were published (seq_cst).
void csched_priority_raise(csched_scheduler *scheduler, csched_priority priority);
/// Called by a worker that found no operation of this priority, outside read sections.
void csched_priority_lower(csched_scheduler *scheduler, csched_priority priority);

/// Reader, inside a read section. Whether operations of a non-default priority wait; raises their flags if
/// they are not up. `lone`: also counts a lone operation that is left to its worker. seq_cst: the re-check
/// before sleeping.
bool csched_priority_any_waits(csched_scheduler *scheduler, bool lone);

#endif
