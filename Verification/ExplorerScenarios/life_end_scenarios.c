// life_end_scenarios.c - the end of a scheduler: closed, shut down, cancelled, by one thread or by several.

#include "life.h"

#include "cscheduler/inspection.h"
#include "scenarios.h"

// MARK: The end

// A thread submits for the first time while another one shuts down.
static void drain_main(void)
{
    world_open_workers(1);
    int submitter = thread_start("submitter", submits_0_and_1);
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    thread_join(submitter);
    expect_accepted(2, false);
    world_close();
}
MAIN(drain)

static void cancel_main(void)
{
    world_open_workers(1);
    int submitter = thread_start("submitter", submits_0_and_1);
    world_explore_without_time();
    shut_down(0);
    explorer_calm(true);
    thread_join(submitter);
    expect_accepted(2, true);
    world_close();
}
MAIN(cancel)

// A thread that has submitted before submits again while the scheduler is closed, and its worker has just run
// dry.
static void submits_0_and_later_1(void)
{
    accepted[0] = true;
    submit(operation(0));
    gate_pass(&gates[0]);
    csched_operation what = operation(1);
    accepted[1] = csched_submit(scheduler, &what) == CSCHED_OK;
}

static void drain_again_main(void)
{
    world_open_workers(1);
    int submitter = thread_start("submitter", submits_0_and_later_1);
    explorer_settle(csched_site("settle"));
    submit(operation(8));
    world_explore_without_time();
    gate_open(&gates[0]);
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    thread_join(submitter);
    expect_accepted(2, false);
    world_close();
}
MAIN(drain_again)

// Two workers with nothing to do: one ends the scheduler while the other one rises.
static void drain_idle_main(void)
{
    world_open_workers(2);
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    world_close();
}
MAIN(drain_idle)

// Two workers, one of which still submits.
static void submits_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    submit(operation(1));
}

static void drain_two_main(void)
{
    world_open_workers(2);
    accepted[0] = accepted[1] = true;
    submit(operation_with(0, submits_1));
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_accepted(2, false);
    world_close();
}
MAIN(drain_two)

// The last operation arrives while one worker falls asleep, and needs both workers: the other worker takes it
// and executes it, so the scheduler must not be stopped under it.
static void submits_1_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    submit(operation_with(1, opens_gate));
    gate_pass(&gates[0]);
}

static void drain_late_main(void)
{
    world_open_workers(2);
    accepted[0] = accepted[1] = true;
    submit(operation_with(8, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    gates[0].open = 0;
    explorer_settle(csched_site("settle"));
    world_explore();
    gate_open(&gates[1]);
    submit(operation_with(0, submits_1_and_waits));
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_accepted(2, false);
    world_close();
}
MAIN(drain_late)

// A worker sleeps inside a body: it may still submit, and need the other worker for that operation.
static csched_completion *inner;

static void waits_and_submits_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    ran(number_of(context), disposition);
    submit(operation_with(1, opens_gate_2));
    gate_pass(&gates[2]);
}

static void leaves_inner(void) { (void)csched_completion_leave(inner, 1); }

static void drain_nested_main(void)
{
    world_open_workers(2);
    accepted[0] = accepted[1] = true;
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(0, waits_and_submits_1));
    gate_pass(&gates[0]);
    explorer_settle(csched_site("settle"));
    int leaver = thread_start("leaver", leaves_inner);
    world_explore();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    thread_join(leaver);
    expect_accepted(2, false);
    csched_completion_release(inner);
    world_close();
}
MAIN(drain_nested)

// A wait inside a body that another thread completes, by the address of the counter: the worker is not used
// after the wait, and the scheduler can be destroyed.
static void waits_inside(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    ran(number_of(context), disposition);
}

static void lend_main(void)
{
    world_open_workers(1);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(0, waits_inside));
    gate_pass(&gates[0]);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    int leaver = thread_start("leaver", leaves_inner);
    wait_for_all();
    world_close();
    thread_join(leaver);
    csched_completion_release(inner);
}
MAIN(lend)

// A wait inside a body when nothing is outstanding.
static void waits_for_nothing(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    ran(number_of(context), disposition);
}

static void wait_for_nothing_main(void)
{
    world_open_workers(1);
    inner = csched_completion_create();
    world_explore_without_time();
    submit(operation_with(0, waits_for_nothing));
    world_end(1);
    csched_completion_release(inner);
}
MAIN(wait_for_nothing)

