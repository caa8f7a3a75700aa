// lane.c - serial lane: a mailbox that is at most once in the scheduler's queues.
//
//   L1  head is IDLE: nothing waits and no drain is under way; else a drain is queued or running, exactly
//       one. Whoever changes IDLE to a node submits the drain; the drain alone changes head back to IDLE,
//       when nothing waits.
//   L2  Submitters push in front, the drain takes everything at once and turns it round: first in, first out.
//       The list is only ever emptied as a whole, so there is no ABA, and a submitter stopped anywhere hides
//       nobody else's operation.
//   L3  A drain runs at most TURN operations, then queues itself again: a lane that never runs dry keeps no
//       worker.
//   L4  references: the owner's, and one of the drain that is queued or runs. The last one frees the lane.
//
// Orderings:
//   P21  push (release) -> take (acquire): the operation, and what its submitter wrote.
//   P22  drain to drain by head's modification order and by the scheduler's queues: what an operation wrote
//        is visible to the next.
//
//   L5  When the scheduler refuses the drain, the submitter who was to start it empties the mailbox in its
//       place: its own operation is refused, those that others pushed meanwhile (and were told so) are
//       cancelled.

#include "cscheduler/lane.h"

#include "scheduler_internal.h"

enum { TURN = 64 };

typedef struct node {
    struct node *next;
    csched_operation operation;
} node;

struct csched_lane {
    csched_scheduler *scheduler;
    csched_atomic(uint32_t) references; // L4
    csched_aligned_to_line csched_atomic(node *) head;
    node *taken; // the drain's own: in order, not run yet
};

static node idle_sign;
#define IDLE (&idle_sign)

// The lanes whose operations are on this thread's stack: more than one when an operation waits and helps.
typedef struct frame {
    const csched_lane *lane;
    const struct frame *outer;
} frame;

csched_thread_local const frame *innermost;

csched_lane *csched_lane_create(csched_scheduler *scheduler)
{
    csched_lane *lane = csched_allocate(sizeof *lane, CSCHED_LINE);
    if (lane != NULL) {
        lane->scheduler = scheduler;
        lane->taken = NULL;
        csched_init(&lane->references, 1);
        csched_init(&lane->head, IDLE);
    }
    return lane;
}

void csched_lane_release(csched_lane *lane)
{
    if (csched_fetch_sub(&lane->references, 1, acq_rel) == 1) {
        csched_free(lane);
    }
}

static void run_first(csched_lane *lane, csched_disposition disposition)
{
    node *first = lane->taken;
    lane->taken = first->next;
    csched_operation operation = first->operation;
    csched_free(first);
    operation.run(operation.context, operation.extra, disposition);
    if (operation.counter != NULL) {
        (void)csched_completion_leave(operation.counter, 1);
    }
}

// L1, L2. False: nothing waited, and the lane is idle now: another thread may be its drain already.
static bool refill(csched_lane *lane)
{
    node *expected = NULL;
    if (csched_cas(&lane->head, &expected, IDLE, release, relaxed)) { // P22
        return false;
    }
    node *newest = csched_exchange(&lane->head, NULL, acquire); // P21
    for (node *next; newest != NULL; newest = next) {
        next = newest->next;
        newest->next = lane->taken;
        lane->taken = newest;
    }
    return true;
}

static void drain(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_lane *lane = context;
    const frame here = {.lane = lane, .outer = innermost};
    innermost = &here;
    for (int turn = 0;; turn++) {
        if (lane->taken == NULL && !refill(lane)) {
            innermost = here.outer;
            csched_lane_release(lane);
            return;
        }
        if (turn >= TURN) { // L3
            csched_operation again = {.run = drain, .context = lane};
            // To the scheduler whose worker this is: the lane's own, or the fallback of one that is closed.
            if (csched_submit_exempt(csched_scheduler_current(), again) == CSCHED_OK) {
                innermost = here.outer;
                return;
            }
            turn = 0; // out of memory: go on here
        }
        run_first(lane, disposition);
    }
}

// L5. `own` is the operation of the calling thread, which is told by the status.
static void empty(csched_lane *lane, const node *own)
{
    while (lane->taken != NULL || refill(lane)) {
        if (lane->taken == own) {
            node *mine = lane->taken;
            lane->taken = mine->next;
            csched_free(mine);
        } else {
            run_first(lane, CSCHED_CANCEL);
        }
    }
    csched_lane_release(lane);
}

static csched_status submit(csched_lane *lane, csched_operation operation, csched_scheduler *fallback)
{
    node *added = csched_allocate(sizeof *added, 0);
    if (added == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    added->operation = operation;
    if (operation.counter != NULL) {
        csched_completion_enter(operation.counter, 1);
    }
    node *head = csched_load(&lane->head, relaxed);
    do {
        added->next = head == IDLE ? NULL : head;
    } while (!csched_cas_weak(&lane->head, &head, added, acq_rel, relaxed)); // P21, P22
    if (head != IDLE) {
        return CSCHED_OK;
    }
    csched_fetch_add(&lane->references, 1, relaxed); // L4; the owner's is there
    csched_operation start = {.run = drain, .context = lane};
    csched_status status = csched_submit_exempt(lane->scheduler, start);
    if (status == CSCHED_CLOSED && fallback != NULL) {
        status = csched_submit_exempt(fallback, start);
    }
    if (status != CSCHED_OK) {
        empty(lane, added);
        if (operation.counter != NULL) {
            (void)csched_completion_leave(operation.counter, 1);
        }
    }
    return status;
}

csched_status csched_lane_submit(csched_lane *lane, csched_operation operation)
{
    return submit(lane, operation, NULL);
}

csched_status csched_lane_submit_surely(csched_lane *lane, csched_operation operation,
                                        csched_scheduler *fallback)
{
    return submit(lane, operation, fallback);
}

bool csched_lane_is_current(const csched_lane *lane)
{
    for (const frame *here = innermost; here != NULL; here = here->outer) {
        if (here->lane == lane) {
            return true;
        }
    }
    return false;
}
