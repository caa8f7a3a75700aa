// life_scenarios.c - suspend, resume, resize, observe, shut down: beside operations that come and run.

#include "world.h"

#include <string.h>

#include "scenarios.h"

static void end(int count)
{
    wait_for_all();
    expect_ran(count);
    world_close();
}

// MARK: Suspension

static int quiet; // plain: written while no body may start

// Bodies that look whether they may run.
static void looks_around(int number, csched_disposition disposition)
{
    explorer_plain_read(csched_site("quiet"), &quiet);
    if (quiet != 0) {
        explorer_fail("operation %d started while suspended (S7)", number);
    }
    ran(number, disposition);
}

static void stays_quiet(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    looks_around(number_of(context), disposition);
}

// So that no departure is spent on it: all others go on until they wait, or one of them is kept.
static void give_way(void)
{
    for (int turn = 0; turn < 3; turn++) {
        csched_yield();
    }
}

// What suspend promises: when nothing runs, nothing starts.
static void suspends_and_resumes(void)
{
    give_way();
    csched_scheduler_suspend(scheduler);
    if (csched_scheduler_statistics(scheduler).running == 0) {
        explorer_plain_write(csched_site("quiet"), &quiet);
        quiet = 1;
        give_way();
        explorer_plain_write(csched_site("quiet"), &quiet);
        quiet = 0;
    }
    csched_scheduler_resume(scheduler);
}

// Operations that come from outside.
static void suspend_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, stays_quiet));
    submit(operation_with(1, stays_quiet));
    world_explore_without_time();
    suspends_and_resumes();
    end(2);
}
MAIN(suspend)

// A chain: each operation submits the next, and is popped as the last one of the deque, or fairly.
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
    end(4);
}
MAIN(suspend_chain)

// A deep deque, which is popped below what is open.
static void submits_many(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    looks_around(number_of(context), disposition);
    csched_operation many[4];
    for (int index = 0; index < 4; index++) {
        many[index] = operation_with(index + 1, stays_quiet);
    }
    csched_check(csched_submit_bulk(scheduler, many, 4) == CSCHED_OK, "a submission was not accepted");
}

static void suspend_deep_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, submits_many));
    world_explore_without_time();
    suspends_and_resumes();
    end(5);
}
MAIN(suspend_deep)

// A second worker steals, and is suspended with what it has stolen.
static void suspend_two_main(void)
{
    quiet = 0;
    world_open_workers(2);
    submit(operation_with(0, submits_many));
    world_explore();
    suspends_and_resumes();
    end(5);
}
MAIN(suspend_two)

// What came while suspended runs after resume, on all workers: 0 waits for 1.
static void passes_gate(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    ran(number_of(context), disposition);
}

static void opens_gate(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[0]);
}

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
    end(2);
}
MAIN(resume)

// A submission beside the suspension and its end: one of the two wakes the worker.
static void submits_0(void) { submit(operation(0)); }

static void submit_suspended_main(void)
{
    world_open_workers(1);
    csched_completion_enter(counter, 1);
    int submitter = thread_start("submitter", submits_0);
    world_explore_without_time();
    csched_scheduler_suspend(scheduler);
    csched_scheduler_resume(scheduler);
    thread_join(submitter);
    (void)csched_completion_leave(counter, 1);
    end(1);
}
MAIN(submit_suspended)

// The worker has put back what it had in its hand, and is about to sleep, when the suspension ends.
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
    end(2);
}
MAIN(resume_race)

static void tells_and_waits_for_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

// The same, and the scheduler is shut down then: what was put back is not forgotten.
static void tells_and_submits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit(operation(1));
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
    gate_open(&gates[2]);
}

static void suspend_and_drain_main(void)
{
    world_open_workers(1);
    submit(operation_with(0, tells_and_submits));
    gate_pass(&gates[0]);
    csched_scheduler_suspend(scheduler);
    world_explore_without_time();
    gate_open(&gates[1]);
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    end(2);
}
MAIN(suspend_and_drain)