// Suspended, with queued operations, and then shut down: they run, or are notified that they will not.
static void drain_suspended_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    submits_0_and_1();
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_accepted(2, false);
    world_close();
}
MAIN(drain_suspended)

static void cancel_suspended_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    submits_0_and_1();
    world_explore_without_time();
    shut_down(0);
    explorer_calm(true);
    expect_accepted(2, true);
    for (int number = 0; number < 2; number++) {
        if (times_run(number) != 0) {
            explorer_fail("operation %d ran after the cancellation (C1)", number);
        }
    }
    world_close();
}
MAIN(cancel_suspended)

// A time limit: operations that have not started by then are cancelled.
static void deadline_main(void)
{
    world_open_workers(1);
    accepted[0] = accepted[1] = true;
    submit(operation(0));
    submit(operation(1));
    world_explore();
    shut_down(5000);
    explorer_calm(true);
    expect_accepted(2, true);
    world_close();
}
MAIN(deadline)

// Closed, and nothing more: the workers end by themselves, and a submitter that waits for room is refused.
static void close_main(void)
{
    world_open_workers(1);
    watch_the_end_of_a_worker();
    world_explore_without_time();
    csched_scheduler_close(scheduler);
    gate_pass(&gates[0]);
    world_close();
}
MAIN(close)

static void close_full_main(void)
{
    world_open_with_places(1);
    csched_scheduler_suspend(scheduler);
    int submitter = thread_start("submitter", submits_0_and_1);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    csched_scheduler_close(scheduler);
    thread_join(submitter);
    csched_scheduler_resume(scheduler);
    shut_down(CSCHED_FOREVER);
    expect_accepted(2, false);
    world_close();
}
MAIN(close_full)

// A worker is leaving when the scheduler ends, and the other one has nothing to do: the last worker detects
// the end.
static void shrink_and_drain_main(void)
{
    world_open_workers(2);
    world_explore_without_time();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    give_way();
    shut_down(CSCHED_FOREVER);
    world_close();
}
MAIN(shrink_and_drain)

// Worker 2 leaves, and hands over what it has submitted. Worker 0 has checked before that, and rests after
// it, while worker 1 takes the operation.
static void goes_on_when_another_has_left(void *unused, csched_event event, uint32_t worker)
{
    (void)unused;
    if (event == CSCHED_WORKER_STOPPED && worker == 2) {
        gate_open(&gates[2]);
    }
    if (event == CSCHED_WORKER_PARKED && worker == 0 && gate_is_open(&gates[0])) {
        gate_pass(&gates[2]);
    }
}

static void runs_before_the_end(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    give_way();
    csched_check(!scheduler_model_has_stopped(scheduler), "the scheduler ended under a body (S13)");
    ran(number_of(context), disposition);
}

static void submits_if_it_leaves(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[scheduler_model_worker() == 1 ? 1 : 0]);
    ran(number_of(context), disposition);
    if (scheduler_model_worker() == 2) {
        submit(operation_with(3, runs_before_the_end));
    }
}

static void leave_and_drain_main(void)
{
    world_open_workers(3);
    csched_observer observer = {.notify = goes_on_when_another_has_left};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    for (int number = 0; number < 3; number++) {
        submit(operation_with(number, submits_if_it_leaves));
        explorer_settle(csched_site("settle"));
    }
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    csched_scheduler_close(scheduler);
    gate_open(&gates[1]);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[0]);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    explorer_calm(true);
    expect_ran(4);
    world_close();
}
MAIN(leave_and_drain)

// The time limit is generous, and the end is signalled: no thread waits for the time to pass.
static void deadline_told_main(void)
{
    world_open_workers(1);
    accepted[0] = true;
    submit(operation(0));
    world_explore_without_time();
    shut_down(1000000000);
    explorer_calm(true);
    expect_accepted(1, false);
    world_close();
}
MAIN(deadline_told)

// Two shutdowns: the second waits for the first.
static void twice_main(void)
{
    world_open_workers(1);
    accepted[0] = true;
    submit(operation(0));
    int other = thread_start("closer", shuts_down);
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    expect_accepted(1, false);
    explorer_calm(true);
    thread_join(other);
    world_close();
}
MAIN(twice)

// MARK: Several at once

// Resumed while it is shut down: whichever comes first, the scheduler ends.
static void resume_and_shut_down_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    submits_0_and_1();
    int other = thread_start("closer", shuts_down);
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    thread_join(other);
    explorer_calm(true);
    expect_accepted(2, false);
    world_close();
}
MAIN(resume_and_shut_down)

