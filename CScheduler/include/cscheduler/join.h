/// join.h - fork and join: two branches, in parallel when a worker is free for the second.
///
/// Synchronisation: as for csched_submit. Writes before the call are visible to both branches, and
/// the branches' writes are visible to the caller when the call returns.
/// Source: Frigo, Leiserson, Randall: The Implementation of the Cilk-5 Multithreaded Language (1998). The
/// common case costs hardly more than two calls.

#ifndef CSCHEDULER_JOIN_H
#define CSCHEDULER_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "annotations.h"
#include "scheduler.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// A function and its argument. Neither is used after the join has returned.
typedef struct {
    void (*function)(void *CSCHED_NULLABLE context);
    void *CSCHED_NULLABLE context;
} csched_branch;

/// Runs two branches and returns when both have returned.
///
/// On a worker of `scheduler`: `second` waits in the worker's deque, where other workers may take it, while
/// the caller runs `first`. Then the caller runs `second` itself, unless it was taken. If it was, the caller
/// runs only second branches of joins that `second` has begun, nested on its stack; when there are none, the
/// thread sleeps, and another worker takes its place. If `first` submitted more than 31 operations, these may
/// be moved to the thread's inbox; only this can allocate. `second` belongs to the body that joins: neither a
/// suspension nor a shutdown stops it. But a suspended worker takes no branches, and a worker that had just
/// taken a branch when the suspension began runs it once resumed. When little of the stack is left, the
/// branches run one after the other.
///
/// On any other thread: both run on workers of `scheduler`, not subject to its capacity, and the caller
/// blocks (a caller that is a worker of another scheduler is replaced there).
///
/// Returns CSCHED_OK; from outside also CSCHED_CLOSED or CSCHED_OUT_OF_MEMORY, and then neither branch was
/// called.
csched_status csched_join(csched_scheduler *scheduler, csched_branch first, csched_branch second)
    CSCHED_MUST_USE;

/// A join in three steps, for callers that call their branches themselves. Lives on the caller's stack from
/// begin to end, and must not move. Its members are private.
typedef struct {
    csched_branch branch;
    void *CSCHED_NULLABLE joiner;
    uint32_t state;
} csched_fork;

/// On a worker: makes `branch` available to other workers. Returns false, with no effect, on any other
/// thread, when little of the stack is left, and when memory is exhausted.
bool csched_fork_begin(csched_fork *fork, csched_branch branch) CSCHED_MUST_USE;

/// Ends a fork that began, on the same worker. True: the branch was not taken, and the caller has to run it
/// now. False: the branch has run on another worker, and the call waited for it as csched_join does. Forks
/// must end in the reverse of the order in which they began.
bool csched_fork_end(csched_fork *fork) CSCHED_MUST_USE;

CSCHED_ASSUME_NONNULL_END

#endif
