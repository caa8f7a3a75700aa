// idle_scenarios.c - sleeping and waking: workers as in worker.c, but without deques, bodies and the end.

#include "scenario.h"

#include "idle.h"
#include "inbox.h"

enum { SUBMITTERS_MOST = 2 };

static csched_idle idle;
static csched_inbox inboxes[SUBMITTERS_MOST];
static csched_reclaim *domain;
static csched_atomic(uint32_t) left; // items that nobody has run
static int items;
static int submitters;
static bool nested;
static bool may_stop; // worker 0, before its first look

static void begin(int submitter_count, int item_count, int workers)
{
    domain = csched_reclaim_create();
    submitters = submitter_count;
    items = item_count;
    nested = may_stop = false;
    for (int index = 0; index < submitters; index++) {
        csched_check(csched_inbox_init(&inboxes[index], domain), "no memory");
    }
    csched_idle_init(&idle);
    for (int worker = 0; worker < workers; worker++) {
        csched_idle_join(&idle);
    }
    csched_init(&left, (uint32_t)item_count);
}

static void check(void)
{
    items_check(items);
    csched_check(csched_load(&idle.searching, relaxed) == 0, "somebody counts as searching still");
    csched_check(csched_load(&idle.busy, relaxed) == 0, "somebody counts as busy still");
    csched_check(csched_load(&idle.sleepers[0], relaxed) == 0, "somebody counts as asleep still");
    for (int index = 0; index < submitters; index++) {
        csched_inbox_destroy(&inboxes[index]);
    }
    csched_reclaim_destroy(domain);
}

static void submit(int submitter, int number)
{
    csched_operation operation = item_put(number);
    csched_check(csched_inbox_append(&inboxes[submitter], &operation, 1) == CSCHED_APPENDED, "append");
    csched_idle_after_submit(&idle);
}

static bool is_empty(void)
{
    bool empty = true;
    csched_reclaim_enter();
    for (int index = 0; index < submitters; index++) {
        empty = empty && csched_inbox_is_empty(&inboxes[index]);
    }
    csched_reclaim_exit();
    return empty;
}

static bool take(void)
{
    csched_operation operation;
    size_t count = 0;
    csched_reclaim_enter();
    for (int index = 0; count == 0 && index < submitters; index++) {
        count = csched_inbox_take(&inboxes[index], &operation, 1);
    }
    csched_reclaim_exit();
    if (count == 0) {
        return false;
    }
    if (csched_idle_found(&idle) && !is_empty()) { // as stop_searching does
        csched_idle_wake_one(&idle);
    }
    (void)item_taken(&operation);
    if (csched_fetch_sub(&left, 1, seq_cst) == 1) {
        csched_idle_wake_all(&idle);
    }
    csched_idle_search(&idle);
    return true;
}

static void work(uint32_t worker)
{
    csched_idle_search(&idle);
    for (bool first = true;;) {
        relacy_may_stop(first && may_stop && worker == 0);
        uint32_t some = csched_load(&left, seq_cst);
        relacy_may_stop(first = false);
        if (some == 0) {
            break;
        }
        if (take()) {
            continue;
        }
        (void)csched_idle_announce(&idle, worker);
        if (csched_load(&left, seq_cst) != 0 && is_empty()) { // as anything_to_do does
            if (!nested) {
                csched_idle_rest(&idle);
            }
            csched_idle_sleep(&idle, worker, UINT64_MAX);
            if (!nested) {
                csched_idle_stir(&idle);
            }
        }
        (void)csched_idle_rise(&idle, worker);
    }
    (void)csched_idle_found(&idle);
    csched_idle_leave(&idle);
    relacy_go_on();
}

// A submission meets a worker that is about to sleep.
static void submit_setup(void) { begin(1, 2, 1); }

static void submit_thread(int index)
{
    if (index == 0) {
        submit(0, 0);
        submit(0, 1);
    } else {
        work(0);
    }
}

// Two workers, of whom each may count on the other.
static void two_setup(void)
{
    begin(1, 2, 2);
    nested = true;
}

static void two_thread(int index)
{
    if (index == 0) {
        submit(0, 0);
        submit(0, 1);
    } else {
        work((uint32_t)index - 1);
    }
}

// Two wakers for one sleeper: one may be stopped in an earlier sleep.
static void epochs_setup(void) { begin(2, 3, 1); }

static void epochs_thread(int index)
{
    if (index == 2) {
        work(0);
        return;
    }
    submit(index, index);
    if (index == 0) {
        submit(index, 2);
    }
}

// A waker is stopped for ever after its publication: the next submission finishes its wake-up (W3), whatever
// another waker does late that meant an earlier sleep.
static void waker_stops_setup(void) { begin(2, 3, 1); }

static void waker_stops_thread(int index)
{
    if (index == 2) {
        work(0);
        return;
    }
    if (index == 1) {
        submit(1, 0);
        others_wait(1);
        submit(1, 1);
        return;
    }
    csched_operation operation = item_put(2);
    csched_check(csched_inbox_append(&inboxes[0], &operation, 1) == CSCHED_APPENDED, "append");
    others_done();
    relacy_may_stop(true);
    csched_idle_after_submit(&idle);
    relacy_may_stop(false);
}

// A worker is stopped for ever before it looks: a submission does not count on it alone (W2). Only before its
// first look: one that was woken for a submission and is stopped then keeps that one operation until the next
// submission.
static void looker_stops_setup(void)
{
    begin(1, 1, 2);
    may_stop = true;
}

static void looker_stops_thread(int index)
{
    if (index == 0) {
        submit(0, 0);
    } else {
        work((uint32_t)index - 1);
    }
}

const relacy_scenario idle_scenarios[] = {
    {"idle-submit", "a submission meets a worker that is about to sleep", 2, 0, submit_setup, submit_thread,
     check},
    {"idle-two", "two submissions, two workers", 3, 0, two_setup, two_thread, check},
    {"idle-epochs", "two wakers and one sleeper, who sleeps more than once", 3, 0, epochs_setup,
     epochs_thread, check},
    {"idle-waker_stops", "a waker is stopped for ever in its wake-up", 3, 0, waker_stops_setup,
     waker_stops_thread, check},
    {"idle-looker_stops", "a worker is stopped for ever before it looks", 3, 0, looker_stops_setup,
     looker_stops_thread, check},
    {0},
};
