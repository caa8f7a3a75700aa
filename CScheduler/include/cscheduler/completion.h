/// completion.h - completion counter: the number of operations of a group that have not completed.
///
/// When the count falls to zero, a generation is complete: its waiters are released and its notifications
/// fire, each exactly once, even if the next generation has begun by then.
///
/// Synchronisation: all functions may be called concurrently, with one restriction: `release` must be the
/// caller's last use of the counter, with no wait in progress.
/// Source: libdispatch's groups (generation and count in one word); here both move in one compare-exchange.

#ifndef CSCHEDULER_COMPLETION_H
#define CSCHEDULER_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

#include "annotations.h"
#include "operation.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// The most operations that may be outstanding on one counter, as csched_completion_outstanding counts them.
#define CSCHED_COMPLETION_MAX UINT32_C(0x1FFFFFFF)

/// A timeout that never expires.
#define CSCHED_FOREVER UINT64_MAX

typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_WAIT_COMPLETED CSCHED_SWIFT_NAME(completed) = 0,
    CSCHED_WAIT_TIMED_OUT CSCHED_SWIFT_NAME(timedOut) = 1,
} csched_wait_result;

/// Returns a counter at zero, or NULL when memory is exhausted.
csched_completion *CSCHED_NULLABLE csched_completion_create(void) CSCHED_MUST_USE;

/// Releases the counter. Its memory is freed at once when nothing is outstanding, else by the last leave,
/// after the notifications of its generation have fired.
void csched_completion_release(csched_completion *counter);

/// Adds `count` operations to the current generation. Stops the process beyond CSCHED_COMPLETION_MAX.
/// Lock-free; no barrier: entering publishes nothing.
void csched_completion_enter(csched_completion *counter, uint32_t count);

/// Removes `count` operations; stops the process when fewer are outstanding. Lock-free. Release and acquire:
/// writes before any leave are visible after the last one. Returns whether the call ended the generation. A
/// counter that its owner may have released must not be used afterwards.
bool csched_completion_leave(csched_completion *counter, uint32_t count);

/// Blocks until the generation current at the call is complete, for at most `timeout_ns` nanoseconds (0:
/// polls). On a worker of a scheduler, without a timeout, the wait runs operations of this counter meanwhile,
/// nested on the worker's stack: the newest of its own deque, the oldest of other workers' deques. It runs no
/// other operations. When it finds none, the thread sleeps, and another worker takes its place. A body that
/// waits for a counter in which it, or a body below it on the stack, is counted would wait forever: with
/// DEBUG defined that stops the process. Acquire: the writes of the generation's operations are visible after
/// CSCHED_WAIT_COMPLETED.
csched_wait_result csched_completion_wait(csched_completion *counter, uint64_t timeout_ns) CSCHED_MUST_USE;

/// The operations that a wait without a timeout runs, nested on a worker's stack.
typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_HELP_NOBODY CSCHED_SWIFT_NAME(nobody) = 0,   ///< nothing
    CSCHED_HELP_OWN CSCHED_SWIFT_NAME(own) = 1,         ///< operations of the counter
    CSCHED_HELP_ANYBODY CSCHED_SWIFT_NAME(anybody) = 2, ///< any: hold no lock that one of them takes
} csched_helping;

/// As csched_completion_wait, with a choice.
csched_wait_result csched_completion_wait_helping(csched_completion *counter, uint64_t timeout_ns,
                                                  csched_helping helping) CSCHED_MUST_USE;

/// Whether a wait may run an operation with this context and `extra` word, on the waiting thread.
typedef bool (*csched_wanted_function)(const void *CSCHED_NULLABLE wanted_by, void *CSCHED_NULLABLE context,
                                       void *CSCHED_NULLABLE extra);

/// Likewise, for a child (internals/children.h); `child` is NULL for a range of children.
typedef bool (*csched_wanted_children_function)(const void *CSCHED_NULLABLE wanted_by, void *children,
                                                void *CSCHED_NULLABLE child);

/// As csched_completion_wait without a timeout, but in place of the counter's operations it runs operations
/// whose function is `run` and that `wanted` accepts, and children that `wanted_children` accepts. Only the
/// newest operations in the waiting worker's own deque are considered, so the predicates may look at what
/// they point to.
csched_wait_result csched_completion_wait_running(csched_completion *counter, csched_function run,
                                                  csched_wanted_function wanted,
                                                  csched_wanted_children_function wanted_children,
                                                  const void *CSCHED_NULLABLE wanted_by) CSCHED_MUST_USE;

/// The number of outstanding operations, at some moment of the call. 0 is exact. A greater number may be too
/// high: a worker that runs operations of the counter holds back up to 1,024 leaves, and enters up to 64 in
/// advance.
uint32_t csched_completion_outstanding(const csched_completion *counter);

/// The function that a notification calls, on the thread of the last leave (or of `notify`). It must be
/// short.
typedef void (*csched_notify_function)(void *CSCHED_NULLABLE context);

typedef struct csched_notification csched_notification;

/// Calls `function` once when the current generation is complete, or at once when nothing is outstanding.
/// Returns the notification, which the caller must release exactly once, with `cancel` or `release`. NULL:
/// out of memory; nothing will be called.
csched_notification *CSCHED_NULLABLE csched_completion_notify(csched_completion *counter,
                                                              csched_notify_function function,
                                                              void *CSCHED_NULLABLE context) CSCHED_MUST_USE;

/// Cancels and releases a notification. True: the cancel was in time, and the function is never called.
/// False: the function was called, or is being called now.
bool csched_notification_cancel(csched_notification *notification);

/// Releases a notification without cancelling it.
void csched_notification_release(csched_notification *notification);

CSCHED_ASSUME_NONNULL_END

#endif
