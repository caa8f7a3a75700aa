// join.c - fork and join: any worker can take the second branch while the first one runs.
//
//   J1  A frame lives on the stack of the join that created it. Apart from the join, only the worker that
//       took the second branch out of a queue knows the frame. The join returns after it has run the branch
//       itself, or has seen DONE.
//   J2  A second branch is a part of a body that has started: the worker that takes it runs it, even after a
//       shutdown that cancels (worker.c: run).
//   J3  A worker that finishes a branch does not touch the frame after it has set DONE: it wakes by address
//       alone.
//   J4  A join whose second branch was taken may run what that branch has forked, and nothing else (X7): the
//       operation of a fork holds, in addition to that fork, the one whose taken branch encloses it.
//       (Leapfrogging.)
//
// Orderings:
//   P24  finish: state (release) -> join: state (acquire). Publishes the branch's writes.
//   P25  join: AWAITED by a compare-exchange, then sleeps; finish: exchanges DONE, and wakes when it replaced
//        AWAITED. One word's modification order: one of the two sees the other.
//
// Source: Wagner and Calder: Leapfrogging: A Portable Technique for Implementing Efficient Futures (1993).

#include "join.h"

#include "scheduler_internal.h"
#include "tuning.h"

enum { PENDING, AWAITED, DONE };

// A join from outside: both branches as one operation.
typedef struct {
    csched_fork fork; // its branch is the first one
    csched_branch second;
    bool cancelled;
} root;

// The header is also for compilers without C11 atomics, so the word is atomic only here.
static csched_atomic(uint32_t) *state_of(csched_fork *fork)
{
    return (csched_atomic(uint32_t) *)&fork->state;
}

_Static_assert(sizeof(csched_atomic(uint32_t)) == sizeof(uint32_t), "state_of");

static void call(csched_branch branch) { branch.function(branch.context); }

static void finish(csched_fork *fork)
{
    csched_atomic(uint32_t) *state = state_of(fork);
    if (csched_exchange(state, DONE, acq_rel) == AWAITED) { // P24, P25
        csched_futex_wake(state, 1);                        // J3
    }
}

void csched_join_run_second(void *context, void *enclosing, csched_disposition disposition)
{
    (void)enclosing, (void)disposition;
    csched_fork *fork = context;
    csched_worker *worker = csched_worker_self();
    const void *outer = worker->enclosing;
    worker->enclosing = fork; // J4
    call(fork->branch);
    worker->enclosing = outer;
    finish(fork);
}

static bool is_done(const void *context)
{
    const csched_fork *fork = context;
    return csched_load((const csched_atomic(uint32_t) *)&fork->state, acquire) == DONE; // P24
}

// J4. Another worker may take the operation meanwhile, so only its own words are read.
static bool is_enclosed(const void *context, const csched_operation *operation)
{
    return operation->run == csched_join_run_second && operation->extra == context;
}

static void sleep_until_done(csched_fork *fork)
{
    uint32_t seen = PENDING;
    while (csched_cas(state_of(fork), &seen, AWAITED, acquire, acquire) || seen == AWAITED) { // P25
        (void)csched_futex_wait(&fork->state, AWAITED, CSCHED_FOREVER);
        seen = PENDING;
    }
}

// Usually the branch ends soon, and this sleep need not be announced: an announcement wakes the watch, which
// takes a CPU from one of the two workers.
static bool is_done_soon(csched_fork *fork)
{
    uint32_t seen = PENDING;
    // P25. relaxed: is_done acquires.
    if (csched_cas(state_of(fork), &seen, AWAITED, relaxed, relaxed)) {
        (void)csched_futex_wait(&fork->state, AWAITED, CSCHED_JOIN_NAP_NS);
    }
    return is_done(fork);
}

static void wait_on_worker(csched_worker *worker, csched_fork *fork)
{
    const csched_wait wait = {.is_over = is_done, .belongs = is_enclosed, .context = fork};
    for (int look = 0; look < CSCHED_JOIN_LOOKS && !is_done(fork); look++) {
        if (csched_worker_run_nested(worker, &wait)) {
            look = 0;
        }
        // No sleep yet: usually the branch is short, and its end would wake this thread on the CPU where the
        // branch's worker is running.
        csched_yield();
    }
    csched_worker_settle(worker);
    if (!is_done_soon(fork)) {
        csched_worker_block(worker);
        sleep_until_done(fork);
        csched_worker_unblock(worker);
    }
}

static bool begin(csched_worker *worker, csched_fork *fork, csched_branch branch)
{
    fork->branch = branch;
    fork->joiner = worker;
    csched_init(state_of(fork), PENDING);
    const csched_operation operation = {
        .run = csched_join_run_second, .context = fork, .extra = (void *)(uintptr_t)worker->enclosing};
    return csched_likely(csched_worker_may_nest(worker)) &&
           csched_worker_submit(worker, &operation, 1, worker->priority);
}

bool csched_fork_begin(csched_fork *fork, csched_branch branch)
{
    csched_worker *worker = csched_worker_self();
    return csched_likely(worker != NULL) && begin(worker, fork, branch);
}

bool csched_fork_end(csched_fork *fork)
{
    if (csched_likely(csched_worker_take_back(fork->joiner, fork))) {
        return true;
    }
    wait_on_worker(fork->joiner, fork);
    return false;
}

static void join_on_worker(csched_worker *worker, csched_branch first, csched_branch second)
{
    csched_fork fork;
    if (!begin(worker, &fork, second)) {
        call(first);
        call(second);
        return;
    }
    call(first);
    if (csched_fork_end(&fork)) {
        call(second);
    }
}

static void run_root(void *context, void *unused, csched_disposition disposition)
{
    (void)unused;
    root *both = context;
    if (disposition == CSCHED_RUN) {
        join_on_worker(csched_worker_self(), both->fork.branch, both->second);
    } else {
        both->cancelled = true;
    }
    finish(&both->fork);
}

static csched_status join_outside(csched_scheduler *scheduler, csched_worker *other, csched_branch first,
                                  csched_branch second)
{
    root both = {.fork = {.branch = first, .joiner = other}, .second = second, .cancelled = false};
    csched_init(state_of(&both.fork), PENDING);
    const csched_operation operation = {.run = run_root, .context = &both};
    csched_status status = csched_submit_exempt(scheduler, &operation);
    if (status != CSCHED_OK) {
        return status;
    }
    if (other != NULL) {
        wait_on_worker(other, &both.fork);
    } else {
        sleep_until_done(&both.fork);
    }
    return both.cancelled ? CSCHED_CLOSED : CSCHED_OK;
}

csched_status csched_join(csched_scheduler *scheduler, csched_branch first, csched_branch second)
{
    csched_worker *worker = csched_worker_self();
    if (csched_unlikely(worker == NULL || worker->scheduler != scheduler)) {
        return join_outside(scheduler, worker, first, second);
    }
    join_on_worker(worker, first, second);
    return CSCHED_OK;
}
