// lane_scenarios.c - operations of a lane, one at a time and in order.

#include "world.h"

#include "scenarios.h"

static csched_lane *lane;
static csched_atomic(uint32_t) inside;
static int last; // plain, so that the race check covers S9, too

static void in_lane(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (csched_exchange(&inside, 1, relaxed) != 0) {
        explorer_fail("two operations of a lane at once (S9)");
    }
    explorer_plain_write(csched_site("last"), &last);
    if (number_of(context) % 4 != 0 && last != number_of(context) - 1 && last / 4 == number_of(context) / 4) {
        explorer_fail("operation %d ran after %d (S9)", number_of(context), last);
    }
    last = number_of(context);
    csched_store(&inside, 0, relaxed);
    ran(number_of(context), disposition);
}

static void open_lane(uint32_t workers)
{
    world_open_workers(workers);
    lane = csched_lane_create(scheduler);
    csched_init(&inside, 0);
    last = -1;
}

static csched_status submit_to_lane(int number)
{
    csched_operation what = operation_with(number, in_lane);
    return csched_lane_submit(lane, &what);
}

static void must_submit(int number)
{
    csched_check(submit_to_lane(number) == CSCHED_OK, "a submission to the lane was not accepted");
}

static void submits_4(void) { must_submit(4); }

// Two threads, two workers.
static void two_main(void)
{
    open_lane(2);
    csched_completion_enter(counter, 1);
    int other = thread_start("submitter", submits_4);
    world_explore_without_time();
    must_submit(0);
    must_submit(1);
    thread_join(other);
    csched_lane_release(lane);
    (void)csched_completion_leave(counter, 1);
    wait_for_all();
    expect_ran(2);
    world_close();
}
MAIN(two)

// Two drains, because one submission is of high priority, and a worker for each.
static void waits_in_lane(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (csched_exchange(&inside, 1, relaxed) != 0) {
        explorer_fail("two operations of a lane at once (S9)");
    }
    gate_pass(&gates[0]);
    csched_store(&inside, 0, relaxed);
    ran(number_of(context), disposition);
}

static void two_drains_main(void)
{
    open_lane(2);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    csched_operation first = operation_with(1, waits_in_lane);
    csched_check(csched_lane_submit(lane, &first) == CSCHED_OK, "submit");
    csched_operation second = operation_with(0, in_lane);
    csched_check(csched_lane_submit_at(lane, &second, CSCHED_PRIORITY_HIGH) == CSCHED_OK, "submit");
    explorer_settle(csched_site("settle"));
    gate_open(&gates[0]);
    csched_lane_release(lane);
    wait_for_all();
    expect_ran(2);
    world_close();
}
MAIN(two_drains)

// The drain is about to end when the next operation arrives.
static void opens_gate(void *context, void *extra, csched_disposition disposition)
{
    in_lane(context, extra, disposition);
    gate_open(&gates[0]);
}

static void end_main(void)
{
    open_lane(1);
    csched_operation first = operation_with(0, opens_gate);
    world_explore_without_time();
    csched_check(csched_lane_submit(lane, &first) == CSCHED_OK, "submit");
    gate_pass(&gates[0]);
    must_submit(1);
    csched_lane_release(lane);
    wait_for_all();
    expect_ran(2);
    world_close();
}
MAIN(end)

// Two submissions, one after the other: each has its own drain.
static void again_main(void)
{
    open_lane(1);
    world_explore_without_time();
    must_submit(0);
    wait_for_all();
    must_submit(1);
    wait_for_all();
    csched_lane_release(lane);
    expect_ran(2);
    world_close();
}
MAIN(again)

// A lane that never runs dry lets other operations have the worker.
static void goes_on_in_lane(void *context, void *extra, csched_disposition disposition)
{
    if (gate_is_open(&gates[0])) {
        in_lane(context, extra, disposition);
    } else {
        csched_yield(); // otherwise the explorer would run no other thread
        csched_operation again = operation_with(number_of(context), goes_on_in_lane);
        csched_check(csched_lane_submit(lane, &again) == CSCHED_OK, "submit");
    }
}

static void opens(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[0]);
}

static void fair_main(void)
{
    open_lane(1);
    csched_operation first = operation_with(0, goes_on_in_lane);
    csched_check(csched_lane_submit(lane, &first) == CSCHED_OK, "submit");
    world_explore_without_time();
    submit(operation_with(1, opens));
    wait_for_all();
    csched_lane_release(lane);
    expect_ran(2);
    world_close();
}
MAIN(fair)

// A refused operation leaves nothing behind, at the latest after the lane is freed.
static void refused_main(void)
{
    open_lane(1);
    submit(operation(1)); // gives the thread its inbox
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    csched_operation what = operation(0);
    size_t before = explorer_allocated();
    csched_check(csched_lane_submit(lane, &what) == CSCHED_CLOSED, "accepted after the end");
    if (explorer_allocated() != before) {
        explorer_fail("what was refused stays in the lane (R2)");
    }
    for (int turn = 0; turn < 3; turn++) {
        csched_check(csched_lane_submit_surely(lane, &what, CSCHED_PRIORITY_INHERITED, scheduler) ==
                         CSCHED_CLOSED,
                     "accepted");
    }
    if (csched_completion_outstanding(counter) != 0) {
        explorer_fail("what was refused is outstanding (S6)");
    }
    csched_lane_release(lane);
    if (explorer_allocated() >= before) {
        explorer_fail("the lane was not freed (R1)");
    }
    world_close();
}
MAIN(refused)

