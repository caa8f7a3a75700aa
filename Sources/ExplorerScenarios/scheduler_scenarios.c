// scheduler_scenarios.c - the whole scheduler: parking, counters, the end.

#include "scenario.h"

#include <string.h>

#include "cscheduler/completion.h"
#include "cscheduler/scheduler.h"
#include "scenarios.h"

static csched_scheduler *scheduler;
static csched_completion *counter;
static int ran[ITEMS_MOST]; // plain

static void begin(void)
{
    reclaim_model_begin();
    scheduler_model_begin();
    pthread_model_begin();
    items_begin();
    memset(ran, 0, sizeof ran);
}

static void create(uint32_t workers)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = workers;
    csched_check(csched_scheduler_create(&configuration, &scheduler) == CSCHED_OK, "create");
    counter = csched_completion_create();
}

static void destroy(void)
{
    csched_completion_release(counter);
    csched_scheduler_destroy(scheduler);
}

static void body(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    int number = (int)(intptr_t)context;
    explorer_plain_write(csched_site("ran"), &ran[number]);
    ran[number] += disposition == CSCHED_RUN ? 1 : 100;
}

static void submit(int number)
{
    csched_operation operation = {.run = body, .context = (void *)(intptr_t)number, .counter = counter};
    csched_check(csched_submit(scheduler, &operation) == CSCHED_OK, "submit");
}

static void expect_ran(int count)
{
    for (int number = 0; number < count; number++) {
        explorer_plain_read(csched_site("ran"), &ran[number]);
        if (ran[number] != 1) {
            explorer_fail("operation %d ran %d times", number, ran[number]);
        }
    }
}

static void check_nothing(void) {}

// One operation, one worker, one waiter.
static void one_main(void *unused)
{
    (void)unused;
    create(1);
    submit(0);
    csched_check(csched_completion_wait(counter, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    expect_ran(1);
    destroy();
    pthread_model_thread_ends();
}

static void one_setup(void)
{
    begin();
    (void)explorer_spawn("main", one_main, NULL);
}

// Two submissions, two workers: the second may come when the first worker is about to sleep.
static void two_main(void *unused)
{
    (void)unused;
    create(2);
    submit(0);
    submit(1);
    csched_check(csched_completion_wait(counter, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    expect_ran(2);
    destroy();
    pthread_model_thread_ends();
}

static void two_setup(void)
{
    begin();
    (void)explorer_spawn("main", two_main, NULL);
}

const explorer_program scheduler_scenarios[] = {
    {.name = "scheduler-one",
     .sentence = "one operation, one worker, one waiter",
     .setup = one_setup,
     .check = check_nothing},
    {.name = "scheduler-two",
     .sentence = "two operations, two workers",
     .setup = two_setup,
     .check = check_nothing},
};
const size_t scheduler_scenario_count = sizeof scheduler_scenarios / sizeof scheduler_scenarios[0];