// A suspended worker sleeps, and does not look at what it has put back over and over.
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
    end(2);
}
MAIN(suspended_sleeps)

// A notification that waits, on a worker that runs no body: the worker shows as running while it helps, and not
// afterwards.
static csched_completion *second;

static void waits_for_second(void *unused)
{
    (void)unused;
    submit((csched_operation){.run = stays_quiet, .context = (void *)(intptr_t)2, .counter = second});
    csched_check(csched_completion_wait(second, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    gate_open(&gates[2]);
}

static void notification_waits_main(void)
{
    quiet = 0;
    world_open_workers(1);
    second = csched_completion_create();
    submit(operation_with(0, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    csched_notification_release(csched_completion_notify(counter, waits_for_second, NULL));
    world_explore_without_time();
    gate_open(&gates[1]);
    gate_pass(&gates[2]);
    end(2);
    csched_completion_release(second);
}
MAIN(notification_waits)

// MARK: The end

static bool accepted[ITEMS_MOST];

static void submits_0_and_1(void)
{
    for (int number = 0; number < 2; number++) {
        csched_operation what = operation(number);
        accepted[number] = csched_submit(scheduler, &what) == CSCHED_OK;
    }
}

static void shut_down(uint64_t timeout_ns)
{
    csched_check(csched_scheduler_shutdown(scheduler, timeout_ns) == CSCHED_OK, "shutdown");
    csched_operation late = operation(15);
    late.counter = NULL;
    csched_check(csched_submit(scheduler, &late) == CSCHED_CLOSED,
                 "a submission after shutdown was accepted (S14)");
}

static void expect_accepted(int count, bool cancelling)
{
    for (int number = 0; number < count; number++) {
        int settled = times_run(number) + times_cancelled(number);
        if (settled != accepted[number] || (!cancelling && times_cancelled(number) != 0)) {
            explorer_fail("operation %d was %s, run %d times and cancelled %d times (S13)", number,
                          accepted[number] ? "accepted" : "refused", times_run(number),
                          times_cancelled(number));
        }
    }
    if (csched_completion_outstanding(counter) != 0) {
        explorer_fail("%u operations are outstanding after the shutdown (S6)",
                      csched_completion_outstanding(counter));
    }
}

static void opens_when_stopped(void *unused, csched_event event, uint32_t worker)
{
    (void)unused, (void)worker;
    if (event == CSCHED_WORKER_STOPPED) {
        gate_open(&gates[0]);
    }
}

static void watch_the_end_of_a_worker(void)
{
    csched_observer observer = {.notify = opens_when_stopped};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
}

// A thread submits, for the first time, while another one shuts down.
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

// A thread that has submitted before submits again while the scheduler is closed under a worker that has just
// run dry.
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

// A worker sleeps inside a body: it may still submit, and need the other worker for it.
static csched_completion *inner;

static void opens_gate_2(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[2]);
}

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

// A wait inside a body lends the worker to whoever completes it: nobody uses it after the wait, and the
// scheduler can go.
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

// A wait inside a body for nothing.
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
    end(1);
    csched_completion_release(inner);
}
MAIN(wait_for_nothing)

// Suspended, with operations that wait, and then shut down: they run, or are told that they will not.
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

// A time limit: what has not started by then is cancelled.
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
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    configuration.capacity = 1;
    world_open(configuration);
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

// A worker is on its way out when the scheduler ends, and the other one has nothing to do: whoever is the
// last sees it.
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

// The time limit is generous, and the end is told: nobody waits for the time to pass.
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
static void shuts_down(void) { shut_down(CSCHED_FOREVER); }

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

// MARK: The number of workers

static void tells_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit(operation(5));
    gate_open(&gates[2]);
    gate_pass(&gates[3]);
    ran(number_of(context), disposition);
}

static void passes_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[2]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void passes_gate_3(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[3]);
    ran(number_of(context), disposition);
}