// A shutdown that cancels concurrently with one that does not, under a suspension: nothing runs.
static void cancel_and_close_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    submits_0_and_1();
    int other = thread_start("closer", closes);
    world_explore_without_time();
    shut_down(0);
    thread_join(other);
    explorer_calm(true);
    expect_accepted(2, true);
    if (times_run(0) + times_run(1) != 0) {
        explorer_fail("operations ran after the cancellation (C1)");
    }
    world_close();
}
MAIN(cancel_and_close)

static void cancel_twice_main(void)
{
    world_open_workers(1);
    accepted[0] = true;
    submit(operation(0));
    int other = thread_start("closer", shuts_down);
    world_explore_without_time();
    shut_down(0);
    explorer_calm(true);
    thread_join(other);
    expect_accepted(1, true);
    world_close();
}
MAIN(cancel_twice)

// Suspended concurrently with a close: if the suspension came in time, nothing starts until the resume.
static void submits_late(void)
{
    csched_operation what = operation(1);
    if (csched_submit(scheduler, &what) != CSCHED_CLOSED) {
        explorer_fail("a submission after the close was accepted (S14)");
    }
}

static void suspend_and_close_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, stays_quiet));
    int other = thread_start("closer", closes);
    world_explore_without_time();
    csched_scheduler_suspend(scheduler);
    if (scheduler_model_is_suspended(scheduler) && csched_scheduler_statistics(scheduler).running == 0) {
        explorer_plain_write(csched_site("quiet"), &quiet);
        quiet = 1;
        thread_join(other);
        thread_join(thread_start("late", submits_late));
        give_way();
        if (!scheduler_model_is_suspended(scheduler)) {
            explorer_fail("a close has ended a suspension (S7)");
        }
        explorer_plain_write(csched_site("quiet"), &quiet);
        quiet = 0;
        csched_scheduler_resume(scheduler);
    } else {
        thread_join(other);
        csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    }
    world_end(1);
}
MAIN(suspend_and_close)

// Two schedulers are created at the same time, and destroyed one after the other; operations submitted to one
// run on that one.
static csched_scheduler *both[2];

static void creates(int number)
{
    csched_configuration configuration = world_configuration();
    configuration.workers = 1;
    csched_check(csched_scheduler_create(&configuration, &both[number]) == CSCHED_OK, "create");
}

static void creates_a_second(void) { creates(1); }

static void runs_where_it_belongs(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (csched_scheduler_current() != both[number_of(context)]) {
        explorer_fail("an operation runs on another scheduler (S1)");
    }
    ran(number_of(context), disposition);
}

static void two_schedulers_main(void)
{
    int other = thread_start("other", creates_a_second);
    explorer_stop_time(true);
    world_explore();
    creates(0);
    thread_join(other);
    for (int number = 0; number < 2; number++) {
        csched_operation what = operation_with(number, runs_where_it_belongs);
        what.counter = NULL;
        csched_check(csched_submit(both[number], &what) == CSCHED_OK, "a submission was not accepted");
    }
    csched_scheduler_destroy(both[0]);
    csched_scheduler_destroy(both[1]);
    expect_ran(2);
}
MAIN(two_schedulers)

// All schedulers are visited while one of them is destroyed.
static void counts_workers(void *count, csched_scheduler *visited)
{
    *(uint32_t *)count += csched_scheduler_workers(visited);
}

static void visits(void)
{
    uint32_t count = 0;
    csched_visit_schedulers(counts_workers, &count);
    if (count == 0) {
        explorer_fail("a scheduler is not visited that is there all the time");
    }
}

static void visited_main(void)
{
    world_open_workers(1);
    csched_configuration configuration = world_configuration();
    configuration.workers = 1;
    csched_scheduler *other = NULL;
    csched_check(csched_scheduler_create(&configuration, &other) == CSCHED_OK, "create");
    int visitor = thread_start("visitor", visits);
    world_explore_without_time();
    csched_scheduler_destroy(other);
    thread_join(visitor);
    world_close();
}
MAIN(visited)

