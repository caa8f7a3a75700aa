// completion_scenarios.c - the counter: who leaves, who waits, who is called.

#include "scenario.h"

#include "cscheduler/completion.h"

static csched_completion *counter;
static csched_notification *notification;
static int written[4]; // plain: what operations wrote
static int called;     // plain
static bool cancelled;

static void begin(uint32_t count)
{
    counter = csched_completion_create();
    notification = NULL;
    called = 0;
    cancelled = false;
    for (int index = 0; index < 4; index++) {
        written[index] = 0;
    }
    csched_completion_enter(counter, count);
}

static void begin_one(void) { begin(1); }
static void begin_two(void) { begin(2); }

static void work(int index)
{
    written[index] = 1;
    (void)csched_completion_leave(counter, 1);
}

static void expect_written(int index)
{
    csched_check(written[index] == 1, "an operation was not waited for");
}

static void wait(void)
{
    csched_check(csched_completion_wait(counter, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "timed out");
}

static void check(void)
{
    csched_check(csched_completion_outstanding(counter) == 0, "something is outstanding");
    csched_completion_release(counter);
}

static void check_nothing(void) {}

// Early and late waits, and who frees the counter as soon as it returns.
static void wait_thread(int index)
{
    if (index > 0) {
        work(index);
        return;
    }
    wait();
    expect_written(1);
    expect_written(2);
    csched_completion_release(counter);
}

// Two waiters: the last leave wakes both.
static void waiters_thread(int index)
{
    if (index == 2) {
        work(2);
    } else {
        wait();
        expect_written(2);
    }
}

// The next generation begins at once; a waiter of the first must not wait for it.
static void generations_thread(int index)
{
    if (index > 0) {
        wait();
        expect_written(0);
        if (index == 1) {
            csched_completion_enter(counter, 1);
            work(1);
        }
        return;
    }
    work(0);
    csched_completion_enter(counter, 1);
    work(3);
}

static void generations_setup(void) { begin(1); }

static void calls(void *unused)
{
    (void)unused;
    called++;
    expect_written(1);
}

static void expects(void *unused)
{
    (void)unused;
    expect_written(1);
}

static void expect_called(int times)
{
    if (called != times) {
        relacy_fail("notified %d times", called);
    }
}

// A notification and the last leave.
static void notify_thread(int index)
{
    if (index > 0) {
        work(index);
    } else {
        notification = csched_completion_notify(counter, calls, NULL);
    }
}

static void notify_check(void)
{
    expect_called(1);
    csched_notification_release(notification);
    check();
}

// Two notifications: the last leave may take one that has set no flag yet.
static csched_notification *notifications[2];

static void notify_two_thread(int index)
{
    if (index == 2) {
        work(1);
    } else {
        notifications[index] = csched_completion_notify(counter, expects, NULL);
    }
}

static void notify_two_check(void)
{
    for (int index = 0; index < 2; index++) {
        csched_check(!csched_notification_cancel(notifications[index]), "not called");
    }
    check();
}

// Another enters while the last leave has the list in hand.
static void giveback_setup(void)
{
    begin(1);
    notification = csched_completion_notify(counter, calls, NULL);
}

static void giveback_thread(int index)
{
    if (index > 0) {
        csched_completion_enter(counter, 1);
    }
    written[1 + index] = 1;
    (void)csched_completion_leave(counter, 1);
}

// Called or cancelled, and never both.
static void cancel_thread(int index)
{
    if (index > 0) {
        work(1);
        return;
    }
    csched_notification *mine = csched_completion_notify(counter, calls, NULL);
    cancelled = csched_notification_cancel(mine);
}

static void cancel_check(void)
{
    expect_called(cancelled ? 0 : 1);
    check();
}

// The owner lets go early: the last leave frees.
static void release_thread(int index)
{
    if (index > 0) {
        work(index);
    } else {
        csched_notification_release(csched_completion_notify(counter, calls, NULL));
        csched_completion_release(counter);
    }
}

static void release_check(void) { expect_called(1); }

// A wait with a timeout may end either way, and a later one sees the end.
static void timeout_thread(int index)
{
    if (index > 0) {
        work(index);
        return;
    }
    if (csched_completion_wait(counter, 1000) == CSCHED_WAIT_TIMED_OUT) {
        wait();
    }
    expect_written(1);
}

const relacy_scenario completion_scenarios[] = {
    {"completion-wait", "leaves and a wait, which frees the counter", 3, 0, begin_two, wait_thread,
     check_nothing},
    {"completion-waiters", "two waiters for one leave", 3, 0, begin_one, waiters_thread, check},
    {"completion-generations", "the next generation begins under waiters", 3, 0, generations_setup,
     generations_thread, check},
    {"completion-notify", "a notification and the last leave", 3, 0, begin_two, notify_thread, notify_check},
    {"completion-notify_two", "two notifications and the last leave", 3, 0, begin_one, notify_two_thread,
     notify_two_check},
    {"completion-giveback", "another enters while the last leave has the notifications", 2, 0, giveback_setup,
     giveback_thread, notify_check},
    {"completion-cancel", "a notification is cancelled while it is called", 2, 0, begin_one, cancel_thread,
     cancel_check},
    {"completion-release", "the last leave frees the counter", 3, 0, begin_two, release_thread,
     release_check},
    {"completion-timeout", "a wait whose time passes", 2, 0, begin_one, timeout_thread, check},
    {0},
};
