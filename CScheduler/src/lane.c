// lane.c - serial lane: a mailbox that is at most once in the scheduler's queues.
//
//   L1  At most one drain runs: it holds `running`, taken by compare-exchange. More drains may be in the
//       scheduler's queues; a drain that finds another one running returns at once.
//   L2  Submitters push at the front; the drain takes the whole list at once and reverses it: first in, first
//       out. The list is emptied only as a whole, so there is no ABA.
//   L3  A drain runs at most CSCHED_TURN operations, then queues itself again: a lane that never runs dry
//       does not monopolise a worker.
//   L4  references: one held by the owner, and one by each drain that is queued or running. The last release
//       frees the lane.
//   L5  No submission relies on a thread that may be stopped. A submitter pushes, then submits a drain unless
//       one is queued and has not begun, or is running. `queued` is incremented after the submission and
//       decremented when the drain begins: it may be too low, never too high. If it is too low, that costs a
//       drain that finds nothing.
//   L6  A drain that ends clears `running`, then checks the list again. With L5: either the submitter sees
//       that no drain runs, or the drain sees what was pushed. (P22)
//   L7  A submitter whose drain is refused tries to withdraw its own operation, via its node's state. If
//       that succeeds, it returns the scheduler's status; else a drain has already taken the operation, which
//       is thus accepted.
//   L8  A drain has the priority of the submission that queues it, but never background: operations of other
//       submitters wait for it, too. If a drain is queued that may have a lower priority, the first
//       submission of high priority queues another one (`hurried`, until a drain begins).
//
// Orderings:
//   P21  push (release) -> take (acquire): the operation, and its submitter's writes.
//   P22  push: head, then queued and running <-> drain: queued or running, then head; all seq_cst.
//   P23  a drain clears running (release) -> the next one sets it (acquire): an operation's writes are
//        visible to the next one.

#include "cscheduler/lane.h"

#include "scheduler_internal.h"
#include "tuning.h"

typedef enum { WAITING, TAKEN, WITHDRAWN } node_state;

typedef struct node {
    struct node *next;
    csched_operation operation;
    csched_atomic(uint32_t) state;      // L7: a node_state
    csched_atomic(uint32_t) references; // the list's, and the submitter's
} node;

struct csched_lane {
    csched_scheduler *scheduler;
    csched_atomic(uint32_t) references; // L4
    csched_aligned_to_line csched_atomic(node *) head;
    csched_atomic(int32_t) queued; // L5
    csched_atomic(bool) running;   // L1
    csched_atomic(bool) hurried;   // L8
    node *taken;                   // private to the drain: in order, not run yet
};

// The lanes whose operations are on this thread's stack: more than one when an operation waits with
// CSCHED_HELP_ANYBODY.
typedef struct frame {
    const csched_lane *lane;
    const struct frame *outer;
    uint32_t nesting; // the worker's, at that time: operations that a wait runs on top are not the lane's
} frame;

csched_thread_local const frame *innermost;

csched_lane *csched_lane_create(csched_scheduler *scheduler)
{
    csched_lane *lane = csched_allocate(sizeof *lane, CSCHED_LINE);
    if (lane != NULL) {
        lane->scheduler = scheduler;
        lane->taken = NULL;
        csched_init(&lane->references, 1);
        csched_init(&lane->head, NULL);
        csched_init(&lane->queued, 0);
        csched_init(&lane->running, false);
        csched_init(&lane->hurried, false);
    }
    return lane;
}

static void unreference(node *old)
{
    if (csched_fetch_sub(&old->references, 1, acq_rel) == 1) {
        csched_free(old);
    }
}

// L2
static bool refill(csched_lane *lane)
{
    node *newest = csched_exchange(&lane->head, NULL, seq_cst); // P21, P22
    for (node *next; newest != NULL; newest = next) {
        next = newest->next;
        newest->next = lane->taken;
        lane->taken = newest;
    }
    return lane->taken != NULL;
}

void csched_lane_release(csched_lane *lane)
{
    if (csched_fetch_sub(&lane->references, 1, acq_rel) == 1) {
        // The remaining nodes were withdrawn: any other node would have a drain, which would hold a
        // reference.
        while (lane->taken != NULL || refill(lane)) {
            node *first = lane->taken;
            lane->taken = first->next;
            unreference(first);
        }
        csched_free(lane);
    }
}

static void run_first(csched_lane *lane, csched_disposition disposition)
{
    node *first = lane->taken;
    lane->taken = first->next;
    csched_operation operation = first->operation;
    uint32_t waiting = WAITING;
    // relaxed, here and at the withdrawal: only the decision matters.
    bool taken = csched_cas(&first->state, &waiting, TAKEN, relaxed, relaxed); // L7
    unreference(first);
    if (taken) {
        operation.run(operation.context, operation.extra, disposition);
        if (operation.counter != NULL) {
            (void)csched_completion_leave(operation.counter, 1);
        }
    }
}

static void drain(void *context, void *extra, csched_disposition disposition);