// A thread has inboxes of two schedulers, one of which has been destroyed.
static void submits_to_both(void)
{
    csched_configuration configuration = world_configuration();
    configuration.workers = 1;
    csched_scheduler *other = NULL;
    csched_check(csched_scheduler_create(&configuration, &other) == CSCHED_OK, "create");
    csched_operation what = operation(3);
    what.counter = NULL;
    csched_check(csched_submit(other, &what) == CSCHED_OK, "a submission was not accepted");
    submit(operation(0));
    size_t before = explorer_allocated();
    csched_check(csched_submit(other, &what) == CSCHED_OK, "a submission was not accepted");
    if (explorer_allocated() != before) {
        explorer_fail("a thread that submits in turn makes a new inbox each time (R2)");
    }
    csched_scheduler_destroy(other);
    size_t with_its_inbox = explorer_allocated();
    gate_open(&gates[0]);
    submit(operation(1));
    csched_check(csched_scheduler_create(&configuration, &other) == CSCHED_OK, "create");
    csched_check(csched_submit(other, &what) == CSCHED_OK, "a submission was not accepted");
    if (before <= with_its_inbox || explorer_allocated() > before) {
        explorer_fail("the inbox of a scheduler that is gone is kept (R2)");
    }
    csched_scheduler_destroy(other);
}

static void two_inboxes_main(void)
{
    world_open_workers(1);
    int other = thread_start("submitter", submits_to_both);
    thread_join(other);
    world_end(2);
}
MAIN(two_inboxes)

// An owner is set by one thread, and read by another.
static int owned; // plain

static void gives_it_back(void *owner) { (void)owner; }

static void reads_owner(void)
{
    int *owner;
    while ((owner = csched_scheduler_owner(scheduler)) == NULL) {
        csched_yield();
    }
    explorer_plain_read(csched_site("owned"), owner);
}

static void owner_main(void)
{
    world_open_workers(1);
    int other = thread_start("reader", reads_owner);
    world_explore_without_time();
    explorer_plain_write(csched_site("owned"), &owned);
    csched_scheduler_set_owner(scheduler, &owned, gives_it_back);
    thread_join(other);
    world_close();
}
MAIN(owner)

const explorer_program life_end_scenarios[] = {
    SCENARIO("life", leave_and_drain, "S1 S13",
             "a worker leaves, and what it hands over is taken, as a third one looks"),
    SCENARIO("life", drain, "S13 S14", "a thread's first submission beside a shutdown"),
    SCENARIO("life", drain_again, "S13 S14", "a thread's later submission beside a shutdown"),
    SCENARIO("life", cancel, "C1 C4 S13", "a thread's first submission beside a shutdown that cancels"),
    SCENARIO("life", drain_two, "S13", "a shutdown while one of two workers submits"),
    SCENARIO("life", drain_idle, "S13", "a shutdown of two workers that sleep"),
    SCENARIO("life", drain_late, "S13 S12", "the last operation comes as a worker falls asleep"),
    SCENARIO("life", drain_nested, "S13 S16", "a shutdown while a worker waits inside a body"),
    SCENARIO("life", lend, "R3 S5", "a scheduler goes after a wait inside a body"),
    SCENARIO("life", wait_for_nothing, "S5", "a wait inside a body for nothing"),
    SCENARIO("life", drain_suspended, "S7 S13", "a shutdown ends a suspension"),
    SCENARIO("life", cancel_suspended, "C1 S13", "a shutdown cancels what was suspended"),
    SCENARIO("life", deadline, "S13", "a shutdown with a time limit"),
    SCENARIO("life", twice, "S13", "two shutdowns"),
    SCENARIO("life", resume_and_shut_down, "S7 S13", "resumed while it is shut down"),
    SCENARIO("life", cancel_and_close, "C1 S13", "a shutdown that cancels beside a close"),
    SCENARIO("life", cancel_twice, "S13", "a shutdown that cancels beside one that does not"),
    SCENARIO("life", suspend_and_close, "S7 S13", "suspended beside a close"),
    SCENARIO("life", two_schedulers, "S1 R1", "two schedulers come and go"),
    SCENARIO("life", visited, "S1 R3 R4", "all schedulers are visited while one goes"),
    SCENARIO("life", two_inboxes, "R2 S1", "a thread has inboxes of two schedulers"),
    SCENARIO("life", owner, "R4", "an owner is set by one thread, and read by another"),
    SCENARIO("life", close, "S13", "closed, and nothing more: the workers end"),
    SCENARIO("life", close_full, "S3 S14", "closed while a thread waits for room, and nothing more"),
    SCENARIO("life", shrink_and_drain, "S13", "a worker goes while the scheduler ends"),
    SCENARIO("life", deadline_told, "S13", "a shutdown with a time limit is told of the end"),
};
const size_t life_end_scenario_count = sizeof life_end_scenarios / sizeof life_end_scenarios[0];
