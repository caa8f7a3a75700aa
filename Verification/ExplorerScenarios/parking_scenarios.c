// parking_scenarios.c - workers sleep and are woken: every submission finds a worker, and the worker finds
// the submission.

#include "world.h"

#include "scenarios.h"
#include "tuning.h"

static csched_completion *inner; // a second counter

// All workers sleep.
static void asleep_main(void)
{
    world_open_workers(2);
    world_explore_without_time();
    submit(operation(0));
    world_end(1);
}
MAIN(asleep)

static void opens_gate_0(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[0]);
}

static void opens_gate_0_and_lingers(void *context, void *extra, csched_disposition disposition)
{
    opens_gate_0(context, extra, disposition);
    give_way();
}

// The only worker has just run something, checks for more, and falls asleep.
static void falls_asleep_main(void)
{
    world_open_workers(1);
    submit(operation_with(0, opens_gate_0_and_lingers));
    gate_pass(&gates[0]);
    world_explore_without_time();
    give_way();
    submit(operation(1));
    world_end(2);
}
MAIN(falls_asleep)

// The same with two workers; the other one sleeps.
static void one_of_two_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, opens_gate_0_and_lingers));
    gate_pass(&gates[0]);
    world_explore_without_time();
    give_way();
    submit(operation(1));
    world_end(2);
}
MAIN(one_of_two)

// Two threads submit at the same time, and each of their operations needs a worker: 0 waits for 1.
static void passes_gate_0(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    ran(number_of(context), disposition);
}

static void submits_the_waiting_one_2(void) { submit(operation_with(2, passes_gate_0)); }
static void submits_the_waiting_one(void) { submit(operation_with(0, passes_gate_0)); }
static void submits_the_awaited_one(void) { submit(operation_with(1, opens_gate_0)); }

static void two_main(void)
{
    world_open_workers(2);
    csched_completion_enter(counter, 1);
    int one = thread_start("submitter", submits_the_waiting_one);
    int other = thread_start("submitter", submits_the_awaited_one);
    world_explore_without_time();
    thread_join(one);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(2);
}
MAIN(two)

// The only looker finds the first of two submissions, both of which had counted on it and on the sentry; the
// first waits for the second. The sentry is woken before its time.
static void passes_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void sentry_main(void)
{
    world_open_workers(2);
    csched_completion_enter(counter, 1);
    submit(operation_with(2, passes_gate_1));
    explorer_settle(csched_site("settle"));
    submit(operation(3));
    explorer_settle(csched_site("settle"));
    gate_open(&gates[1]);
    int other = thread_start("submitter", submits_the_awaited_one);
    world_explore_without_time();
    for (int turn = 0; turn < 3; turn++) {
        csched_yield(); // the turn of the worker in its body, which then checks for work
    }
    submit(operation_with(0, passes_gate_0));
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(4);
}
MAIN(sentry)

// A body submits an operation that it then waits for, without helping: another worker has to come for it.
static void submits_1_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    submit(operation_with(1, opens_gate_0));
    gate_pass(&gates[0]);
}

static void busy_main(void)
{
    world_open_workers(2);
    world_explore();
    submit(operation_with(0, submits_1_and_waits));
    world_end(2);
}
MAIN(busy)

// The other worker is about to sleep when the body submits.
static void busy_and_falling_asleep_main(void)
{
    world_open_workers(2);
    submit(operation_with(2, opens_gate_0_and_lingers));
    gate_pass(&gates[0]);
    gates[0] = (gate){0};
    world_explore();
    give_way();
    submit(operation_with(0, submits_1_and_waits));
    world_end(3);
}
MAIN(busy_and_falling_asleep)

// One worker holds a batch, whose first operation waits for its last.
static void bulk_main(void)
{
    world_open_workers(2);
    csched_operation batch[] = {operation_with(0, passes_gate_0), operation(1),
                                operation_with(2, opens_gate_0)};
    world_explore_without_time();
    csched_check(csched_submit_bulk(scheduler, batch, 3) == CSCHED_OK, "a bulk submission was not accepted");
    world_end(3);
}
MAIN(bulk)

// A body submits three at once, and waits for the oldest: a worker comes for it without any time passing.
static void submits_three_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    csched_operation batch[] = {operation_with(1, opens_gate_0), operation(2), operation(3)};
    csched_check(csched_submit_bulk(scheduler, batch, 3) == CSCHED_OK, "a bulk submission was not accepted");
    gate_pass(&gates[0]);
}

static void burst_main(void)
{
    world_open_workers(2);
    world_explore_without_time();
    submit(operation_with(0, submits_three_and_waits));
    world_end(4);
}
MAIN(burst)

