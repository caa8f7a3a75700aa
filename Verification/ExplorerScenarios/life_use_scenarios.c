// life_use_scenarios.c - capacity, fairness, memory that runs out, threads that come and go.

#include "life.h"

#include "scenarios.h"
#include "tuning.h"

// MARK: Capacity

static void full_main(void)
{
    world_open_with_places(1);
    csched_completion_enter(counter, 1);
    int one = thread_start("submitter", submits_operation_0);
    int other = thread_start("submitter", submits_operation_1);
    world_explore_without_time();
    thread_join(one);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(2);
}
MAIN(full)

// Two callers find the scheduler full, and run their own operations.
static void submits_and_runs_2(void) { submit(operation(2)); }

static void in_callers_main(void)
{
    csched_configuration configuration = world_configuration();
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
    wait_for_all();
    explorer_calm(true);
    explorer_settle(csched_site("settle"));
    if (csched_scheduler_statistics(scheduler).executed != 4) {
        explorer_fail("what callers ran is not counted (S6)");
    }
    world_end(4);
}
MAIN(in_callers)

// The scheduler is shut down while a submitter waits for room.
static void full_and_closed_main(void)
{
    world_open_with_places(1);
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

// Operations that resubmit themselves endlessly: operations from outside still run, and submitters still get
// room.
static void goes_on_until_open(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    if (!gate_is_open(&gates[0])) {
        csched_yield(); // otherwise the explorer would run no other thread
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
    world_open_with_places(1);
    submit(operation_with(8, goes_on_until_open));
    world_explore_without_time();
    submit(operation(0));
    submit(operation_with(1, opens_gate_and_runs));
    world_end(2);
}
MAIN(fair)

// The same from inside: an older operation in the worker's own deque still runs.
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
    world_end(1);
}
MAIN(fair_inside)

// Undisturbed (no other thread runs meanwhile): operations so long that each is followed by a fair turn.
static void takes_long(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    begins_in_turn(number_of(context));
    take_long();
}

static void fair_long_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    for (int number = 0; number < IN_TURN; number++) {
        submit(operation_with(number, takes_long));
    }
    csched_scheduler_resume(scheduler);
    world_end(0);
}
MAIN(fair_long)

// Undisturbed: there is always an operation in the inbox, and each turn is a fair one; operations in the
// worker's own deque are run nevertheless, including the older ones.
enum { FLOOD_BEFORE = 8, FLOOD_MOST = 24 };
static int flood;
static int rounds;

static void floods(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    take_long();
    if (gate_is_open(&gates[0])) {
        return;
    }
    if (++flood > FLOOD_MOST) {
        explorer_fail("%d operations have begun, and not the oldest of the worker's own (X4)", flood);
    }
    submit_job(flood == FLOOD_BEFORE ? operation_with(0, opens_gate_and_runs)
                                     : operation_with(1, does_nothing));
    submit_job(operation_with(number_of(context), floods));
}

static void fair_flooded_main(void)
{
    flood = 0;
    world_open_workers(1);
    submit(operation_with(8, floods));
    world_end(1);
}
MAIN(fair_flooded)

// Undisturbed: a tree of long operations is run from its newest nodes, and its oldest also get turns.
enum { NODES = 6 };
static uint32_t nodes_begun;

static void node(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    nodes_begun |= UINT32_C(1) << number_of(context);
    if ((nodes_begun & 2) != 0 && (nodes_begun & UINT32_C(1) << (NODES - 2)) == 0) {
        explorer_fail("the two oldest have begun, and not the two newest (X4)");
    }
    take_long();
}

static void has_nodes(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra, (void)disposition;
    for (int number = 0; number < NODES; number++) {
        submit(operation_with(number, node));
    }
}

static void fair_newest_main(void)
{
    nodes_begun = 0;
    world_open_workers(1);
    submit(operation_with(8, has_nodes));
    world_end(0);
}
MAIN(fair_newest)

// Undisturbed: after many short operations the worker has slept, and the next operations are long.
static void is_long_until_open(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    if (gate_is_open(&gates[0])) {
        return;
    }
    if (rounds++ > CSCHED_FAIR_FIRST) {
        explorer_fail("one from outside waits for %d operations of a worker that has just begun (X4)",
                      rounds);
    }
    submit_job(operation_with(number_of(context), is_long_until_open));
    if (rounds == 1) {
        submit_job(operation_with(0, opens_gate_and_runs)); // goes to the inbox
    }
}

enum { SHORT_ONES = CSCHED_FAIR_FIRST + CSCHED_FAIR_MOST - 1 };

static void fair_after_sleep_main(void)
{
    rounds = 0;
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    for (int number = 0; number < SHORT_ONES; number++) {
        submit(operation_with(1, does_nothing));
    }
    csched_scheduler_resume(scheduler);
    explorer_settle(csched_site("settle"));
    submit(operation_with(8, is_long_until_open));
    world_end(1);
}
MAIN(fair_after_sleep)

// Memory runs out somewhere: refused operations are not run, accepted ones are, and no place is lost.
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
    world_open_with_places(1);
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

// MARK: Threads

// A thread has submitted and ended: its inbox is unlisted while another thread shuts the scheduler down.
static void churn_and_close_main(void)
{
    world_open_workers(1);
    csched_scheduler_suspend(scheduler);
    int one = thread_start("submitter", submits_operation_0);
    thread_join(one);
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    world_end(1);
}
MAIN(churn_and_close)

// Threads arrive, submit and end, one after another: each inbox is emptied, and freed.
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
    world_end(2);
}
MAIN(churn)

// The scheduler is released on its own worker.
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
    gate_open(&gates[0]); // only the worker uses the scheduler from now on
    wait_for_all();
    expect_ran(1);
    explorer_calm(true);
    csched_completion_release(counter);
}
MAIN(destroy_later)

const explorer_program life_use_scenarios[] = {
    SCENARIO("life", full, "K1 S3", "two threads want the one place of the scheduler"),
    SCENARIO("life", in_callers, "S1 S6", "two callers run what there is no room for"),
    SCENARIO("life", full_and_closed, "S3 S13", "a shutdown while a thread waits for room"),
    SCENARIO("life", fair, "S11 S3", "operations that submit themselves, and others from outside"),
    SCENARIO("life", fair_inside, "S11", "operations that submit themselves, and an older one"),
    SCENARIO("life", fair_long, "S11", "long operations from outside"),
    SCENARIO("life", fair_flooded, "S11", "the worker's own operations beside an inbox that is never empty"),
    SCENARIO("life", fair_newest, "S11", "a tree of long operations"),
    SCENARIO("life", fair_after_sleep, "S11", "operations of a worker that has slept, and one from outside"),
    SCENARIO("life", memory, "S1 S6", "memory runs out", .allocations_fail = true),
    SCENARIO("life", churn_and_close, "R3 S13",
             "a thread that has submitted has ended, and the scheduler ends"),
    SCENARIO("life", churn, "R1 S1", "threads come, submit and end"),
    SCENARIO("life", destroy_later, "R1 S13", "a scheduler is given up on its own worker"),
};
const size_t life_use_scenario_count = sizeof life_use_scenarios / sizeof life_use_scenarios[0];
