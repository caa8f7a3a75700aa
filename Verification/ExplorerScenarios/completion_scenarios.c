// completion_scenarios.c - threads enter and leave a counter, and wait for it.

#include "world.h"

#include "scenarios.h"

static int written[4]; // plain: what an operation wrote before it left
static int called[4];  // plain, by the notifications
static bool in_time;

static void begin(void)
{
    world_begin();
    for (int index = 0; index < 4; index++) {
        written[index] = called[index] = 0;
    }
    in_time = false;
    counter = csched_completion_create();
}

static void wrote(int index)
{
    explorer_plain_write(csched_site("written"), &written[index]);
    written[index]++;
}

static void expect_written(int count)
{
    for (int index = 0; index < count; index++) {
        explorer_plain_read(csched_site("written"), &written[index]);
        if (written[index] == 0) {
            explorer_fail("a wait returned before operation %d had ended (S4)", index);
        }
    }
}

static void leaves_0(void *unused)
{
    (void)unused;
    wrote(0);
    (void)csched_completion_leave(counter, 1);
}

static void leaves_1(void *unused)
{
    (void)unused;
    wrote(1);
    (void)csched_completion_leave(counter, 1);
}

static void waits(void *unused)
{
    (void)unused;
    wait_for_all();
    expect_written(2);
}

static void check(void) { csched_completion_release(counter); }

// Waiters that arrive early, late and in between, all of which are woken.
static void wait_setup(void)
{
    begin();
    csched_completion_enter(counter, 2);
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("leaver", leaves_1, NULL);
    (void)explorer_spawn("waiter", waits, NULL);
    (void)explorer_spawn("waiter", waits, NULL);
}

// A waiter is asleep when its generation ends and the next one begins, which ends only after the wait.
static void leaves_and_enters_again(void *unused)
{
    (void)unused;
    explorer_calm(true);
    explorer_settle(csched_site("settle"));
    explorer_calm(false);
    wrote(0);
    wrote(1);
    (void)csched_completion_leave(counter, 1);
    csched_completion_enter(counter, 1);
    gate_pass(&gates[0]);
    (void)csched_completion_leave(counter, 1);
}

static void waits_and_opens(void *unused)
{
    waits(unused);
    gate_open(&gates[0]);
}

static void generation_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    (void)explorer_spawn("leaver", leaves_and_enters_again, NULL);
    (void)explorer_spawn("waiter", waits_and_opens, NULL);
}

// A wait with a time limit: complete or not, and no wake-up is lost for the waiter without a limit.
static void waits_a_while(void *unused)
{
    (void)unused;
    if (csched_completion_wait(counter, 5000) == CSCHED_WAIT_COMPLETED) {
        expect_written(2);
    }
}

static void timeout_setup(void)
{
    begin();
    csched_completion_enter(counter, 2);
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("leaver", leaves_1, NULL);
    (void)explorer_spawn("waiter", waits_a_while, NULL);
    (void)explorer_spawn("waiter", waits, NULL);
}

// A notification is called once, after all operations, whether it is added before the last leave or after it.
static void calls(void *context)
{
    int index = (int)(intptr_t)context;
    explorer_plain_write(csched_site("called"), &called[index]);
    called[index]++;
    expect_written(2);
}

static void notifies(void *unused)
{
    (void)unused;
    csched_notification_release(csched_completion_notify(counter, calls, (void *)0));
    csched_notification_release(csched_completion_notify(counter, calls, (void *)1));
}

static void notify_check(void)
{
    for (int index = 0; index < 2; index++) {
        if (called[index] != 1) {
            explorer_fail("notification %d was called %d times (O3)", index, called[index]);
        }
    }
    check();
}

static void notify_setup(void)
{
    begin();
    csched_completion_enter(counter, 2);
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("leaver", leaves_1, NULL);
    (void)explorer_spawn("notifier", notifies, NULL);
}

// The leaver holds the notifications while another thread enters: they are put back, and none is left
// behind.
static void enters_and_leaves(void *unused)
{
    (void)unused;
    csched_completion_enter(counter, 1);
    wrote(1);
    gate_open(&gates[0]);
    (void)csched_completion_leave(counter, 1);
}

static void give_back_calls(void *context)
{
    int index = (int)(intptr_t)context;
    explorer_plain_write(csched_site("called"), &called[index]);
    called[index]++;
}

static void give_back_check(void)
{
    if (called[0] != 1) {
        explorer_fail("the notification was called %d times (O3)", called[0]);
    }
    check();
}