// The worker that goes has operations in its deque, or is asleep.
static void shrink_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, submits_many));
    quiet = 0;
    world_explore();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    end(5);
}
MAIN(shrink)

static void shrink_asleep_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    world_explore_without_time();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_pass(&gates[0]);
    submit(operation(0));
    end(1);
}
MAIN(shrink_asleep)

// The worker that goes was woken a moment ago, by a submission (P26).
static void shrink_woken_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    submit(operation_with(0, passes_gate_1));
    gate_pass(&gates[2]);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    submit(operation(1));
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_pass(&gates[0]);
    gate_open(&gates[1]);
    end(2);
}
MAIN(shrink_woken)

// The worker that goes has run a body, and the scheduler is suspended: it does not show as running, and what
// the body read may be written.
static void reads_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[2]);
    gate_pass(&gates[1]);
    looks_around(number_of(context), disposition);
}

static void shrink_suspended_main(void)
{
    quiet = 0;
    world_open_workers(2);
    submit(operation_with(0, passes_gate_3));
    submit(operation_with(1, reads_and_waits));
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_open(&gates[3]);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[1]);
    suspends_and_resumes();
    end(2);
}
MAIN(shrink_suspended)

// The worker that goes has always something to do: it goes all the same.
static void goes_on_until_stopped(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[2]);
    if (gate_is_open(&gates[0])) {
        ran(number_of(context), disposition);
    } else {
        csched_yield(); // or the explorer would run nothing else
        submit(operation_with(number_of(context), goes_on_until_stopped));
    }
}

static void shrink_endless_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    submit(operation_with(0, passes_gate_1));
    gate_pass(&gates[2]);
    gates[2].open = 0;
    submit(operation_with(1, goes_on_until_stopped));
    gate_pass(&gates[2]);
    world_explore_without_time();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_pass(&gates[0]);
    gate_open(&gates[1]);
    end(2);
}
MAIN(shrink_endless)

// A worker goes with an operation in its deque, and its memory goes: the operation does not.
static void submits_children_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_operation children[] = {operation_with(1, tells_and_waits), operation(2), operation(3),
                                   operation(4)};
    csched_check(csched_submit_bulk(scheduler, children, 4) == CSCHED_OK, "a submission was not accepted");
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void shrink_twice_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    submit(operation_with(0, submits_children_and_waits));
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_open(&gates[3]);
    world_explore();
    gate_pass(&gates[0]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_open(&gates[1]);
    end(6);
}
MAIN(shrink_twice)

// The worker that goes finds no memory for handing over what it has.
static void shrink_memory_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    submit(operation_with(0, submits_children_and_waits));
    gate_pass(&gates[2]);
    csched_status status = CSCHED_OUT_OF_MEMORY;
    world_explore_without_time();
    while (status == CSCHED_OUT_OF_MEMORY) {
        status = csched_scheduler_resize(scheduler, 1);
    }
    csched_check(status == CSCHED_OK, "resize");
    gate_open(&gates[3]);
    gate_pass(&gates[0]);
    gate_open(&gates[1]);
    wait_for_all();
    expect_ran(6);
    world_close();
}
MAIN(shrink_memory)

// A worker comes while the only other one waits for what it can run.
static void grow_main(void)
{
    world_open_workers(1);
    submit(operation_with(0, passes_gate));
    submit(operation_with(1, opens_gate));
    explorer_settle(csched_site("settle"));
    world_explore();
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    end(2);
}
MAIN(grow)

