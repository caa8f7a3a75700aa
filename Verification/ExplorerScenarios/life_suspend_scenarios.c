// life_suspend_scenarios.c - suspend and resume, concurrently with operations that arrive and run.

#include "life.h"

#include "scenarios.h"

// Operations that arrive from outside.
static void suspend_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, stays_quiet));
    submit(operation_with(1, stays_quiet));
    world_explore_without_time();
    suspends_and_resumes();
    world_end(2);
}
MAIN(suspend)

// A chain: each operation submits the next, and is popped as the last one of the deque, or taken in a fair
// turn.
static void submits_the_next(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    int number = number_of(context);
    looks_around(number, disposition);
    if (number < 3) {
        submit(operation_with(number + 1, submits_the_next));
    }
}

static void suspend_chain_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, submits_the_next));
    world_explore_without_time();
    suspends_and_resumes();
    world_end(4);
}
MAIN(suspend_chain)

// A deep deque, which is popped below its open part.
static void suspend_deep_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, submits_many));
    world_explore_without_time();
    suspends_and_resumes();
    world_end(5);
}
MAIN(suspend_deep)

// A second worker steals, and is suspended while holding the stolen operations.
static void suspend_two_main(void)
{
    quiet = 0;
    world_open_workers(2);
    submit(operation_with(0, submits_many));
    world_explore();
    suspends_and_resumes();
    world_end(5);
}
MAIN(suspend_two)

// Operations submitted while suspended run after resume, on all workers: 0 waits for 1.
static void resume_main(void)
{
    world_open_workers(2);
    csched_scheduler_suspend(scheduler);
    csched_scheduler_suspend(scheduler);
    submit(operation_with(0, passes_gate));
    submit(operation_with(1, opens_gate));
    csched_scheduler_resume(scheduler);
    explorer_settle(csched_site("settle"));
    world_explore();
    csched_scheduler_resume(scheduler);
    world_end(2);
}
MAIN(resume)

// A submission concurrent with the suspension and its end: one of the two wakes the worker.
static void submits_0_and_then_1(void)
{
    submit(operation(0));
    gate_pass(&gates[0]);
    submit(operation(1));
}

static void submit_suspended_main(void)
{
    world_open_workers(1);
    csched_completion_enter(counter, 1);
    int submitter = thread_start("submitter", submits_0_and_then_1);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[0]);
    csched_scheduler_suspend(scheduler);
    csched_scheduler_resume(scheduler);
    thread_join(submitter);
    (void)csched_completion_leave(counter, 1);
    world_end(2);
}
MAIN(submit_suspended)

// The worker has put back the operation it was holding, and is about to sleep, when the suspension ends.
static void tells_waits_and_submits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
    submit(operation(1));
}

static void resume_race_main(void)
{
    world_open_workers(1);
    submit(operation_with(0, tells_waits_and_submits));
    gate_pass(&gates[0]);
    csched_scheduler_suspend(scheduler);
    gate_open(&gates[1]);
    world_explore_without_time();
    give_way();
    csched_scheduler_resume(scheduler);
    world_end(2);
}
MAIN(resume_race)

// The same, and then the scheduler is shut down: the operation that was put back is not forgotten.
static void tells_and_submits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit(operation(1));
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
    gate_open(&gates[2]);
}

static void opens_gate_3(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[3]);
}

static void submits_2_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    submit(operation_with(2, opens_gate_3));
    gate_pass(&gates[3]);
}

static void tells_and_submits_the_waiting_one(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit(operation_with(1, submits_2_and_waits));
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
    gate_open(&gates[2]);
}

static void suspend_and_drain_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, tells_and_submits_the_waiting_one));
    gate_pass(&gates[0]);
    csched_scheduler_suspend(scheduler);
    explorer_settle(csched_site("settle"));
    world_explore();
    gate_open(&gates[1]);
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    world_end(3);
}
MAIN(suspend_and_drain)

// A suspended worker sleeps, and does not poll what it has put back.
static void suspended_sleeps_main(void)
{
    world_open_workers(1);
    submit(operation_with(0, tells_and_submits));
    gate_pass(&gates[0]);
    csched_scheduler_suspend(scheduler);
    gate_open(&gates[1]);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    world_end(2);
}
MAIN(suspended_sleeps)

// A notification that waits, on a worker that runs no body: the worker shows as running while it runs
// operations of its wait, and not afterwards.
static csched_completion *second;

static void waits_for_second(void *unused)
{
    (void)unused;
    submit((csched_operation){.run = stays_quiet, .context = (void *)(intptr_t)2, .counter = second});
    csched_check(csched_completion_wait(second, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    gate_open(&gates[2]);
}

static void begin_waiting_notification(void)
{
    quiet = 0;
    world_open_with_spares(1, 1);
    second = csched_completion_create();
    submit(operation_with(0, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    csched_notification_release(csched_completion_notify(counter, waits_for_second, NULL));
}

static void notification_waits_main(void)
{
    begin_waiting_notification();
    world_explore(); // with time: the watch looks, if the suspension came while the wait searched
    gate_open(&gates[1]);
    suspends_and_resumes();
    gate_pass(&gates[2]);
    world_end(2);
    csched_completion_release(second);
}
MAIN(notification_waits)

// The same, and the suspension is over when the worker has found an operation to run in its wait: it sees
// what was written meanwhile.
static void suspends_for_a_moment(void)
{
    csched_scheduler_suspend(scheduler);
    if (csched_scheduler_statistics(scheduler).running == 0) {
        explorer_plain_write(csched_site("quiet"), &quiet);
        quiet = 0;
    }
    csched_scheduler_resume(scheduler);
}

static void notification_waits_awake_main(void)
{
    begin_waiting_notification();
    world_explore();
    gate_open(&gates[1]);
    give_way();
    suspends_for_a_moment();
    gate_pass(&gates[2]);
    world_end(2);
    csched_completion_release(second);
}
MAIN(notification_waits_awake)

const explorer_program life_suspend_scenarios[] = {
    SCENARIO("life", suspend, "S7 S3", "suspended while operations come from outside"),
    SCENARIO("life", suspend_chain, "S7 S3", "suspended while each operation submits the next"),
    SCENARIO("life", suspend_deep, "S7 S3", "suspended while a deep deque is emptied"),
    SCENARIO("life", suspend_two, "S7 S3", "suspended while a second worker steals"),
    SCENARIO("life", resume, "S3 S7", "resumed with two operations that need a worker each"),
    SCENARIO("life", submit_suspended, "S3 S7", "a submission beside a suspension"),
    SCENARIO("life", resume_race, "S3 S7", "a worker falls asleep suspended, and is resumed"),
    SCENARIO("life", suspend_and_drain, "S13 S7", "a worker falls asleep suspended, and is shut down"),
    SCENARIO("life", suspended_sleeps, "S7 S17", "a suspended worker sleeps"),
    SCENARIO("life", notification_waits, "S6 S16", "a notification waits on a worker"),
    SCENARIO("life", notification_waits_awake, "S7 R4", "suspended for a moment while a notification waits"),
};
const size_t life_suspend_scenario_count = sizeof life_suspend_scenarios / sizeof life_suspend_scenarios[0];