static void give_back_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)0));
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("enterer", enters_and_leaves, NULL);
}

// Cancelled, or called, and both sides agree which.
static void cancels(void *unused)
{
    (void)unused;
    csched_notification *notification = csched_completion_notify(counter, give_back_calls, (void *)0);
    in_time = csched_notification_cancel(notification);
}

static void cancel_check(void)
{
    if (called[0] + in_time != 1) {
        explorer_fail("the notification was called %d times, and %s (C3)", called[0],
                      in_time ? "cancelled" : "not cancelled");
    }
    check();
}

static void cancel_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("canceller", cancels, NULL);
}

// The counter is released while operations are outstanding: the last leave frees it, and no thread touches
// it after that.
static void releases(void *unused)
{
    (void)unused;
    csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)0));
    csched_completion_release(counter);
}

static void release_check(void)
{
    if (called[0] != 1) {
        explorer_fail("the notification was called %d times (O3)", called[0]);
    }
}

static void release_setup(void)
{
    begin();
    csched_completion_enter(counter, 2);
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("leaver", leaves_1, NULL);
    (void)explorer_spawn("owner", releases, NULL);
}

// A waiter frees the counter as soon as it is woken: the last leave no longer uses it.
static void waits_and_frees(void *unused)
{
    waits(unused);
    csched_completion_release(counter);
}

static void free_setup(void)
{
    begin();
    csched_completion_enter(counter, 2);
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("leaver", leaves_1, NULL);
    (void)explorer_spawn("owner", waits_and_frees, NULL);
}

// The list is swept while the last leave is taking it.
static void notifies_and_cancels(void *unused)
{
    (void)unused;
    for (int index = 0; index < 3; index++) {
        (void)csched_notification_cancel(
            csched_completion_notify(counter, give_back_calls, (void *)(intptr_t)(index + 1)));
    }
    csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)0));
}

static void sweep_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("notifier", notifies_and_cancels, NULL);
}

// Two threads add notifications, and either may sweep the other's newest.
static void notifies_0_and_cancels(void *unused)
{
    (void)unused;
    (void)csched_notification_cancel(csched_completion_notify(counter, give_back_calls, (void *)1));
    csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)0));
}

static void notifies_2_and_cancels(void *unused)
{
    (void)unused;
    csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)2));
    (void)csched_notification_cancel(csched_completion_notify(counter, give_back_calls, (void *)3));
}

static void two_sweeps_check(void)
{
    if (called[0] != 1 || called[2] != 1) {
        explorer_fail("the notifications were called %d and %d times (O3)", called[0], called[2]);
    }
    check();
}

static void leaves_when_told(void *unused)
{
    gate_pass(&gates[0]);
    leaves_0(unused);
}

static void notifies_2_and_tells(void *unused)
{
    notifies_2_and_cancels(unused);
    gate_open(&gates[0]);
}

static void two_sweeps_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    (void)explorer_spawn("notifier", notifies_0_and_cancels, NULL);
    (void)explorer_spawn("notifier", notifies_2_and_tells, NULL);
    (void)explorer_spawn("leaver", leaves_when_told, NULL);
}

// Lists of notifications are concatenated: one notification arrives while the last leave holds the others.
static void notifies_3(void *unused)
{
    (void)unused;
    csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)3));
}

static void concatenate_check(void)
{
    for (int index = 0; index < 4; index++) {
        if (called[index] != 1) {
            explorer_fail("notification %d was called %d times (O3)", index, called[index]);
        }
    }
    check();
}

static void concatenate_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    for (int index = 0; index < 3; index++) {
        csched_notification_release(
            csched_completion_notify(counter, give_back_calls, (void *)(intptr_t)index));
    }
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("notifier", notifies_3, NULL);
}

// While the notifications are put back, the threads that made that necessary leave.
static void enters_and_tells(void *unused)
{
    (void)unused;
    csched_completion_enter(counter, 1);
    gate_open(&gates[0]);
}

static void leaves_1_when_told(void *unused)
{
    gate_pass(&gates[0]);
    leaves_1(unused);
}

static void reopened_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)0));
    (void)explorer_spawn("leaver", leaves_0, NULL);
    (void)explorer_spawn("enterer", enters_and_tells, NULL);
    (void)explorer_spawn("leaver", leaves_1_when_told, NULL);
}