// More than one turn: the drain queues another drain, which the other worker, by then the sentry, runs to
// completion meanwhile.
static void opens_and_waits(void *context, void *extra, csched_disposition disposition)
{
    in_lane(context, extra, disposition);
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
}

static void turn_main(void)
{
    open_lane(2);
    csched_operation first = operation_with(0, opens_and_waits);
    csched_check(csched_lane_submit(lane, &first) == CSCHED_OK, "submit");
    gate_pass(&gates[0]);
    must_submit(1);
    must_submit(2);
    submit(operation(8));
    explorer_settle(csched_site("settle"));
    gate_open(&gates[1]);
    world_explore();
    must_submit(3);
    csched_lane_release(lane);
    wait_for_all();
    expect_ran(4);
    world_close();
}
MAIN(turn)

// The scheduler closes: an accepted operation runs, a refused one does not.
static csched_status status;

static void submits_0(void) { status = submit_to_lane(0); }

static void closed_main(void)
{
    open_lane(1);
    int other = thread_start("submitter", submits_0);
    world_explore_without_time();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    thread_join(other);
    csched_lane_release(lane);
    if (times_run(0) != (status == CSCHED_OK)) {
        explorer_fail("the operation was %s, and ran %d times (S14)",
                      status == CSCHED_OK ? "accepted" : "refused", times_run(0));
    }
    if (csched_completion_outstanding(counter) != 0) {
        explorer_fail("an operation is still outstanding (S6)");
    }
    world_close();
}
MAIN(closed)

// A submission is refused and withdrawn while a body may still submit to the lane: the body's operation runs,
// the withdrawn one does not.
static void waits_and_submits_4(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra, (void)disposition;
    gate_pass(&gates[0]);
    must_submit(4);
}

static void withdraw(bool late)
{
    open_lane(1);
    submit(operation_with(8, waits_and_submits_4));
    explorer_settle(csched_site("settle"));
    int other = thread_start("submitter", submits_0);
    world_explore_without_time();
    csched_scheduler_close(scheduler);
    if (late) {
        thread_join(other);
    }
    gate_open(&gates[0]);
    if (!late) {
        thread_join(other);
    }
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    csched_lane_release(lane);
    if (times_run(0) != (status == CSCHED_OK) || times_run(4) != 1) {
        explorer_fail("the operation was %s, and ran %d times, the body's ran %d times (S14)",
                      status == CSCHED_OK ? "accepted" : "refused", times_run(0), times_run(4));
    }
    world_close();
}

static void withdrawn_main(void) { withdraw(true); }
MAIN(withdrawn)

// The same, but the body's drain may take the other submission before it is withdrawn: then it was accepted.
static void taken_main(void) { withdraw(false); }
MAIN(taken)

// Threads stop for ever: before, during and after their submissions.
static void submits_0_freely(void) { must_submit(0); }

static void free_main(void)
{
    open_lane(2);
    int one = thread_start("submitter", submits_0_freely);
    int other = thread_start("submitter", submits_4);
    world_explore();
    explorer_settle(csched_site("settle"));
    must_submit(8);
    gate_open(&gates[3]);
    if (!explorer_freezes()) {
        wait_for_all();
        expect_ran(1);
        thread_join(one);
        thread_join(other);
        csched_lane_release(lane);
        world_close();
    }
}

// A stopped worker blocks the lane that it drains; a stopped submitter blocks nothing.
static void free_check_frozen(int frozen)
{
    bool is_worker = frozen == 1 || frozen == 2;
    for (int number = 0; !is_worker && number < 2; number++) {
        if (frozen != 3 + number && times_run(4 * number) != 1) {
            explorer_fail("operation %d was run %d times, and no worker had stopped (S2)", 4 * number,
                          times_run(4 * number));
        }
    }
    if (!is_worker && gates[3].open != 0 && times_run(8) != 1) {
        explorer_fail("what came after a thread had stopped was run %d times (S2)", times_run(8));
    }
}
MAIN(free)

const explorer_program lane_scenarios[] = {
    SCENARIO("lane", two, "S1 S9", "two threads submit to a lane of two workers"),
    SCENARIO("lane", two_drains, "S9", "two drains begin at once, as one of them hurries"),
    SCENARIO("lane", end, "S3 S9", "a submission while the drain ends"),
    SCENARIO("lane", again, "S3 S9", "one submission after the other"),
    SCENARIO("lane", fair, "S11", "a lane that never runs dry lets others have the worker"),
    SCENARIO("lane", refused, "R2 S14", "submissions after the end"),
    SCENARIO("lane", turn, "S1 S9", "a drain lets others have the worker"),
    SCENARIO("lane", closed, "S6 S14", "a submission while the scheduler closes"),
    SCENARIO("lane", withdrawn, "S6 S14", "a submission is withdrawn, and the lane goes on"),
    SCENARIO("lane", taken, "S6 S14", "a submission is withdrawn, or taken by another one's drain"),
    SCENARIO("lane", free, "S2 S9", "any thread stops for ever", .check_frozen = free_check_frozen),
};
const size_t lane_scenario_count = sizeof lane_scenarios / sizeof lane_scenarios[0];