// Queues a drain, on the lane's scheduler or, if that is closed, on `fallback`. No effect if it is refused.
static csched_status start(csched_lane *lane, csched_scheduler *scheduler, csched_scheduler *fallback,
                           csched_priority priority)
{
    csched_fetch_add(&lane->references, 1, relaxed); // L4; the caller has one
    csched_operation operation = {.run = drain, .context = lane};
    csched_status status = csched_submit_exempt_at(scheduler, &operation, priority);
    if (status == CSCHED_CLOSED && fallback != NULL) {
        status = csched_submit_exempt_at(fallback, &operation, priority);
    }
    if (status == CSCHED_OK) {
        csched_fetch_add(&lane->queued, 1, seq_cst); // L5
    } else {
        csched_lane_release(lane);
    }
    return status;
}

static bool begin(csched_lane *lane)
{
    bool running = false;
    return csched_cas(&lane->running, &running, true, seq_cst, seq_cst); // L1, P22, P23
}

// True: this drain has nothing left to do.
static bool finish(csched_lane *lane)
{
    csched_store(&lane->running, false, seq_cst); // P22, P23
    return csched_load(&lane->head, seq_cst) == NULL || !begin(lane);
}

static void drain(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_lane *lane = context;
    csched_fetch_sub(&lane->queued, 1, seq_cst); // L5
    if (csched_unlikely(csched_load(&lane->hurried, relaxed))) {
        csched_store(&lane->hurried, false, relaxed); // L8
    }
    if (begin(lane)) {
        const csched_worker *worker = csched_worker_self();
        const frame here = {.lane = lane, .outer = innermost, .nesting = worker->nesting};
        innermost = &here;
        for (int turn = 0;; turn++) {
            if (lane->taken == NULL && !refill(lane)) {
                if (finish(lane)) { // L6
                    break;
                }
                continue;
            }
            // L3. On this worker's scheduler: the lane's own, or the fallback if the lane's own is closed.
            if (turn >= CSCHED_TURN &&
                start(lane, worker->scheduler, NULL, CSCHED_PRIORITY_DEFAULT) == CSCHED_OK) {
                csched_store(&lane->running, false, seq_cst);
                // The new drain runs the rest, unless it began too early and found this one still running.
                if (csched_load(&lane->queued, seq_cst) > 0 || !begin(lane)) {
                    break;
                }
                turn = 0;
                continue; // that drain may have run in between, to its end: then nothing is taken any more
            }
            run_first(lane, csched_is_cancelling(worker->scheduler) ? CSCHED_CANCEL : disposition);
        }
        innermost = here.outer;
    }
    csched_lane_release(lane);
}

// L8
static bool hurry(csched_lane *lane, csched_priority priority)
{
    return priority == CSCHED_PRIORITY_HIGH && !csched_exchange(&lane->hurried, true, relaxed);
}

static csched_status submit(csched_lane *lane, const csched_operation *operation, csched_scheduler *fallback,
                            csched_priority priority)
{
    priority = priority == CSCHED_PRIORITY_INHERITED ? csched_priority_current() : priority;
    priority = priority == CSCHED_PRIORITY_HIGH ? priority : CSCHED_PRIORITY_DEFAULT; // L8
    node *added = csched_allocate(sizeof *added, 0);
    if (added == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    added->operation = *operation;
    csched_init(&added->state, WAITING);
    csched_init(&added->references, 2);
    if (operation->counter != NULL) {
        csched_completion_enter(operation->counter, 1);
    }
    node *head = csched_load(&lane->head, relaxed);
    do {
        added->next = head;
    } while (!csched_cas_weak(&lane->head, &head, added, seq_cst, relaxed)); // P21, P22
    csched_status status = CSCHED_OK;
    if (!csched_load(&lane->running, seq_cst) &&
        (hurry(lane, priority) || csched_load(&lane->queued, seq_cst) <= 0)) { // L5
        status = start(lane, lane->scheduler, fallback, priority);
        uint32_t waiting = WAITING;
        if (status != CSCHED_OK && !csched_cas(&added->state, &waiting, WITHDRAWN, relaxed, relaxed)) {
            status = CSCHED_OK; // L7
        }
        if (status != CSCHED_OK && operation->counter != NULL) {
            (void)csched_completion_leave(operation->counter, 1);
        }
    }
    unreference(added);
    return status;
}

csched_status csched_lane_submit(csched_lane *lane, const csched_operation *operation)
{
    return csched_lane_submit_at(lane, operation, CSCHED_PRIORITY_INHERITED);
}

csched_status csched_lane_submit_at(csched_lane *lane, const csched_operation *operation,
                                    csched_priority priority)
{
    if (csched_unlikely((csched_load(&lane->scheduler->control, relaxed) & CSCHED_CLOSING) != 0) &&
        csched_scheduler_current() != lane->scheduler) {
        return CSCHED_CLOSED; // a node that L7 withdraws would stay until the lane is released
    }
    return submit(lane, operation, NULL, priority);
}

csched_status csched_lane_submit_surely(csched_lane *lane, const csched_operation *operation,
                                        csched_priority priority, csched_scheduler *fallback)
{
    return submit(lane, operation, fallback, priority);
}

bool csched_lane_is_current(const csched_lane *lane)
{
    return innermost != NULL && innermost->lane == lane &&
           innermost->nesting == csched_worker_self()->nesting;
}

bool csched_lane_is_on_stack(const csched_lane *lane)
{
    for (const frame *here = innermost; here != NULL; here = here->outer) {
        if (here->lane == lane) {
            return true;
        }
    }
    return false;
}
