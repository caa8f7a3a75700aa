// join_scenarios.c - fork and join: the second branch is taken back, or by a thief, and the joiner sleeps.

#include "scenario.h"

#include "cscheduler/completion.h"
#include "cscheduler/join.h"

static csched_scheduler *scheduler;
static csched_completion *counter;
static int written[4]; // plain

static void create(uint32_t workers)
{
    for (int index = 0; index < 4; index++) {
        written[index] = 0;
    }
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = workers;
    csched_check(csched_scheduler_create(&configuration, &scheduler) == CSCHED_OK, "create");
    counter = csched_completion_create();
}

static void create_one(void) { create(1); }
static void create_two(void) { create(2); }

static void destroy(void)
{
    csched_completion_release(counter);
    csched_scheduler_destroy(scheduler);
}

static void check_nothing(void) {}

static void writes(void *context) { written[(intptr_t)context]++; }

// Long enough for the joiner to fall asleep.
static void writes_slowly(void *context)
{
    for (int count = 0; count < 40; count++) {
        csched_yield();
    }
    writes(context);
}

static csched_branch branch(void (*function)(void *context), int number)
{
    return (csched_branch){.function = function, .context = (void *)(intptr_t)number};
}

static void expect(int number) { csched_check(written[number] == 1, "a branch was not joined"); }

// A join in the first branch: with two operations in the deque a thief comes, and takes the older one.
static void joins_again(void *context)
{
    csched_check(csched_join(scheduler, branch(writes, 0), branch(writes, 3)) == CSCHED_OK, "join");
    expect(0);
    expect(3);
    writes(context);
}

static void joins(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra, (void)disposition;
    csched_check(csched_join(scheduler, branch(joins_again, 2), branch(writes_slowly, 1)) == CSCHED_OK,
                 "join");
    expect(1);
    expect(2);
}

// A join inside an operation: the other worker may take the second branch.
static void inside(int index)
{
    (void)index;
    csched_operation operation = {.run = joins, .counter = counter};
    csched_check(csched_submit(scheduler, &operation) == CSCHED_OK, "submit");
    csched_check(csched_completion_wait(counter, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    expect(2);
    destroy();
}

// A join from outside: the caller sleeps until both branches are done.
static void outside(int index)
{
    (void)index;
    csched_check(csched_join(scheduler, branch(writes, 0), branch(writes, 1)) == CSCHED_OK, "join");
    expect(0);
    expect(1);
    destroy();
}

const relacy_scenario join_scenarios[] = {
    {"join-inside", "the second branch is taken back, or by a thief", 1, 2, create_two, inside,
     check_nothing},
    {"join-outside", "a join from a thread that is no worker", 1, 2, create_one, outside, check_nothing},
    {0},
};
