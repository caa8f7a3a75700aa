// join.c - fork and join: the second branch of a body is in everybody's reach while the first one runs.
//
//   J1  A frame lives on the stack of the join that made it. Besides the join, only who took the second
//       branch out of a queue knows it. The join returns after it has run the branch itself, or has seen
//       DONE.
//   J2  A second branch is a part of a body that has started: whoever takes it runs it, also after a shutdown
//       that cancels (worker.c: run).
//   J3  Who finishes a branch reads whom to wake before it says DONE, and touches nothing of the frame
//       afterwards but its address. It does both inside a read section: the worker it wakes may leave its
//       scheduler as soon as DONE is seen, but its memory stays until the grace period.
//
// Orderings:
//   P20  finish: state (acq_rel) -> join: state (acquire). What the branch wrote.
//   P21  join: AWAITED by a compare-exchange, then sleeps; finish: exchanges DONE, and wakes when it replaced
//        AWAITED. One word's modification order: one of the two sees the other.

#include "join.h"

#include "scheduler_internal.h"

enum { PENDING, AWAITED, DONE };

typedef struct {
    csched_branch branch;
    csched_worker *joiner; // NULL: a thread that is no worker
    csched_atomic(uint32_t) state;
} frame;

// A join from outside: both branches as one operation.
typedef struct {
    frame frame;
    csched_branch second;
    bool cancelled;
} root;

static void finish(frame *frame)
{
    csched_reclaim_enter(); // J3
    csched_worker *joiner = frame->joiner;
    csched_atomic(uint32_t) *state = &frame->state;
    if (csched_exchange(state, DONE, acq_rel) == AWAITED) { // P20, P21
        if (joiner != NULL) {
            csched_worker_interrupt(joiner);
        } else {
            csched_futex_wake(state, 1);
        }
    }
    csched_reclaim_exit();
}

void csched_join_run_second(void *context, void *unused, csched_disposition disposition)
{
    (void)unused, (void)disposition;
    frame *forked = context;
    forked->branch.function(forked->branch.context);
    finish(forked);
}

static bool is_done(const void *context)
{
    const frame *forked = context;
    return csched_load(&forked->state, acquire) == DONE; // P20
}

// False: it is done.
static bool announce(frame *frame)
{
    uint32_t seen = PENDING;
    return csched_cas(&frame->state, &seen, AWAITED, relaxed, acquire) || seen == AWAITED; // P21
}

static void wait_on_worker(frame *frame)
{
    bool announced = false;
    while (csched_worker_help(is_done, frame, CSCHED_FOREVER, announced) == CSCHED_HELP_SLEEPY &&
           announce(frame)) {
        announced = true;
    }
}

static void wait_outside(frame *frame)
{
    while (announce(frame)) {
        (void)csched_futex_wait(&frame->state, AWAITED, CSCHED_FOREVER);
    }
}

static void join_on_worker(csched_worker *worker, csched_branch first, csched_branch second)
{
    frame forked = {.branch = second, .joiner = worker};
    csched_init(&forked.state, PENDING);
    const csched_operation operation = {.run = csched_join_run_second, .context = &forked};
    if (csched_unlikely(!csched_worker_may_nest(worker)) || !csched_worker_submit(worker, &operation, 1)) {
        first.function(first.context);
        second.function(second.context);
        return;
    }
    first.function(first.context);
    if (csched_likely(csched_worker_take_back(worker, &forked))) {
        second.function(second.context);
        csched_worker_count_executed(worker);
    } else {
        wait_on_worker(&forked);
    }
}

static void run_root(void *context, void *unused, csched_disposition disposition)
{
    (void)unused;
    root *both = context;
    if (disposition == CSCHED_RUN) {
        join_on_worker(csched_worker_self(), both->frame.branch, both->second);
    } else {
        both->cancelled = true;
    }
    finish(&both->frame);
}

static csched_status join_outside(csched_scheduler *scheduler, csched_worker *other, csched_branch first,
                                  csched_branch second)
{
    root both = {.frame = {.branch = first, .joiner = other}, .second = second, .cancelled = false};
    csched_init(&both.frame.state, PENDING);
    const csched_operation operation = {.run = run_root, .context = &both};
    csched_status status = csched_submit_exempt(scheduler, operation);
    if (status != CSCHED_OK) {
        return status;
    }
    if (other != NULL) {
        wait_on_worker(&both.frame);
    } else {
        wait_outside(&both.frame);
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