// The other worker is looking for work when the three are pushed: the push wakes no worker then, and the
// other worker must see them before it sleeps. (With weak memory the sentry is needed: a push may see a
// looker that no longer looks, and has no fence.)
static void passes_gate_and_submits_three(void *context, void *extra, csched_disposition disposition)
{
    gate_pass(&gates[1]);
    submits_three_and_waits(context, extra, disposition);
}

static void opens_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[1]);
}

static void burst_and_falling_asleep_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, passes_gate_and_submits_three));
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    submit(operation_with(4, opens_gate_1));
    world_end(5);
}
MAIN(burst_and_falling_asleep)

// Operations of two counters in one row.
static void counters_main(void)
{
    world_open_workers(1);
    inner = csched_completion_create();
    csched_operation row[] = {operation(0), operation(1), operation(2)};
    row[0].counter = inner;
    row[2].counter = inner;
    world_explore_without_time();
    csched_check(csched_submit_bulk(scheduler, row, 3) == CSCHED_OK, "a bulk submission was not accepted");
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    wait_for_all();
    expect_ran(3);
    explorer_calm(true);
    csched_completion_release(inner);
    world_close();
}
MAIN(counters)

// A body submits an operation that it waits for while another worker is looking for work. That worker then
// finds another operation, which waits for the same one: a third worker has to come.
static void third_main(void)
{
    world_open_workers(3);
    csched_completion_enter(counter, 1);
    int other = thread_start("submitter", submits_the_waiting_one_2);
    world_explore();
    submit(operation_with(0, submits_1_and_waits));
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(3);
}
MAIN(third)

// A body waits for an operation from outside: another worker runs it.
static void wait_for_inner(void *context, csched_disposition disposition)
{
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    expect_ran(1);
    ran(number_of(context), disposition);
}

static void waits_for_inner(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    wait_for_inner(context, disposition);
}

static void lingers_and_waits_for_inner(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    give_way();
    wait_for_inner(context, disposition);
}

static csched_operation of_inner(void)
{
    csched_operation what = operation(0);
    what.counter = inner;
    return what;
}

static void end_inner(void)
{
    wait_for_all();
    expect_ran(2);
    explorer_calm(true);
    csched_completion_release(inner);
    world_close();
}

static void wait_of_two_main(void)
{
    world_open_workers(2);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(1, waits_for_inner));
    gate_pass(&gates[0]);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    submit(of_inner());
    (void)csched_completion_leave(inner, 1);
    end_inner();
}
MAIN(wait_of_two)

static void wait_of_two_awake_main(void)
{
    world_open_workers(2);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(1, lingers_and_waits_for_inner));
    gate_pass(&gates[0]);
    world_explore();
    give_way();
    submit(of_inner());
    (void)csched_completion_leave(inner, 1);
    end_inner();
}
MAIN(wait_of_two_awake)

// The last leave of the awaited counter is by a thread that is not a worker: it wakes the worker in its
// wait.
static void wait_in_body(csched_function body)
{
    world_open_workers(1);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation(0));
    wait_for_all();
    submit(operation_with(1, body));
    gate_pass(&gates[0]);
}

static void left_outside_main(void)
{
    wait_in_body(waits_for_inner);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    (void)csched_completion_leave(inner, 1);
    end_inner();
}
MAIN(left_outside)

static void left_outside_awake_main(void)
{
    wait_in_body(lingers_and_waits_for_inner);
    world_explore_without_time();
    give_way();
    (void)csched_completion_leave(inner, 1);
    end_inner();
}
MAIN(left_outside_awake)

// After a slow yield the search ends, and the next two do not yield; then a yield is tried again (pace.c).
static void expect_pace(int number, int yields, bool crowded)
{
    int before = times_yielded;
    submit(operation(number));
    explorer_settle(csched_site("settle"));
    if (times_yielded - before != yields) {
        explorer_fail("a search yields more often, or less");
    }
    if (scheduler_model_is_crowded(scheduler) != crowded) {
        explorer_fail("the crowd is not told (W8)");
    }
}

static void crowd_main(void)
{
    world_open_workers(1);
    expect_pace(0, 2, false); // once before the look, once after it
    slow_yield_ns = 0;
    expect_pace(1, 1, true);
    expect_pace(2, 0, true);
    expect_pace(3, 0, true);
    slow_yield_ns = UINT64_MAX;
    expect_pace(4, 2, false);
    world_end(5);
}
MAIN(crowd)

// The time of a sleep does not count for the operation that follows. Where operations are slow, no search
// yields.
static void slow_main(void)
{
    world_open_workers(1);
    slow_operation_ns = 50000;
    for (int number = 0; number < 4; number++) {
        for (int look = 0; look < 100; look++) {
            (void)explorer_now_ns();
        }
        expect_pace(number, 2, false);
    }
    slow_operation_ns = 1;
    expect_pace(4, 2, false);
    expect_pace(5, 0, true);
    world_end(6);
}
MAIN(slow)

