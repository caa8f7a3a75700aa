// join_scenarios.c - forks and ranges: parts of a body that other workers may take.

#include "world.h"

#include "scenarios.h"

static int branches[2]; // plain: written by the branches, read after the join
static csched_status status;

static void branch(void *context)
{
    int number = (int)(intptr_t)context;
    explorer_plain_write(csched_site("branch"), &branches[number]);
    branches[number]++;
}

static void expect_branches(void)
{
    for (int number = 0; number < 2; number++) {
        explorer_plain_read(csched_site("branch"), &branches[number]);
        if (branches[number] != 1) {
            explorer_fail("branch %d was run %d times (S1)", number, branches[number]);
        }
    }
}

static csched_branch branch_of(void (*function)(void *), int number)
{
    return (csched_branch){.function = function, .context = (void *)(intptr_t)number};
}

static void joins_with(void (*first)(void *), void (*second)(void *))
{
    csched_check(csched_join(scheduler, branch_of(first, 0), branch_of(second, 1)) == CSCHED_OK, "join");
    expect_branches();
}

static void begin(uint32_t workers)
{
    branches[0] = branches[1] = 0;
    world_open_workers(workers);
}

static void run_joining(csched_function body)
{
    world_explore();
    submit(operation_with(0, body));
    wait_for_all();
    expect_ran(1);
    world_close();
}

// The second branch is taken back, or stolen.
static void joins(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(branch, branch);
    ran(number_of(context), disposition);
}

static void fork_main(void)
{
    begin(2);
    run_joining(joins);
}
MAIN(fork)

// The first branch waits for the second: another worker takes it.
static void passes_gate(void *context)
{
    gate_pass(&gates[0]);
    branch(context);
}

static void opens_gate(void *context)
{
    branch(context);
    gate_open(&gates[0]);
}

static void joins_in_need(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(passes_gate, opens_gate);
    ran(number_of(context), disposition);
}

static void taken_main(void)
{
    begin(2);
    run_joining(joins_in_need);
}
MAIN(taken)

// The second branch is stolen, and long: the joiner falls asleep, and is woken.
static void tells_and_waits(void *context)
{
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    branch(context);
}

static void joins_a_long_one(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(passes_gate, tells_and_waits);
    ran(number_of(context), disposition);
}

static void long_main(void)
{
    begin(2);
    submit(operation_with(0, joins_a_long_one));
    gate_pass(&gates[0]);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[1]);
    wait_for_all();
    expect_ran(1);
    world_close();
}
MAIN(long)

// The same, explored from before the joiner sleeps.
static void long_awake_main(void)
{
    begin(2);
    submit(operation_with(0, joins_a_long_one));
    gate_pass(&gates[0]);
    world_explore_without_time();
    gate_open(&gates[1]);
    wait_for_all();
    expect_ran(1);
    world_close();
}
MAIN(long_awake)

// The first branch submits: the second lies below that operation, and is dug out.
static void submits(void *context)
{
    submit(operation(1));
    submit(operation(2));
    branch(context);
}

static void joins_below(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(submits, branch);
    ran(number_of(context), disposition);
}

static void below_main(void)
{
    begin(2);
    world_explore();
    submit(operation_with(0, joins_below));
    wait_for_all();
    expect_ran(3);
    world_close();
}
MAIN(below)

// Below so many operations that digging is not worthwhile, and below a few.
static void submits_three(void *context)
{
    for (int number = 1; number <= 3; number++) {
        submit(operation(number));
    }
    branch(context);
}

static void submits_six(void *context)
{
    for (int number = 4; number <= 9; number++) {
        submit(operation(number));
    }
    branch(context);
}

static void joins_deep_below(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(submits_three, branch);
    branches[0] = branches[1] = 0;
    joins_with(submits_six, branch);
    ran(number_of(context), disposition);
}

static void deep_below_main(void)
{
    begin(1);
    world_explore();
    submit(operation_with(0, joins_deep_below));
    wait_for_all();
    expect_ran(10);
    world_close();
}
MAIN(deep_below)

// Below so many operations that digging is not worthwhile, and there is no memory to move them to the inbox:
// another worker comes.
static void submits_five_to_the_end(void *context)
{
    for (int number = 1; number <= 5; number++) {
        submit(operation(number));
    }
    explorer_memory_ends(true);
    branch(context);
}

static void joins_without_memory(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(submits_five_to_the_end, branch);
    explorer_memory_ends(false);
    ran(number_of(context), disposition);
}

static void below_memory_main(void)
{
    begin(2);
    world_explore();
    submit(operation_with(0, joins_without_memory));
    wait_for_all();
    expect_ran(6);
    world_close();
}
MAIN(below_memory)

// A join inside the first branch of another join: the inner second branch is stolen, and the outer one does
// not belong to the inner join.
static int outer_branch; // plain

static void writes_outer(void *context)
{
    (void)context;
    explorer_plain_write(csched_site("branch"), &outer_branch);
    outer_branch++;
}

static void joins_inside(void *context)
{
    (void)context;
    joins_with(passes_gate, opens_gate);
}

