// life_crew_scenarios.c - workers are added and removed.

#include "life.h"

#include "scenarios.h"

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

static void submits_5_and_waits(void *context, void *extra, csched_disposition disposition)
{
    submit(operation(5));
    passes_gate_1(context, extra, disposition);
}

static void blocks_until_open(void *context, void *extra, csched_disposition disposition)
{
    gate_open(&gates[1]);
    passes_gate(context, extra, disposition);
}

static void passes_gate_3(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[3]);
    ran(number_of(context), disposition);
}

// The leaving worker has operations in its deque, or is asleep.
static void shrink_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, submits_many));
    quiet = 0;
    world_explore();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    world_end(5);
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
    world_end(1);
}
MAIN(shrink_asleep)

// The leaving worker was just woken by a submission.
static void shrink_woken_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    world_explore_without_time();
    submit(operation(0));
    submit(operation(1)); // wakes the second, and the first may run both
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_pass(&gates[0]);
    world_end(2);
}
MAIN(shrink_woken)

// The leaving worker has run a body, and the scheduler is suspended: the worker does not show as running,
// and what the body read may be written.
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
    world_end(2);
}
MAIN(shrink_suspended)

// The leaving worker always has something to do: it leaves nevertheless.
static void goes_on_until_stopped(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[2]);
    if (gate_is_open(&gates[0])) {
        ran(number_of(context), disposition);
    } else {
        csched_yield(); // otherwise the explorer would run no other thread
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
    world_end(2);
}
MAIN(shrink_endless)

// A worker leaves with an operation in its deque, and its memory is freed: the operation is not lost.
static void submits_children_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_operation children[] = {operation_with(1, tells_and_waits),
                                   operation(2),
                                   operation(3),
                                   operation(4),
                                   operation(6),
                                   operation(7)};
    csched_check(csched_submit_bulk(scheduler, children, 6) == CSCHED_OK, "a submission was not accepted");
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
    world_end(8);
}
MAIN(shrink_twice)

// The leaving worker finds no memory to hand over its operations.
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
    expect_ran(8);
    world_close();
}
MAIN(shrink_memory)

// The same under a suspension: the worker continues when that ends.
static void shrink_memory_suspended_main(void)
{
    quiet = 0;
    world_open_workers(2);
    submit(operation_with(0, passes_gate_3));
    submit(operation_with(1, submits_5_and_waits));
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    csched_scheduler_suspend(scheduler);
    explorer_memory_ends(true);
    gate_open(&gates[1]);
    explorer_settle(csched_site("settle"));
    explorer_memory_ends(false);
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    gate_open(&gates[3]);
    wait_for_all();
    world_close();
}
MAIN(shrink_memory_suspended)

// The leaving worker has announced that it blocks, and no longer blocks: the operation that it waits for
// runs on its stack, because the other worker does not come for it.
static csched_completion *inner;

static void announces_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_block_begin();
    gate_open(&gates[2]);
    pass_time();
    csched_block_end();
    pass_time();
    csched_operation child = operation(2);
    child.counter = inner;
    submit(child);
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    ran(number_of(context), disposition);
    gate_open(&gates[3]);
}

static void shrink_announced_main(void)
{
    world_open_workers(2);
    inner = csched_completion_create();
    submit(operation_with(0, blocks_until_open));
    gate_pass(&gates[1]);
    submit(operation_with(1, announces_and_waits));
    gate_pass(&gates[2]);
    world_explore();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_pass(&gates[3]);
    gate_open(&gates[0]);
    wait_for_all();
    expect_ran(3);
    csched_completion_release(inner);
    world_close();
}
MAIN(shrink_announced)

// A worker is added while the only other one waits for an operation that the new one can run.
static void grow_main(void)
{
    world_open_workers(1);
    submit(operation_with(0, passes_gate));
    submit(operation_with(1, opens_gate));
    explorer_settle(csched_site("settle"));
    world_explore();
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    world_end(2);
}
MAIN(grow)

// A worker is added while another one becomes the sentry, and records what each has executed.
static void grow_and_watch_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, passes_gate));
    explorer_settle(csched_site("settle"));
    world_explore();
    submit(operation(1));
    give_way();
    csched_check(csched_scheduler_resize(scheduler, 3) == CSCHED_OK, "resize");
    gate_open(&gates[0]);
    world_end(2);
}
MAIN(grow_and_watch)

// The leaving worker announces at that moment that its body blocks.
static void announces_behind_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[1]);
    csched_block_begin();
    csched_block_end();
    ran(number_of(context), disposition);
}

static void shrink_announcing_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    submit(operation_with(0, announces_behind_gate_1));
    explorer_settle(csched_site("settle"));
    submit(operation_with(1, announces_behind_gate_1));
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[1]);
    give_way();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_pass(&gates[0]);
    world_end(2);
}
MAIN(shrink_announcing)

// The leaving worker has no memory to hand over its operations, and the scheduler is suspended: the worker
// starts nothing, and does not show as running.
static void submits_two_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_operation children[] = {operation_with(2, stays_quiet), operation_with(3, stays_quiet)};
    csched_check(csched_submit_bulk(scheduler, children, 2) == CSCHED_OK, "a submission was not accepted");
    reads_and_waits(context, extra, disposition);
}

