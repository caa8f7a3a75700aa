/// timer.h - operations that are submitted later, once or periodically.
///
/// A scheduler has one thread for its timers, `<name>-timer`, created with the first timer. It submits
/// operations that are due, and runs no bodies except those of csched_call_after. Times are those of the
/// monotonic clock, which stops while the machine is suspended.
///
/// Synchronisation: all functions may be called concurrently; `release` is the caller's last use of a timer.
/// A timer's scheduler must outlive the caller's reference to the timer.
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

/// Submits an operation, not subject to the capacity, when `delay_ns` nanoseconds have passed: never earlier,
/// and about 0.1 ms later when the machine is idle. UINT64_MAX: never. The operation counts in its counter
/// from the call on.
///
/// The operation is called exactly once: with CSCHED_RUN, or with CSCHED_CANCEL if it was cancelled in time
/// or the scheduler was shut down. A shutdown of any kind cancels all timers that have not fired.
///
/// `timer` (when not NULL) is set to a reference to the timer, which the caller must release. Lock-free, one
/// allocation; the first timer of a scheduler creates the thread. CSCHED_OK, CSCHED_CLOSED (also on a
/// worker), CSCHED_OUT_OF_MEMORY or CSCHED_THREAD_CREATION_FAILED; unless CSCHED_OK, nothing was done.
csched_status csched_submit_after(csched_scheduler *scheduler, const csched_operation *operation,
                                  uint64_t delay_ns, csched_timer *CSCHED_NULLABLE *CSCHED_NULLABLE timer)
    CSCHED_MUST_USE;

/// As csched_submit_after, but calls the operation on the timers' thread, not on a worker. The operation must
/// be short and must not block, such as resuming a task: all timers are delayed while it runs.
csched_status csched_call_after(csched_scheduler *scheduler, const csched_operation *operation,
                                uint64_t delay_ns, csched_timer *CSCHED_NULLABLE *CSCHED_NULLABLE timer)
    CSCHED_MUST_USE;

/// Submits an operation `delay_ns` nanoseconds from now, and then every `interval_ns` (at least 1)
/// nanoseconds, counted from the first time, without drift. One run ends before the next is submitted; times
/// that pass meanwhile are skipped. Writes of a run are visible to the next run.
///
/// The operation is called with CSCHED_RUN each time it is due, and finally once with CSCHED_CANCEL, because
/// of a cancel or a shutdown: after its last run has returned, on the thread of that run, of the cancel, or
/// of the timers. The operation counts in its counter until then. Statuses as for csched_submit_after.
csched_status csched_submit_every(csched_scheduler *scheduler, const csched_operation *operation,
                                  uint64_t delay_ns, uint64_t interval_ns,
                                  csched_timer *CSCHED_NULLABLE *CSCHED_NULLABLE timer) CSCHED_MUST_USE;

/// Cancels. True: the cancel was in time, and no further run begins. This call has called the operation with
/// CSCHED_CANCEL; if a repeating operation is running now, that call is made at the end of the run. False:
/// the operation was already submitted or cancelled. Lock-free, O(1). Acquire: the writes of the runs are
/// visible to the operation that this call cancels.
bool csched_timer_cancel(csched_timer *timer);

/// Releases the caller's reference; cancels nothing.
void csched_timer_release(csched_timer *timer);

/// Whether the calling thread is a scheduler's timer thread, which must not wait for that scheduler.
bool csched_timer_is_own_thread(void);

CSCHED_ASSUME_NONNULL_END

#endif