static void joins_around(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_check(csched_join(scheduler, branch_of(joins_inside, 0), branch_of(writes_outer, 1)) == CSCHED_OK,
                 "join");
    explorer_plain_read(csched_site("branch"), &outer_branch);
    if (outer_branch != 1) {
        explorer_fail("the outer branch was run %d times (S1)", outer_branch);
    }
    ran(number_of(context), disposition);
}

static void nested_main(void)
{
    outer_branch = 0;
    begin(2);
    run_joining(joins_around);
}
MAIN(nested)

// Leapfrogging: a worker that waits for a branch runs operations that the branch has forked (J4).
static void passes_gate_1(void *context)
{
    (void)context;
    gate_pass(&gates[1]);
}

static void tells_and_passes_gate_1(void *context)
{
    gate_open(&gates[0]); // from here on, the joiner finds the other branch
    passes_gate_1(context);
}

static void writes_outer_and_opens(void *context)
{
    writes_outer(context);
    gate_open(&gates[1]);
}

static void forks_inside(void *context)
{
    csched_check(csched_join(scheduler, branch_of(tells_and_passes_gate_1, 0),
                             branch_of(writes_outer_and_opens, 1)) == CSCHED_OK,
                 "join");
    branch(context);
}

static void joins_what_forks(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(passes_gate, forks_inside);
    ran(number_of(context), disposition);
}

static void leapfrog_main(void)
{
    outer_branch = 0;
    begin(2);
    run_joining(joins_what_forks);
}
MAIN(leapfrog)

// A joiner runs no branch that another body has forked.
static int joiner; // plain: the thread that waits, or -1
static int other_branch;

static void passes_gate_and_tells(void *context)
{
    gate_pass(&gates[0]);
    gate_pass(&gates[2]);
    joiner = explorer_self();
    branch(context);
}

static void is_no_part(void *context)
{
    (void)context;
    if (joiner == explorer_self()) {
        explorer_fail("a branch of another body ran below a join (J4)");
    }
    explorer_plain_write(csched_site("branch"), &other_branch);
    other_branch++;
}

static void joins_a_long_one_beside(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    joins_with(passes_gate_and_tells, tells_and_waits);
    joiner = -1;
    ran(number_of(context), disposition);
}

static void tells_beside(void *context)
{
    gate_open(&gates[2]);
    passes_gate_1(context);
}

static void forks_beside(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_check(csched_join(scheduler, branch_of(tells_beside, 0), branch_of(is_no_part, 1)) == CSCHED_OK,
                 "join");
    ran(number_of(context), disposition);
}

static void strangers_main(void)
{
    joiner = -1;
    other_branch = 0;
    begin(3);
    submit(operation_with(0, joins_a_long_one_beside));
    gate_pass(&gates[0]);
    submit(operation_with(1, forks_beside));
    gate_pass(&gates[2]);
    world_explore();
    give_way();
    gate_open(&gates[1]);
    wait_for_all();
    expect_ran(2);
    if (other_branch != 1) {
        explorer_fail("the branch was run %d times (S1)", other_branch);
    }
    world_close();
}
MAIN(strangers)

// An inner branch lies below more operations than fit into a batch, and the outer branch below that.
static void joins_deep_inside(void *context)
{
    (void)context;
    joins_with(submits_six, branch);
}

static void joins_deep_around(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_check(csched_join(scheduler, branch_of(joins_deep_inside, 0), branch_of(writes_outer, 1)) ==
                     CSCHED_OK,
                 "join");
    if (outer_branch != 1) {
        explorer_fail("the outer branch was run %d times (S1)", outer_branch);
    }
    ran(number_of(context), disposition);
}

static void deep_around_main(void)
{
    outer_branch = 0;
    begin(1);
    world_explore();
    submit(operation_with(0, joins_deep_around));
    wait_for_all();
    expect_ran(1);
    for (int number = 4; number <= 9; number++) {
        if (times_run(number) != 1) {
            explorer_fail("operation %d was run %d times (S1)", number, times_run(number));
        }
    }
    world_close();
}
MAIN(deep_around)

// Two forks in one body, with other operations above each: when these are moved to the inbox, the older fork
// does not go with them.
static void forks_twice(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_fork forks[2];
    for (int number = 0; number < 2; number++) {
        csched_check(csched_fork_begin(&forks[number], branch_of(branch, number)), "fork");
        for (int more = 1; more <= 3; more++) {
            submit(operation(3 * number + more));
        }
    }
    for (int number = 1; number >= 0; number--) {
        if (csched_fork_end(&forks[number])) {
            branch((void *)(intptr_t)number);
        }
    }
    expect_branches();
    ran(number_of(context), disposition);
}

static void two_forks_main(void)
{
    begin(1);
    world_explore();
    submit(operation_with(0, forks_twice));
    wait_for_all();
    expect_ran(7);
    world_close();
}
MAIN(two_forks)

// From a thread that is not a worker.
static void outside_main(void)
{
    begin(1);
    world_explore_without_time();
    joins_with(branch, branch);
    world_close();
}
MAIN(outside)

// The joiner sleeps while its branches take their time.
static void branch_behind_gate(void *context);
static void joins_behind_gate(void) { joins_with(branch_behind_gate, branch_behind_gate); }

