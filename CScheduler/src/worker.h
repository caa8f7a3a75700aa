// worker.h - a thread that runs operations.

#ifndef CSCHEDULER_WORKER_H
#define CSCHEDULER_WORKER_H

#include <pthread.h>

#include "cscheduler/scheduler.h"
#include "deque.h"
#include "port.h"
#include "reclaim.h"

typedef struct csched_worker {
    csched_deque deque;
    // Written by the worker, read by anybody: statistics, and the sentry's question whether it is stuck in a
    // body.
    csched_aligned_to_line csched_atomic(uint64_t) executed;
    csched_atomic(uint64_t) cancelled;
    csched_atomic(uint64_t) submitted;
    csched_atomic(uint64_t) stolen;
    csched_atomic(uint64_t) parked;
    csched_atomic(uint32_t) running;
    // Written by others, rarely.
    csched_aligned_to_line csched_atomic(uint64_t)
        stuck;                   // 1 + the value of executed at which a sentry found it stuck
    csched_atomic(bool) leaving; // the crew was made smaller: go when the body has returned
    // The worker's own.
    csched_aligned_to_line csched_scheduler *scheduler;
    uint32_t index;
    uint32_t until_fair;    // operations until it looks at the others' first
    uint32_t fair_interval; // adapted to about CSCHED_FAIR_NS
    uint64_t fair_since_ns;
    bool fair_turn;                  // whose turn it is: inboxes or the own deque
    uint64_t cursor;                 // in the registry
    uint64_t random;                 // for the first victim
    uint64_t sentry_ns;              // how long it sleeps next time as the sentry
    uint64_t *executed_seen;         // of every worker, when the sentry went to sleep
    csched_completion *debt_counter; // the counter of the debt, or NULL
    uint32_t debt;                   // leaves that are not done yet
    uint32_t burst;                  // jobs that the running body has submitted (U4)
    uint32_t nesting;                // bodies that wait, on this stack, for the one that runs
    uint64_t places;                 // of the capacity, to be given back
    char *stack_limit;               // a wait may nest until the stack gets here
    pthread_t thread;
    csched_retired retired;
} csched_worker;

/// The workers of a scheduler: a snapshot that readers find, and resize replaces.
typedef struct {
    csched_retired retired;
    uint32_t count;
    csched_worker *workers[];
} csched_crew;

/// NULL: out of memory.
csched_worker *csched_worker_create(csched_scheduler *scheduler, uint32_t index);
/// Its thread has ended, or never began.
void csched_worker_destroy(csched_worker *worker);
/// Starts the thread.
csched_status csched_worker_start(csched_worker *worker);

/// The calling thread's worker, or NULL.
csched_worker *csched_worker_self(void);
/// In a forked child: the calling thread is no worker any more.
void csched_worker_forget(void);

/// On the worker: pushes what a running body submits onto the worker's deque. False: out of memory.
bool csched_worker_submit(csched_worker *worker, const csched_operation *operations, size_t count);

/// As csched_worker_submit, for one operation, and enters its counter.
bool csched_worker_spawn(csched_worker *worker, const csched_operation *operation);

/// Takes the second branch of a fork back, if it is among the newest operations of the worker's deque; the
/// caller runs it.
bool csched_worker_take_back(csched_worker *worker, const void *fork);
/// Whether the worker's stack is long enough for a wait.
bool csched_worker_may_nest(const csched_worker *worker);

typedef enum {
    CSCHED_HELP_DONE,
    CSCHED_HELP_TIMED_OUT,
    CSCHED_HELP_SLEEPY, // nothing to run: arrange for csched_worker_interrupt, and call again
} csched_help_outcome;

/// On a worker: runs operations until done(context), or the deadline. Sleeps only when `interruptible`.
csched_help_outcome csched_worker_help(bool (*done)(const void *context), const void *context,
                                       uint64_t deadline_ns, bool interruptible);
/// Makes a sleeping csched_worker_help look at its condition again. `worker` is a csched_worker.
void csched_worker_interrupt(void *worker);

#endif