// If a check takes as many operations as it may, the next check follows without a yield.
static void expect_backlog(csched_function first, int count, int yields)
{
    submit(operation_with(0, first));
    explorer_settle(csched_site("settle"));
    for (int number = 1; number <= count; number++) {
        submit(operation(number));
    }
    int before = times_yielded;
    gate_open(&gates[0]);
    explorer_settle(csched_site("settle"));
    if (times_yielded - before != yields) {
        explorer_fail("a backlog was run with %d yields instead of %d", times_yielded - before, yields);
    }
    world_end(count + 1);
}

static void submits_gate_0(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    submit(operation_with(number_of(context), passes_gate_0));
}

// A few other operations come first, so that the operation at the gate gets a fair turn, and a whole segment
// follows.
static void backlog_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    for (int number = 0; number < CSCHED_SEGMENT_FIRST + CSCHED_SEGMENT_MOST - 1; number++) {
        submit(operation_with(CSCHED_BATCH + 1, does_nothing));
    }
    csched_scheduler_resume(scheduler);
    // One yield before the check that takes a batch, one before the sleep; a fair turn takes the rest.
    expect_backlog(submits_gate_0, CSCHED_BATCH + 1, 2);
}
MAIN(backlog)

// With a limited capacity each check takes one operation.
static void bounded_backlog_main(void)
{
    world_open_with_places(4);
    expect_backlog(passes_gate_0, 3, 1); // before the sleep: the first check was full, too
}
MAIN(bounded_backlog)

// With a limited capacity, the first yield of a search comes after its check. That yield reports a crowd, and
// its end.
static void bounded_crowd_main(void)
{
    world_open_with_places(4);
    expect_pace(0, 1, false);
    slow_yield_ns = 0;
    expect_pace(1, 1, true); // the next two do not yield
    expect_pace(2, 0, true);
    expect_pace(3, 0, true);
    slow_yield_ns = UINT64_MAX;
    expect_pace(4, 1, false); // halves that
    expect_pace(5, 1, false);
    slow_yield_ns = 0;
    expect_pace(6, 1, true); // so it is two again, not more
    expect_pace(7, 0, true);
    expect_pace(8, 0, true);
    expect_pace(9, 1, true);
    world_end(10);
}
MAIN(bounded_crowd)

// A sentry that checks in vain does not report what the yields of its checks have cost.
static void crowd_beside_body_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, passes_gate_0));
    explorer_settle(csched_site("settle"));
    submit(operation(1)); // for the other worker, which then sleeps while this one is busy
    explorer_settle(csched_site("settle"));
    int before = times_yielded;
    slow_yield_ns = 0;
    csched_check(csched_completion_wait(counter, 2 * CSCHED_SENTRY_FIRST_NS) == CSCHED_WAIT_TIMED_OUT,
                 "wait");
    if (times_yielded == before || scheduler_model_is_crowded(scheduler)) {
        explorer_fail("the sentry did not look, or told of a crowd (W8)");
    }
    gate_open(&gates[0]);
    world_end(2);
}
MAIN(crowd_beside_body)

// Yields become slow while the worker searches.
static void crowd_comes_main(void)
{
    world_open_workers(1);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    submit(operation(0));
    give_way();
    slow_yield_ns = 0;
    world_end(1);
}
MAIN(crowd_comes)

// Threads stop for ever: what other threads submit is run. A stopped worker keeps what it was holding, and
// the wake-up that it received: the submission after that one wakes another worker.
enum { FIRST_WORKER = 1, LAST_WORKER = 2, FIRST_SUBMITTER = 3 };
enum { LATE = 8, LATE_COUNT = 3 };

static void submits_0(void) { submit(operation(0)); }
static void submits_1(void) { submit(operation(1)); }

// When the other threads, stopped or not, do nothing more.
static void submit_late(int count)
{
    for (int number = LATE; number < LATE + LATE_COUNT; number++) {
        explorer_settle(csched_site("settle"));
        submit(operation(number));
    }
    gate_open(&gates[3]);
    if (!explorer_freezes()) {
        wait_for_all();
        expect_ran(count);
        world_close();
    }
}

// `others`: threads that existed before the workers.
static void expect_free(int frozen, int others)
{
    bool is_worker = frozen >= FIRST_WORKER + others && frozen <= LAST_WORKER + others;
    for (int number = 0; number < 2; number++) {
        if (!is_worker && frozen != FIRST_SUBMITTER + others + number && times_run(number) != 1) {
            explorer_fail("operation %d was run %d times, and no worker had stopped (S2)", number,
                          times_run(number));
        }
    }
    int missing = 0;
    for (int number = LATE; gates[3].open != 0 && number < LATE + LATE_COUNT; number++) {
        missing += times_run(number) != 1;
    }
    if (missing > is_worker) {
        explorer_fail("%d operations that came after a thread had stopped were not run (S2)", missing);
    }
}