static void resizes(void) { csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize"); }

// One goes, one comes, and operations are on their way.
static void shrink_and_grow_main(void)
{
    world_open_workers(2);
    csched_completion_enter(counter, 1);
    int other = thread_start("resizer", resizes);
    world_explore_without_time();
    submit(operation(0));
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    submit(operation(1));
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    end(2);
}
MAIN(shrink_and_grow)

// A worker comes while the scheduler ends.
static void grows(void)
{
    csched_status status = csched_scheduler_resize(scheduler, 2);
    csched_check(status == CSCHED_OK || status == CSCHED_CLOSED, "resize");
}

static void grow_and_shut_down_main(void)
{
    world_open_workers(1);
    int other = thread_start("resizer", grows);
    world_explore_without_time();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    if (csched_scheduler_workers(scheduler) != 0) {
        explorer_fail("%u workers are left after the shutdown (S13)", csched_scheduler_workers(scheduler));
    }
    thread_join(other);
    world_close();
}
MAIN(grow_and_shut_down)

// Somebody counts while workers go, are taken out, and their memory goes.
static void counts(void)
{
    csched_statistics sum = csched_scheduler_statistics(scheduler);
    if (sum.executed != 1 || sum.submitted != 1) {
        explorer_fail("%llu operations of one were executed (S6)", (unsigned long long)sum.executed);
    }
}

static void statistics_main(void)
{
    world_open_workers(2);
    submit(operation(0));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    explorer_settle(csched_site("settle"));
    int other = thread_start("counter", counts);
    world_explore_without_time();
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    thread_join(other);
    end(1);
}
MAIN(statistics)

// Two resizes at once, each of which takes out those that have gone.
static void resizes_to_two(void)
{
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
}

static void resize_twice_main(void)
{
    world_open_workers(2);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    explorer_settle(csched_site("settle"));
    int other = thread_start("resizer", resizes_to_two);
    world_explore_without_time();
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    thread_join(other);
    if (csched_scheduler_workers(scheduler) != 2) {
        explorer_fail("there are %u workers instead of 2 (S8)", csched_scheduler_workers(scheduler));
    }
    world_close();
}
MAIN(resize_twice)

// MARK: Several at once

// Resumed while it is shut down: whichever comes first, it ends.
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

// A shutdown that cancels beside one that does not, under a suspension: nothing runs.
static void closes(void) { csched_scheduler_close(scheduler); }

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

// Suspended beside a close: who was suspended in time starts nothing until the resume.
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
    end(1);
}
MAIN(suspend_and_close)

// Two schedulers come and go at once, each with a thread of its own that submits.
static void uses_one(int number)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    csched_scheduler *own = NULL;
    csched_check(csched_scheduler_create(&configuration, &own) == CSCHED_OK, "create");
    csched_operation what = operation(number);
    what.counter = NULL;
    csched_check(csched_submit(own, &what) == CSCHED_OK, "a submission was not accepted");
    csched_scheduler_destroy(own);
    if (times_run(number) != 1) {
        explorer_fail("operation %d was run %d times (S1)", number, times_run(number));
    }
}

static void uses_a_first(void) { uses_one(0); }
static void uses_a_second(void) { uses_one(1); }

static void two_schedulers_main(void)
{
    int other = thread_start("other", uses_a_second);
    explorer_stop_time(true);
    world_explore();
    uses_a_first();
    explorer_calm(true);
    thread_join(other);
}
MAIN(two_schedulers)

// A thread has inboxes of two schedulers, and one of them has gone.
static void submits_to_both(void)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    csched_scheduler *other = NULL;
    csched_check(csched_scheduler_create(&configuration, &other) == CSCHED_OK, "create");
    csched_operation what = operation(3);
    what.counter = NULL;
    csched_check(csched_submit(other, &what) == CSCHED_OK, "a submission was not accepted");
    submit(operation(0));
    csched_check(csched_submit(other, &what) == CSCHED_OK, "a submission was not accepted");
    size_t before = explorer_allocated();
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
    end(2);
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

// MARK: Capacity

static void submits_operation_0(void) { submit(operation(0)); }
static void submits_operation_1(void) { submit(operation(1)); }

static void full_main(void)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    configuration.capacity = 1;
    world_open(configuration);
    csched_completion_enter(counter, 1);
    int one = thread_start("submitter", submits_operation_0);
    int other = thread_start("submitter", submits_operation_1);
    world_explore_without_time();
    thread_join(one);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    end(2);
}
MAIN(full)

