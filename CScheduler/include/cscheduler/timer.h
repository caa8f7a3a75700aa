/// timer.h - operations that are submitted later, once or again and again.
///
/// A scheduler has one thread for its timers, `<name>-timer`, made at the first one; it submits what is due,
/// and runs no body but those of csched_call_after. Time is that of the monotonic clock, which stands still
/// while the machine is suspended.
///
/// Synchronisation: every function may run beside every other one; `release` is the caller's last use of a
/// timer. A timer's scheduler outlives the caller's hold on it.
/// Source: Varghese, Lauck: Hashed and Hierarchical Timing Wheels (1987).

#ifndef CSCHEDULER_TIMER_H
#define CSCHEDULER_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "annotations.h"
#include "operation.h"
#include "scheduler.h"

CSCHED_ASSUME_NONNULL_BEGIN

typedef struct csched_timer csched_timer;

/// Submits an operation, past the capacity, when `delay_ns` nanoseconds have passed: not before, and about
/// 0.1 ms after, when the machine is idle. UINT64_MAX: never. It counts in its counter from now on.
///
/// The operation is told exactly one of the two: CSCHED_RUN, or CSCHED_CANCEL, by a cancel that was in time
/// or by a shutdown, of any kind: that cancels all timers that have not fired.
///
/// `timer` (when not NULL) is set to a hold on the timer, for the caller to release. Lock-free, one
/// allocation; the first timer of a scheduler makes the thread. CSCHED_OK, CSCHED_CLOSED, also on a worker,
/// CSCHED_OUT_OF_MEMORY or CSCHED_THREAD_CREATION_FAILED; unless CSCHED_OK, nothing was done.
csched_status csched_submit_after(csched_scheduler *scheduler, const csched_operation *operation,
                                  uint64_t delay_ns, csched_timer *CSCHED_NULLABLE *CSCHED_NULLABLE timer)
    CSCHED_MUST_USE;

/// As csched_submit_after, but calls the operation on the timers' thread in place of a worker: something
/// short that blocks nowhere, such as to resume a task. All timers wait for it.
csched_status csched_call_after(csched_scheduler *scheduler, const csched_operation *operation,
                                uint64_t delay_ns, csched_timer *CSCHED_NULLABLE *CSCHED_NULLABLE timer)
    CSCHED_MUST_USE;

/// Submits an operation `delay_ns` nanoseconds from now, and then every `interval_ns` (at least 1)
/// nanoseconds, counted from its first time: it does not drift. One run ends before the next is submitted;
/// times that pass meanwhile are left out. Writes of a run are visible to the next one.
///
/// The operation is told CSCHED_RUN for each of its times, and then CSCHED_CANCEL, once, by a cancel or a
/// shutdown: after its last run has returned, on the thread of that run, of the cancel, or of the timers. It
/// counts in its counter until then. Statuses as csched_submit_after's.
csched_status csched_submit_every(csched_scheduler *scheduler, const csched_operation *operation,
                                  uint64_t delay_ns, uint64_t interval_ns,
                                  csched_timer *CSCHED_NULLABLE *CSCHED_NULLABLE timer) CSCHED_MUST_USE;

/// Cancels. Returns true when it was in time: no run begins any more, and the operation was told
/// CSCHED_CANCEL by this call; or will be, by its run, when it repeats and runs now. False: it was submitted
/// already, or cancelled before. Lock-free, O(1).
/// Acquire: what the runs wrote is visible to what is told here.
bool csched_timer_cancel(csched_timer *timer);

/// Gives the caller's hold back, and cancels nothing.
void csched_timer_release(csched_timer *timer);

/// Whether the calling thread is the one of a scheduler's timers: it must not wait for that scheduler.
bool csched_timer_is_own_thread(void);

CSCHED_ASSUME_NONNULL_END

#endif