static void free_check_frozen(int frozen) { expect_free(frozen, 0); }

static void free_main(void)
{
    world_open_workers(2);
    (void)thread_start("submitter", submits_0);
    (void)thread_start("submitter", submits_1);
    world_explore();
    submit_late(2);
}
MAIN(free)

// The same in a crowd.
static void free_crowd_main(void)
{
    slow_yield_ns = 0;
    free_main();
}
MAIN(free_crowd)

// The same in a crowd, with the watch on guard.
static void free_guarded_check_frozen(int frozen) { expect_free(frozen, 1); }

static void free_guarded_main(void)
{
    slow_yield_ns = 0;
    world_open_with_spares(2, 1);
    (void)thread_start("submitter", submits_0);
    (void)thread_start("submitter", submits_1);
    world_explore();
    submit_late(2);
}
MAIN(free_guarded)

// The same with a body that submits two more: a worker stops among its own operations, or among the other
// worker's.
static void submits_children(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    submit(operation(2));
    submit(operation(3));
}

static void submits_parent(void) { submit(operation_with(0, submits_children)); }

static void free_children_main(void)
{
    world_open_workers(2);
    (void)thread_start("submitter", submits_parent);
    (void)thread_start("submitter", submits_1);
    world_explore();
    submit_late(4);
}
MAIN(free_children)

const explorer_program parking_scenarios[] = {
    SCENARIO("parking", crowd, "S12", "yields in a crowd, and after it"),
    SCENARIO("parking", slow, "S12", "no yields after slow operations"),
    SCENARIO("parking", crowd_beside_body, "S12", "what a sentry says of a crowd"),
    SCENARIO("parking", backlog, "S12", "no yield while a look takes a whole batch"),
    SCENARIO("parking", bounded_backlog, "S12", "the same, one at a time"),
    SCENARIO("parking", bounded_crowd, "S12", "a crowd, one at a time"),
    SCENARIO("parking", crowd_comes, "S1 S3", "a crowd comes while a worker searches"),
    SCENARIO("parking", asleep, "S1 S3 S5", "a submission while everybody sleeps"),
    SCENARIO("parking", falls_asleep, "S1 S3", "a submission while the only worker falls asleep"),
    SCENARIO("parking", one_of_two, "S1 S3", "a submission while one of two workers falls asleep"),
    SCENARIO("parking", two, "S1 S3 S12", "two threads submit, and the operations need a worker each"),
    SCENARIO("parking", sentry, "S3 S12", "two submissions count on one worker and on the sentry"),
    SCENARIO("parking", busy, "S3 S12", "a body waits for what it has submitted"),
    SCENARIO("parking", busy_and_falling_asleep, "S3 S12", "the same, and the other worker falls asleep"),
    SCENARIO("parking", bulk, "S1 S3 S12", "one of a batch waits for another one"),
    SCENARIO("parking", burst, "S3 S12", "a body waits for the oldest of three that it has submitted"),
    SCENARIO("parking", burst_and_falling_asleep, "S3 S12", "the same, and the other worker falls asleep",
             .sequential = true),
    SCENARIO("parking", counters, "S5 S6", "operations of two counters in one row"),
    SCENARIO("parking", wait_of_two, "S3 S16",
             "a worker waits inside a body for what the other one, asleep, has to run"),
    SCENARIO("parking", wait_of_two_awake, "S4 S16", "the same, and the worker falls asleep"),
    SCENARIO("parking", third, "S3 S12", "two workers are busy, and a third one has to come"),
    SCENARIO("parking", left_outside, "S5 S16", "a thread wakes a worker that waits inside a body"),
    SCENARIO("parking", left_outside_awake, "S5 S16", "the same, and the worker falls asleep"),
    SCENARIO("parking", free, "S1 S2 S12", "any thread stops for ever between submit and the end",
             .check_frozen = free_check_frozen),
    SCENARIO("parking", free_crowd, "S1 S2 S12", "the same in a crowd", .check_frozen = free_check_frozen),
    SCENARIO("parking", free_guarded, "S1 S2 S12", "the same with the watch on guard",
             .check_frozen = free_guarded_check_frozen),
    SCENARIO("parking", free_children, "S1 S2 S12", "the same, with a body that submits",
             .check_frozen = free_check_frozen),
};
const size_t parking_scenario_count = sizeof parking_scenarios / sizeof parking_scenarios[0];