// Two callers find it full, and run what they have.
static void submits_and_runs_2(void) { submit(operation(2)); }

static void in_callers_main(void)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    configuration.capacity = 1;
    configuration.when_full = CSCHED_WHEN_FULL_RUN_IN_CALLER;
    world_open(configuration);
    submit(operation_with(0, passes_gate));
    explorer_settle(csched_site("settle"));
    submit(operation_with(3, passes_gate));
    int other = thread_start("submitter", submits_and_runs_2);
    world_explore_without_time();
    submit(operation(1));
    thread_join(other);
    gate_open(&gates[0]);
    end(4);
}
MAIN(in_callers)

// Closed while a submitter waits for room.
static void full_and_closed_main(void)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    configuration.capacity = 1;
    world_open(configuration);
    csched_scheduler_suspend(scheduler);
    int submitter = thread_start("submitter", submits_0_and_1);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    thread_join(submitter);
    expect_accepted(2, false);
    world_close();
}
MAIN(full_and_closed)

// Operations that submit themselves, without end: what comes from outside is run all the same, and room is
// made.
static void goes_on_until_open(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    if (!gate_is_open(&gates[0])) {
        csched_yield(); // or the explorer would run nothing else
        submit(operation_with(number_of(context), goes_on_until_open));
    }
}

static void opens_gate_and_runs(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[0]);
}

static void fair_main(void)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    configuration.capacity = 1;
    world_open(configuration);
    submit(operation_with(8, goes_on_until_open));
    world_explore_without_time();
    submit(operation(0));
    submit(operation_with(1, opens_gate_and_runs));
    end(2);
}
MAIN(fair)

// The same inside: an older operation of the worker's own deque.
static void submits_the_gate_and_goes_on(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    submit(operation_with(0, opens_gate_and_runs));
    submit(operation_with(number_of(context), goes_on_until_open));
}

static void fair_inside_main(void)
{
    world_open_workers(1);
    submit(operation_with(8, submits_the_gate_and_goes_on));
    world_explore_without_time();
    end(1);
}
MAIN(fair_inside)

// Memory runs out somewhere: what was refused is not run, what was accepted is, and no place is lost.
static bool was_accepted[2];

static void submits_if_there_is_memory(int number)
{
    csched_operation what = operation(number);
    csched_status status = csched_submit(scheduler, &what);
    csched_check(status == CSCHED_OK || status == CSCHED_OUT_OF_MEMORY, "neither accepted nor out of memory");
    was_accepted[number] = status == CSCHED_OK;
}

static void submits_1_if_there_is_memory(void) { submits_if_there_is_memory(1); }

static void memory_main(void)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = 1;
    configuration.capacity = 1;
    world_open(configuration);
    int other = thread_start("submitter", submits_1_if_there_is_memory);
    world_explore_without_time();
    submits_if_there_is_memory(0);
    thread_join(other);
    wait_for_all();
    for (int number = 0; number < 2; number++) {
        if (times_run(number) != was_accepted[number]) {
            explorer_fail("operation %d was %s, and run %d times (S1)", number,
                          was_accepted[number] ? "accepted" : "refused", times_run(number));
        }
    }
    world_close();
}
MAIN(memory)

// MARK: Observers

static int observed[3]; // plain: events of each observer
static int released[3]; // plain

static void forget_observers(void)
{
    memset(observed, 0, sizeof observed);
    memset(released, 0, sizeof released);
}

static void observes(void *context, csched_event event, uint32_t worker)
{
    (void)event, (void)worker;
    int number = (int)(intptr_t)context;
    if (released[number] != 0) {
        explorer_fail("observer %d was called after its release (R3)", number);
    }
    explorer_plain_read(csched_site("observer"), &released[number]);
    csched_yield();
    observed[number]++;
}

static void releases(void *context)
{
    int number = (int)(intptr_t)context;
    if (explorer_self() >= 0) {
        explorer_plain_write(csched_site("observer"), &released[number]);
    }
    released[number]++;
}

