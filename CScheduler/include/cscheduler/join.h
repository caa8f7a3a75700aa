/// join.h - fork and join: two branches, in parallel when a worker is free for the second.
///
/// Synchronisation: as csched_submit. Writes before the call are visible to both branches, and
/// their writes are visible after it.
/// Source: Frigo, Leiserson, Randall: The Implementation of the Cilk-5 Multithreaded Language (1998): the
/// common case costs hardly more than two calls.

#ifndef CSCHEDULER_JOIN_H
#define CSCHEDULER_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "annotations.h"
#include "scheduler.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// A function and what it is called with. Neither is used after the join has returned.
typedef struct {
    void (*function)(void *CSCHED_NULLABLE context);
    void *CSCHED_NULLABLE context;
} csched_branch;

/// Runs two branches and returns when both have returned.
///
/// On a worker of `scheduler`: `second` waits in the worker's deque, where others may take it, while the
/// caller runs `first`; then the caller runs `second` itself, unless it was taken: then it runs, nested on
/// its stack, second branches of joins that `second` has begun, and nothing else. When there are none the
/// thread sleeps, and another worker takes its place. Where `first` submitted more than 31 operations, these
/// may have gone to the thread's inbox. Allocates nothing otherwise. `second` belongs to the body that joins:
/// neither a suspension nor a shutdown keeps it from its end, but a worker that is suspended takes none, and
/// one that had just taken it when a suspension began runs it after the resume. When little of the stack is
/// left the branches run one after the other.
///
/// On any other thread: both run on workers of `scheduler`, past its capacity, and the caller blocks (of a
/// worker of another scheduler, another worker takes the place there).
///
/// CSCHED_OK; from outside also CSCHED_CLOSED and CSCHED_OUT_OF_MEMORY: then neither branch was called.
csched_status csched_join(csched_scheduler *scheduler, csched_branch first, csched_branch second)
    CSCHED_MUST_USE;

/// A join in its three steps, for callers who would rather call their branches themselves. Lives on the
/// caller's stack from begin to end, does not move, and its members are not for the caller.
typedef struct {
    csched_branch branch;
    void *CSCHED_NULLABLE joiner;
    uint32_t state;
} csched_fork;

/// On a worker: puts `branch` in reach of others. False on every other thread, when little of the stack is
/// left, and when memory is exhausted: nothing was done.
bool csched_fork_begin(csched_fork *fork, csched_branch branch) CSCHED_MUST_USE;

/// Ends a fork that began, on the same worker. True: the branch was not taken, and the caller has to run it
/// now. False: it has run on another worker, and the call waited for it as csched_join does. Forks end in the
/// reverse order of their beginnings.
bool csched_fork_end(csched_fork *fork) CSCHED_MUST_USE;

CSCHED_ASSUME_NONNULL_END

#endif
