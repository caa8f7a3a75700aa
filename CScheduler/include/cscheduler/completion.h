/// completion.h - completion counter: how many operations of a group have not completed.
///
/// When the count falls to zero a generation is complete: its waiters are released and its notifications
/// fire, each exactly once, even if the next generation has begun by then.
///
/// Synchronisation: every function may run beside every other one, with two exceptions: `release` is the
/// caller's last use of the counter, and no wait may be in progress then.
/// Source: libdispatch's groups (generation and count in one word); here both move in one compare-exchange.

#ifndef CSCHEDULER_COMPLETION_H
#define CSCHEDULER_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

#include "annotations.h"
#include "operation.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// The most operations that may be outstanding on one counter, by csched_completion_outstanding.
#define CSCHED_COMPLETION_MAX UINT32_C(0x1FFFFFFF)

/// A timeout that never passes.
#define CSCHED_FOREVER UINT64_MAX

typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_WAIT_COMPLETED CSCHED_SWIFT_NAME(completed) = 0,
    CSCHED_WAIT_TIMED_OUT CSCHED_SWIFT_NAME(timedOut) = 1,
} csched_wait_result;

/// Returns a counter at zero, or NULL when memory is exhausted.
csched_completion *CSCHED_NULLABLE csched_completion_create(void) CSCHED_MUST_USE;

/// Gives the counter up. Memory is freed at once when nothing is outstanding, else by the last leave, after
/// the notifications of its generation have fired.
void csched_completion_release(csched_completion *counter);

/// Adds `count` operations to the current generation. Stops the process beyond CSCHED_COMPLETION_MAX.
/// Lock-free; no barrier: entering publishes nothing.
void csched_completion_enter(csched_completion *counter, uint32_t count);

/// Takes `count` operations away; stops the process when fewer are outstanding.
/// Lock-free. Release and acquire: what was written before any leave is visible after the last one.
/// Returns whether the call ended the generation. A counter that its owner may have released must not be used
/// after.
bool csched_completion_leave(csched_completion *counter, uint32_t count);

/// Blocks until the generation current at the call is complete, `timeout_ns` nanoseconds at most (0 asks
/// only). On a worker of a scheduler, without a timeout, it runs operations of this counter meanwhile, nested
/// on its stack: of its own the newest, of other workers' the oldest. It runs no others. When it finds none
/// the thread sleeps, and another worker takes its place. A body that waits for a counter in which it is
/// counted, or a body below it on the stack, would wait for ever: with DEBUG defined that stops the process.
/// Acquire: what the operations of the generation wrote is visible after CSCHED_WAIT_COMPLETED.
csched_wait_result csched_completion_wait(csched_completion *counter, uint64_t timeout_ns) CSCHED_MUST_USE;

/// The operations that a wait without a timeout runs, nested on a worker's stack.
typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_HELP_NOBODY CSCHED_SWIFT_NAME(nobody) = 0,   ///< nothing
    CSCHED_HELP_OWN CSCHED_SWIFT_NAME(own) = 1,         ///< operations of the counter
    CSCHED_HELP_ANYBODY CSCHED_SWIFT_NAME(anybody) = 2, ///< any: no lock may be held that one of them takes
} csched_helping;

/// As csched_completion_wait, with a choice.
csched_wait_result csched_completion_wait_helping(csched_completion *counter, uint64_t timeout_ns,
                                                  csched_helping helping) CSCHED_MUST_USE;

/// Whether a wait may run an operation with this context and this second word, on the waiting thread.
typedef bool (*csched_wanted_function)(const void *CSCHED_NULLABLE wanted_by, void *CSCHED_NULLABLE context,
                                       void *CSCHED_NULLABLE extra);

/// Likewise, one of some children (internals/children.h); NULL: a range of them.
typedef bool (*csched_wanted_children_function)(const void *CSCHED_NULLABLE wanted_by, void *children,
                                                void *CSCHED_NULLABLE child);

/// As csched_completion_wait without a timeout, but runs operations of the function `run` for which `wanted`
/// says so, and children for which `wanted_children` does, in place of those of the counter: from among the
/// newest of the waiting worker's own, so that it may look at what they point to.
csched_wait_result csched_completion_wait_running(csched_completion *counter, csched_function run,
                                                  csched_wanted_function wanted,
                                                  csched_wanted_children_function wanted_children,
                                                  const void *CSCHED_NULLABLE wanted_by) CSCHED_MUST_USE;

/// How many operations are outstanding, at some moment of the call. Above 0 it may be too many: a worker that
/// runs operations of the counter keeps up to 1,024 leaves back, and enters up to 64 in advance. 0 is exact.
uint32_t csched_completion_outstanding(const csched_completion *counter);

/// The function that a notification calls, on the thread of the last leave (or of `notify`). It is short.
typedef void (*csched_notify_function)(void *CSCHED_NULLABLE context);

typedef struct csched_notification csched_notification;

/// Calls `function` once when the current generation is complete, at once when nothing is outstanding.
/// Returns the notification, which the caller gives back by `cancel` or `release`, once, or NULL when memory
/// is exhausted (then nothing will be called).
csched_notification *CSCHED_NULLABLE csched_completion_notify(csched_completion *counter,
                                                              csched_notify_function function,
                                                              void *CSCHED_NULLABLE context) CSCHED_MUST_USE;

/// Gives a notification back. Returns true when it was in time: the function has not been called and never
/// will be. False: it was called, or is being called now.
bool csched_notification_cancel(csched_notification *notification);

/// Gives a notification back without cancelling it.
void csched_notification_release(csched_notification *notification);

CSCHED_ASSUME_NONNULL_END

#endif
