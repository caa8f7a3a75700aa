// shots_counter.c - counters: waits for them, inside and outside, and notifications.

#include <stdlib.h>

#include "load.h"

enum { GROUP_MOST = 48, NESTED_MOST = 24 };

static void submit_group(stress_producer *producer, csched_completion *counter, uint32_t first,
                         uint32_t count)
{
    for (uint32_t number = first; number < first + count; number++) {
        csched_operation operation = stress_operation(producer, stress_run_leaf, number, 1);
        operation.counter = counter;
        stress_expect_ok(csched_submit(producer->scheduler, &operation), "csched_submit");
    }
}

typedef struct {
    stress_producer *producer;
    uint32_t number;
} notified;

// Ends a notification. It counts as an operation of the round, and leaves the round's counter last.
static void settle(notified *context, csched_disposition disposition)
{
    stress_producer *producer = context->producer;
    stress_end(producer, context->number, disposition);
    free(context);
    (void)csched_completion_leave(producer->round, 1);
}

static void be_notified(void *context) { settle(context, CSCHED_RUN); }

static csched_notification *notify(stress_producer *producer, notified **context)
{
    *context = malloc(sizeof **context);
    if (*context == NULL) {
        stress_stop("memory is exhausted: a notification's context could not be allocated");
    }
    **context = (notified){producer, stress_expect(&producer->ledger, STRESS_NOTIFICATION, 1)};
    csched_completion_enter(producer->round, 1);
    csched_notification *notification = csched_completion_notify(producer->phase, be_notified, *context);
    if (notification == NULL) {
        stress_stop("memory is exhausted: csched_completion_notify answered NULL");
    }
    return notification;
}

// A group on a counter that has had many generations: a thread may wait for it, with or without a time
// limit, and a function may be called at its end.
void stress_shot_wait(stress_producer *producer)
{
    csched_completion *counter = producer->phase;
    uint32_t count = 1 + stress_below(&producer->random, GROUP_MOST);
    uint32_t first = stress_expect(&producer->ledger, STRESS_WAITED, count);
    submit_group(producer, counter, first, count);
    bool early = stress_errs(producer, STRESS_EARLY);
    if (early) {
        stress_must_have_run(&producer->ledger, first, count);
    }
    notified *context;
    csched_notification *notification = notify(producer, &context);
    if (stress_one_in(&producer->random, 2)) {
        (void)csched_completion_wait(counter, stress_below(&producer->random, 20000));
    }
    if (!stress_one_in(&producer->random, 4)) {
        csched_notification_release(notification);
    } else if (csched_notification_cancel(notification)) {
        settle(context, CSCHED_CANCEL);
    }
    if (csched_completion_wait(counter, CSCHED_FOREVER) != CSCHED_WAIT_COMPLETED) {
        stress_note(&producer->ledger.wrong);
    }
    stress_must_have_run(&producer->ledger, first, count);
}

// How many waits are on this thread's stack. Each runs other operations on top of itself, which may wait
// again; the library stops the process at the end of the stack.
static _Thread_local uint32_t nesting;

static void run_helper(void *context, void *extra, csched_disposition disposition)
{
    stress_producer *producer = context;
    uint32_t first = stress_number(extra) + 1;
    uint32_t count = stress_span(extra) - 1;
    stress_end(producer, stress_number(extra), disposition);
    if (nesting >= NESTED_MOST) {
        submit_group(producer, producer->round, first, count);
        return;
    }
    csched_completion *counter = csched_completion_create();
    if (counter == NULL) {
        stress_stop("memory is exhausted: csched_completion_create answered NULL");
    }
    submit_group(producer, counter, first, count);
    nesting++;
    // Sometimes a wait that ends before its operations do; it must not lose what it took meanwhile.
    (void)csched_completion_wait(counter, stress_number(extra) % 4 == 0 ? 1000 : CSCHED_FOREVER);
    if (csched_completion_wait(counter, CSCHED_FOREVER) != CSCHED_WAIT_COMPLETED) {
        stress_note(&producer->ledger.wrong);
    }
    nesting--;
    stress_must_have_run(&producer->ledger, first, count);
    csched_completion_release(counter);
}

// An operation that waits for its children, and so runs other operations meanwhile.
void stress_shot_help(stress_producer *producer)
{
    uint32_t count = 2 + stress_below(&producer->random, GROUP_MOST);
    uint32_t number = stress_expect(&producer->ledger, STRESS_HELPED, count);
    csched_operation operation = stress_operation(producer, run_helper, number, count);
    stress_expect_ok(csched_submit(producer->scheduler, &operation), "csched_submit");
}