static void outside_asleep_main(void)
{
    begin(1);
    int other = thread_start("joiner", joins_behind_gate);
    world_explore_without_time();
    explorer_settle(csched_site("settle")); // happens when no thread can continue
    gate_open(&gates[0]);
    thread_join(other);
    world_close();
}
MAIN(outside_asleep)

// Concurrently with a shutdown: both branches run, or neither.
static void joins_outside(void)
{
    status = csched_join(scheduler, branch_of(branch, 0), branch_of(branch, 1));
}

static void closed_main(void)
{
    begin(1);
    int other = thread_start("joiner", joins_outside);
    world_explore_without_time();
    csched_check(csched_scheduler_shutdown(scheduler, 0) == CSCHED_OK, "shutdown");
    explorer_calm(true);
    thread_join(other);
    int wanted = status == CSCHED_OK;
    if (branches[0] != wanted || branches[1] != wanted) {
        explorer_fail("the join was %s, and the branches were run %d and %d times (S14)",
                      wanted ? "accepted" : "refused", branches[0], branches[1]);
    }
    world_close();
}
MAIN(closed)

// A worker joins on another scheduler, and its own scheduler is destroyed as soon as the join is over, while
// the thread that ran the branches is still about to wake it.
static csched_scheduler *elsewhere;

static void branch_behind_gate(void *context)
{
    gate_pass(&gates[0]);
    branch(context);
}

static void joins_elsewhere(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_check(csched_join(elsewhere, branch_of(branch_behind_gate, 0), branch_of(branch, 1)) == CSCHED_OK,
                 "join");
    expect_branches();
    ran(number_of(context), disposition);
}

static void elsewhere_main(void)
{
    csched_configuration configuration = world_configuration();
    configuration.workers = 1;
    csched_check(csched_scheduler_create(&configuration, &elsewhere) == CSCHED_OK, "create");
    begin(1);
    submit(operation_with(0, joins_elsewhere));
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[0]);
    give_way();
    submit(operation(1)); // wakes the joiner, too
    wait_for_all();
    expect_ran(2);
    csched_completion_release(counter);
    csched_scheduler_destroy(scheduler);
    explorer_calm(true);
    csched_scheduler_destroy(elsewhere);
}
MAIN(elsewhere)

// A range: each index once, `finally` once, after all of them.
static int indices[4]; // plain
static int finished;   // plain

static void index_body(void *context, uint64_t index)
{
    (void)context;
    explorer_plain_write(csched_site("index"), &indices[index]);
    indices[index]++;
}

static void finally(void *context, bool complete)
{
    (void)context;
    for (int index = 0; index < 4; index++) {
        explorer_plain_read(csched_site("index"), &indices[index]);
        if (indices[index] != 1) {
            explorer_fail("index %d was called %d times (S1)", index, indices[index]);
        }
    }
    finished += complete ? 1 : 100;
}

static void range_main(void)
{
    for (int index = 0; index < 4; index++) {
        indices[index] = 0;
    }
    finished = 0;
    begin(2);
    world_explore();
    csched_check(csched_submit_range(scheduler, 4, 1, index_body, finally, NULL, counter) == CSCHED_OK,
                 "range");
    wait_for_all();
    world_close();
}

static void range_check(void)
{
    if (finished != 1) {
        explorer_fail("the range ended %d times (S1)", finished);
    }
}
MAIN(range)

const explorer_program join_scenarios[] = {
    SCENARIO("join", fork, "S1 S4", "the second branch is taken back, or stolen"),
    SCENARIO("join", taken, "S1 S12", "the first branch waits for the second"),
    SCENARIO("join", long, "S3 S16", "the joiner sleeps while the second branch is run"),
    SCENARIO("join", long_awake, "S3 S16", "the joiner falls asleep while the second branch is run"),
    SCENARIO("join", below, "S1 S16", "the second branch lies below others"),
    SCENARIO("join", deep_below, "S1 S16", "the second branch lies below many"),
    SCENARIO("join", below_memory, "S1 S3", "the second branch lies below many, and there is no memory"),
    SCENARIO("join", nested, "S1 S16", "a join inside the first branch of another one"),
    SCENARIO("join", leapfrog, "S3 S16", "a joiner runs what the branch it waits for has forked"),
    SCENARIO("join", strangers, "S16", "a joiner runs no branch of another body"),
    SCENARIO("join", deep_around, "S1 S16", "an inner branch lies below many, and an outer one below that"),
    SCENARIO("join", two_forks, "S1 S16", "two forks, and others above each"),
    SCENARIO("join", outside, "S1 S5", "a thread that is no worker joins"),
    SCENARIO("join", outside_asleep, "S12 S15", "a join from outside sleeps meanwhile"),
    SCENARIO("join", closed, "S13 S14", "a join beside a shutdown that cancels"),
    SCENARIO("join", elsewhere, "R3 S4", "a worker joins on another scheduler, and goes"),
    SCENARIO("join", range, "S1 S4", "a range in pieces", .check = range_check),
};
const size_t join_scenario_count = sizeof join_scenarios / sizeof join_scenarios[0];