// Cancelled and called notifications do not pile up, whether or not anything is outstanding.
static void notifies_for_ever(void *unused)
{
    (void)unused;
    size_t least = explorer_allocated();
    for (int turn = 0; turn < 4 * CSCHED_SWEEP_LEAST; turn++) {
        (void)csched_notification_cancel(csched_completion_notify(counter, give_back_calls, (void *)1));
        if (explorer_allocated() - least > 2 * CSCHED_SWEEP_LEAST) {
            explorer_fail("%zu notifications of which none is alive (R2)", explorer_allocated() - least);
        }
    }
    leaves_0(NULL);
    least = explorer_allocated();
    for (int turn = 0; turn < 2 * CSCHED_SWEEP_LEAST; turn++) {
        csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)0));
    }
    if (explorer_allocated() != least || called[0] != 2 * CSCHED_SWEEP_LEAST || called[1] != 0) {
        explorer_fail("a notification of what is complete was not called at once, or was kept (R2, O3)");
    }
}

static void bounded_setup(void)
{
    begin();
    csched_completion_enter(counter, 1);
    (void)explorer_spawn("notifier", notifies_for_ever, NULL);
}

// As many as possible are outstanding, and there is a list to sweep; a sweep normally enters the counter.
static void enters_most(void *unused)
{
    (void)unused;
    csched_completion_enter(counter, CSCHED_COMPLETION_MAX);
    for (int index = 0; index <= CSCHED_SWEEP_LEAST; index++) {
        csched_notification_release(csched_completion_notify(counter, give_back_calls, (void *)0));
    }
    (void)csched_completion_leave(counter, CSCHED_COMPLETION_MAX);
    if (called[0] != CSCHED_SWEEP_LEAST + 1) {
        explorer_fail("%d notifications were called (O3)", called[0]);
    }
}

static void most_setup(void)
{
    begin();
    (void)explorer_spawn("enterer", enters_most, NULL);
}

// Leaves in one step and in instalments: the generation ends once, with the last.
static void leaves_two(void *unused)
{
    (void)unused;
    wrote(0);
    if (csched_completion_leave(counter, 2)) {
        called[0]++;
    }
}

static void leaves_one(void *unused)
{
    (void)unused;
    wrote(1);
    if (csched_completion_leave(counter, 1)) {
        called[1]++;
    }
}

static void instalments_check(void)
{
    if (called[0] + called[1] != 1) {
        explorer_fail("%d leaves were the last one (S6)", called[0] + called[1]);
    }
    check();
}

static void instalments_setup(void)
{
    begin();
    csched_completion_enter(counter, 3);
    (void)explorer_spawn("leaver", leaves_two, NULL);
    (void)explorer_spawn("leaver", leaves_one, NULL);
    (void)explorer_spawn("waiter", waits, NULL);
}

const explorer_program completion_scenarios[] = {
    SCENARIO("completion", wait, "S4 S5", "waiters come early, late and in between", .check = check),
    SCENARIO("completion", generation, "S4 S5", "the next generation begins under a waiter", .check = check),
    SCENARIO("completion", timeout, "S4 S5", "one waiter gives up, another does not", .check = check),
    SCENARIO("completion", notify, "O3 S4", "notifications race with the last leave", .check = notify_check),
    SCENARIO("completion", give_back, "O3", "another enters while the last leave holds the notifications",
             .check = give_back_check),
    SCENARIO("completion", cancel, "C3 R1", "a notification is cancelled while it is called",
             .check = cancel_check),
    SCENARIO("completion", release, "O3 R1 R3", "the counter is given up before the last leave",
             .check = release_check),
    SCENARIO("completion", free, "R3 S4", "a waiter frees the counter when it is woken"),
    SCENARIO("completion", sweep, "O3 R1", "the list is swept under the last leave",
             .check = give_back_check),
    SCENARIO("completion", two_sweeps, "O3 R1 R4", "two threads add, and sweep", .check = two_sweeps_check),
    SCENARIO("completion", concatenate, "O3", "a notification comes while the last leave holds others",
             .check = concatenate_check),
    SCENARIO("completion", reopened, "O3 S6", "another enters, and a third leaves", .check = give_back_check),
    SCENARIO("completion", bounded, "R2 O3", "notifications come and are cancelled", .check = check),
    SCENARIO("completion", most, "S4 O3", "2^29 - 1 operations", .check = check),
    SCENARIO("completion", instalments, "S4 S6", "leaves of many at once", .check = instalments_check),
};
const size_t completion_scenario_count = sizeof completion_scenarios / sizeof completion_scenarios[0];
