// scheduler_scenarios.c - the whole scheduler: parking, counters, the end.

#include "scenario.h"

#include "cscheduler/completion.h"
#include "cscheduler/scheduler.h"

static csched_scheduler *scheduler;
static csched_completion *counter;
static int ran[ITEMS_MOST];      // plain
static int accepted[ITEMS_MOST]; // no bool: races are looked for by 4 bytes

static void create(uint32_t workers)
{
    for (int number = 0; number < ITEMS_MOST; number++) {
        ran[number] = 0;
        accepted[number] = 0;
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

static void body(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran[(intptr_t)context] += disposition == CSCHED_RUN ? 1 : 100;
}

static void submit(int number)
{
    csched_operation operation = {.run = body, .context = (void *)(intptr_t)number, .counter = counter};
    accepted[number] = csched_submit(scheduler, &operation) == CSCHED_OK;
}

static void wait(void)
{
    csched_check(csched_completion_wait(counter, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
}

static void expect_ran(int count)
{
    for (int number = 0; number < count; number++) {
        if (ran[number] != 1) {
            relacy_fail("operation %d ran %d times", number, ran[number]);
        }
    }
}

static void check_nothing(void) {}

// One operation, one worker, one waiter.
static void one(int index)
{
    (void)index;
    submit(0);
    wait();
    expect_ran(1);
    destroy();
}

// The second may come when the first worker is about to sleep.
static void two(int index)
{
    (void)index;
    submit(0);
    submit(1);
    wait();
    expect_ran(2);
    destroy();
}

// Two threads submit; the second one is gone before the end.
static void threads(int index)
{
    submit(index);
    if (index > 0) {
        others_done();
        return;
    }
    others_wait(1);
    wait();
    expect_ran(2);
    destroy();
}

// A body submits: to its own deque, from where the other worker may steal.
static void submits(void *context, void *extra, csched_disposition disposition)
{
    submit(1);
    submit(2);
    body(context, extra, disposition);
}

static void local(int index)
{
    (void)index;
    csched_operation operation = {.run = submits, .context = (void *)0, .counter = counter};
    csched_check(csched_submit(scheduler, &operation) == CSCHED_OK, "submit");
    wait();
    expect_ran(3);
    destroy();
}

// A shutdown that cancels meets a submission: what was accepted is told one of the two, once.
static void shutdown(int index)
{
    if (index > 0) {
        submit(1);
        others_done();
        return;
    }
    submit(0);
    csched_check(csched_scheduler_shutdown(scheduler, 0) == CSCHED_OK, "shutdown");
    others_wait(1);
    for (int number = 0; number < 2; number++) {
        int times = ran[number];
        if (accepted[number] ? times != 1 && times != 100 : times != 0) {
            relacy_fail("operation %d was told %d", number, times);
        }
    }
    wait();
    destroy();
}

// A wait inside an operation helps, or sleeps until the other worker has done it.
static csched_completion *inner;

static void waits(void *context, void *extra, csched_disposition disposition)
{
    inner = csched_completion_create();
    csched_operation operation = {.run = body, .context = (void *)1, .counter = inner};
    csched_check(csched_submit(scheduler, &operation) == CSCHED_OK, "submit");
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    csched_check(ran[1] == 1, "not waited for");
    csched_completion_release(inner);
    body(context, extra, disposition);
}

static void nested(int index)
{
    (void)index;
    csched_operation operation = {.run = waits, .context = (void *)0, .counter = counter};
    csched_check(csched_submit(scheduler, &operation) == CSCHED_OK, "submit");
    wait();
    expect_ran(2);
    destroy();
}

const relacy_scenario scheduler_scenarios[] = {
    {"scheduler-one", "one operation, one worker, one waiter", 1, 2, create_one, one, check_nothing},
    {"scheduler-two", "two operations, two workers", 1, 2, create_two, two, check_nothing},
    {"scheduler-threads", "two threads submit, one worker", 2, 2, create_one, threads, check_nothing},
    {"scheduler-local", "an operation submits two, and another worker may steal", 1, 2, create_two, local,
     check_nothing},
    {"scheduler-nested", "a wait inside an operation", 1, 2, create_two, nested, check_nothing},
    {"scheduler-shutdown", "a shutdown that cancels meets a submission", 2, 2, create_one, shutdown,
     check_nothing},
    {0},
};