static void observe(int number)
{
    csched_observer observer = {.notify = observes, .release = releases, .context = (void *)(intptr_t)number};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
}

// An observer is replaced while a worker calls it.
static void observe_main(void)
{
    forget_observers();
    world_open_workers(1);
    observe(0);
    submit(operation(0));
    world_explore();
    observe(1);
    wait_for_all();
    world_close();
}

static void observe_check(void)
{
    if (released[0] != 1 || released[1] != 1) {
        explorer_fail("the observers were released %d and %d times (R1)", released[0], released[1]);
    }
}
MAIN(observe)

static void observe_twice_check(void)
{
    observe_check();
    if (released[2] != 1) {
        explorer_fail("the last observer was released %d times (R1)", released[2]);
    }
}

// An observer that is told that its worker falls asleep submits an operation, while another worker is the
// sentry: it is run without waiting for the sentry to look.
static void submits_once_parked(void *context, csched_event event, uint32_t worker)
{
    (void)context;
    if (event == CSCHED_WORKER_PARKED && worker == 0 && gate_is_open(&gates[1]) && times_run(2) == 0) {
        submit(operation_with(2, opens_gate_2));
    }
}

static void observer_submits_main(void)
{
    world_open_workers(2);
    csched_completion_enter(counter, 1);
    submit(operation_with(0, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    submit(operation(1));
    explorer_settle(csched_site("settle"));
    csched_observer observer = {.notify = submits_once_parked};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    world_explore_without_time();
    gate_open(&gates[1]);
    gate_pass(&gates[2]);
    (void)csched_completion_leave(counter, 1);
    end(3);
}
MAIN(observer_submits)

// Two observers come at once, while two workers call the one before.
static void observes_1(void) { observe(1); }

static void observe_twice_main(void)
{
    forget_observers();
    world_open_workers(2);
    observe(0);
    submit(operation(0));
    submit(operation(1));
    int other = thread_start("observer", observes_1);
    world_explore();
    observe(2);
    thread_join(other);
    wait_for_all();
    world_close();
}
MAIN(observe_twice)

// MARK: Threads

// A thread comes, submits and ends, over and over: its inbox is emptied, and goes.
// A thread that has submitted has ended: its inbox is taken out while another thread shuts down.
static void churn_and_close_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    int one = thread_start("submitter", submits_operation_0);
    thread_join(one);
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    end(1);
}
MAIN(churn_and_close)

static void churn_main(void)
{
    world_open_workers(1);
    csched_completion_enter(counter, 1);
    int one = thread_start("submitter", submits_operation_0);
    world_explore_without_time();
    thread_join(one);
    int other = thread_start("submitter", submits_operation_1);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    end(2);
}
MAIN(churn)

// The scheduler is given up on its own worker.
static void gives_up(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_pass(&gates[0]);
    csched_scheduler_destroy_later(scheduler);
}

static void destroy_later_main(void)
{
    world_open_workers(1);
    world_explore();
    submit(operation_with(0, gives_up));
    gate_open(&gates[0]); // nobody but the worker uses it any more
    wait_for_all();
    expect_ran(1);
    explorer_calm(true);
    csched_completion_release(counter);
}
MAIN(destroy_later)

const explorer_program life_scenarios[] = {
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
    SCENARIO("life", drain, "S13 S14", "a thread's first submission beside a shutdown"),
    SCENARIO("life", drain_again, "S13 S14", "a thread's later submission beside a shutdown"),
    SCENARIO("life", cancel, "C1 C4 S13", "a thread's first submission beside a shutdown that cancels"),
    SCENARIO("life", drain_two, "S13", "a shutdown while one of two workers submits"),
    SCENARIO("life", drain_nested, "S13 S16", "a shutdown while a worker waits inside a body"),
    SCENARIO("life", lend, "R3 S5", "a scheduler goes after a wait inside a body"),
    SCENARIO("life", wait_for_nothing, "S5", "a wait inside a body for nothing"),
    SCENARIO("life", drain_suspended, "S7 S13", "a shutdown ends a suspension"),
    SCENARIO("life", cancel_suspended, "C1 S13", "a shutdown cancels what was suspended"),
    SCENARIO("life", deadline, "S13", "a shutdown with a time limit"),
    SCENARIO("life", twice, "S13", "two shutdowns"),
    SCENARIO("life", shrink, "S1 S3 S8", "a worker goes that has operations in its deque"),
    SCENARIO("life", shrink_asleep, "S3 S8", "a worker goes that sleeps"),
    SCENARIO("life", shrink_twice, "S1 R3", "a worker that has gone is taken apart"),
    SCENARIO("life", shrink_woken, "S3 S8", "a worker goes that was woken a moment ago"),
    SCENARIO("life", shrink_suspended, "S7 R4", "a worker goes, and the scheduler is suspended"),
    SCENARIO("life", shrink_endless, "S8", "a worker goes that has always something to do"),
    SCENARIO("life", shrink_memory, "S1 S8", "a worker goes, and memory runs out", .allocations_fail = true),
    SCENARIO("life", grow, "S3 S12", "a worker comes"),
    SCENARIO("life", shrink_and_grow, "S1 S3 R3", "a worker goes and one comes"),
    SCENARIO("life", grow_and_shut_down, "S8 S13", "a worker comes while the scheduler ends"),
    SCENARIO("life", statistics, "R3 S6", "statistics while workers come and go"),
    SCENARIO("life", resize_twice, "S8 R3", "two threads resize"),
    SCENARIO("life", resume_and_shut_down, "S7 S13", "resumed while it is shut down"),
    SCENARIO("life", cancel_and_close, "C1 S13", "a shutdown that cancels beside a close"),
    SCENARIO("life", cancel_twice, "S13", "a shutdown that cancels beside one that does not"),
    SCENARIO("life", suspend_and_close, "S7 S13", "suspended beside a close"),
    SCENARIO("life", two_schedulers, "S1 R1", "two schedulers come and go"),
    SCENARIO("life", two_inboxes, "R2 S1", "a thread has inboxes of two schedulers"),
    SCENARIO("life", owner, "R4", "an owner is set by one thread, and read by another"),
    SCENARIO("life", full, "K1 S3", "two threads want the one place of the scheduler"),
    SCENARIO("life", in_callers, "S1 S6", "two callers run what there is no room for"),
    SCENARIO("life", full_and_closed, "S3 S13", "a shutdown while a thread waits for room"),
    SCENARIO("life", close, "S13", "closed, and nothing more: the workers end"),
    SCENARIO("life", close_full, "S3 S14", "closed while a thread waits for room, and nothing more"),
    SCENARIO("life", shrink_and_drain, "S13", "a worker goes while the scheduler ends"),
    SCENARIO("life", deadline_told, "S13", "a shutdown with a time limit is told of the end"),
    SCENARIO("life", fair, "S11 S3", "operations that submit themselves, and others from outside"),
    SCENARIO("life", fair_inside, "S11", "operations that submit themselves, and an older one"),
    SCENARIO("life", memory, "S1 S6", "memory runs out", .allocations_fail = true),
    SCENARIO("life", observe, "R1 R3", "an observer is replaced under a call", .check = observe_check),
    SCENARIO("life", observer_submits, "S3", "an observer submits as its worker falls asleep"),
    SCENARIO("life", observe_twice, "R1 R3", "observers are replaced by two threads",
             .check = observe_twice_check),
    SCENARIO("life", churn_and_close, "R3 S13",
             "a thread that has submitted has ended, and the scheduler ends"),
    SCENARIO("life", churn, "R1 S1", "threads come, submit and end"),
    SCENARIO("life", destroy_later, "R1 S13", "a scheduler is given up on its own worker"),
};
const size_t life_scenario_count = sizeof life_scenarios / sizeof life_scenarios[0];