static void shrink_suspended_memory_main(void)
{
    quiet = 0;
    world_open_workers(2);
    watch_the_end_of_a_worker();
    submit(operation_with(0, passes_gate_3));
    explorer_settle(csched_site("settle"));
    submit(operation_with(1, submits_two_and_waits));
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    csched_scheduler_suspend(scheduler);
    explorer_memory_ends(true);
    world_explore_without_time();
    gate_open(&gates[1]);
    explorer_settle(csched_site("settle"));
    explorer_calm(true);                                       // the newest value is read
    if (csched_scheduler_statistics(scheduler).running != 1) { // the worker at gate 3
        explorer_fail("a suspended worker that goes shows as running (S7)");
    }
    if (times_run(2) + times_run(3) != 0) {
        explorer_fail("a suspended worker that goes runs what it has (S7)");
    }
    explorer_calm(false);
    csched_scheduler_resume(scheduler);
    csched_scheduler_suspend(scheduler); // the woken worker continues before or during this
    if (csched_scheduler_statistics(scheduler).running == 1) {
        be_quiet();
    }
    csched_scheduler_resume(scheduler);
    gate_pass(&gates[0]);
    explorer_memory_ends(false);
    gate_open(&gates[3]);
    world_end(4);
}
MAIN(shrink_suspended_memory)

static void resizes(void) { csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize"); }

// One worker leaves, one is added, and operations are in flight.
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
    world_end(2);
}
MAIN(shrink_and_grow)

// A worker is added while the scheduler ends.
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

// Statistics are read while workers leave, are removed, and are freed.
static void counts(void)
{
    csched_statistics sum = csched_scheduler_statistics(scheduler);
    if (sum.executed != 2 || sum.submitted != 2) {
        explorer_fail("%llu operations of 2 were executed (S6)", (unsigned long long)sum.executed);
    }
}

static void statistics_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, passes_gate));
    submit(operation_with(1, opens_gate));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    explorer_settle(csched_site("settle"));
    int other = thread_start("counter", counts);
    world_explore_without_time();
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    thread_join(other);
    world_end(2);
}
MAIN(statistics)

// Statistics are read while all workers end.
static void statistics_at_end_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, passes_gate));
    submit(operation_with(1, opens_gate));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    int other = thread_start("counter", counts);
    world_explore_without_time();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    thread_join(other);
    world_end(2);
}
MAIN(statistics_at_end)

// Statistics are read while the inbox of a thread that has ended is unlisted.
static void statistics_and_churn_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    thread_join(thread_start("submitter", submits_operation_0));
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    (void)csched_scheduler_statistics(scheduler); // exact only at quiescence
    world_end(1);
}
MAIN(statistics_and_churn)

// A worker is added while another one looks for operations to take.
static void grow_and_look_main(void)
{
    world_open_workers(1);
    world_explore();
    submit(operation(0));
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    submit(operation(1));
    world_end(2);
}
MAIN(grow_and_look)

// Two concurrent resizes, each of which removes the workers that have left.
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

// A worker sleeps for the second time, and is asked to leave.
static void shrink_asleep_again_main(void)
{
    world_open_workers(2);
    watch_the_end_of_a_worker();
    submit(operation_with(0, tells_and_waits_for_gate_1));
    submit(operation_with(1, tells_and_waits_for_gate_1));
    explorer_settle(csched_site("settle"));
    gate_open(&gates[1]);
    wait_for_all();
    csched_store(&gates[0].open, 0, seq_cst);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_pass(&gates[0]);
    world_end(2);
}
MAIN(shrink_asleep_again)

const explorer_program life_crew_scenarios[] = {
    SCENARIO("life", shrink_asleep_again, "S3 S8", "a worker that sleeps again is to leave"),
    SCENARIO("life", shrink, "S1 S3 S8", "a worker goes that has operations in its deque"),
    SCENARIO("life", shrink_asleep, "S3 S8", "a worker goes that sleeps"),
    SCENARIO("life", shrink_twice, "S1 R3", "a worker that has gone is taken apart"),
    SCENARIO("life", shrink_woken, "S3 S8", "a worker goes that was woken a moment ago"),
    SCENARIO("life", shrink_suspended, "S7 R4", "a worker goes, and the scheduler is suspended"),
    SCENARIO("life", shrink_endless, "S8", "a worker goes that has always something to do"),
    SCENARIO("life", shrink_memory, "S1 S8", "a worker goes, and memory runs out", .allocations_fail = true),
    SCENARIO("life", shrink_memory_suspended, "S3 S7", "the same, and the scheduler is suspended"),
    SCENARIO("life", shrink_announced, "S3 S16", "a worker goes that has just blocked, and waits"),
    SCENARIO("life", shrink_announcing, "S3 S8", "a worker goes whose body announces that it blocks"),
    SCENARIO("life", shrink_suspended_memory, "S7 R4", "a suspended worker goes, and there is no memory"),
    SCENARIO("life", grow, "S3 S12", "a worker comes"),
    SCENARIO("life", shrink_and_grow, "S1 S3 R3", "a worker goes and one comes"),
    SCENARIO("life", grow_and_shut_down, "S8 S13", "a worker comes while the scheduler ends"),
    SCENARIO("life", statistics, "R3 S6", "statistics while workers come and go"),
    SCENARIO("life", statistics_at_end, "R3 S6", "statistics while all workers end"),
    SCENARIO("life", grow_and_watch, "R4 S8", "a worker comes while another one becomes the sentry"),
    SCENARIO("life", statistics_and_churn, "R3 S6", "statistics while a thread's inbox goes"),
    SCENARIO("life", grow_and_look, "R4 S8", "a worker comes while another one looks around"),
    SCENARIO("life", resize_twice, "S8 R3", "two threads resize"),
};
const size_t life_crew_scenario_count = sizeof life_crew_scenarios / sizeof life_crew_scenarios[0];
