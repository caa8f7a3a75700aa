// lane_scenarios.c - a mailbox that one drain at a time empties.

#include "scenario.h"

#include "cscheduler/completion.h"
#include "cscheduler/lane.h"
#include "cscheduler/scheduler.h"

static csched_scheduler *scheduler;
static csched_completion *counter;
static csched_lane *lane;
static int ran;       // plain: two drains at once race
static int newest[2]; // of each submitter

static void create(uint32_t workers)
{
    ran = 0;
    newest[0] = newest[1] = -1;
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = workers;
    csched_check(csched_scheduler_create(&configuration, &scheduler) == CSCHED_OK, "create");
    counter = csched_completion_create();
    lane = csched_lane_create(scheduler);
}

static void create_one(void) { create(1); }
static void create_two(void) { create(2); }

static void body(void *context, void *extra, csched_disposition disposition)
{
    csched_check(disposition == CSCHED_RUN, "cancelled");
    int submitter = (int)(intptr_t)context;
    int number = (int)(intptr_t)extra;
    csched_check(number == newest[submitter] + 1, "out of order");
    newest[submitter] = number;
    ran++;
}

static void submit(int submitter, int number)
{
    csched_operation operation = {.run = body,
                                  .context = (void *)(intptr_t)submitter,
                                  .extra = (void *)(intptr_t)number,
                                  .counter = counter};
    csched_check(csched_lane_submit(lane, &operation) == CSCHED_OK, "submit");
}

static void finish(int count)
{
    csched_check(csched_completion_wait(counter, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    csched_check(ran == count, "lost, or run twice");
    csched_lane_release(lane);
    csched_completion_release(counter);
    csched_scheduler_destroy(scheduler);
}

static void check_nothing(void) {}

// One thread, two workers: two drains may meet.
static void order(int index)
{
    (void)index;
    submit(0, 0);
    submit(0, 1);
    submit(0, 2);
    finish(3);
}

// Two threads push at once, and when the drain is about to end.
static void two(int index)
{
    submit(index, 0);
    if (index > 0) {
        others_done();
        return;
    }
    submit(index, 1);
    others_wait(1);
    finish(3);
}

const relacy_scenario lane_scenarios[] = {
    {"lane-order", "three operations of one thread, two workers", 1, 2, create_two, order, check_nothing},
    {"lane-two", "two threads push, and the drain is about to end", 2, 2, create_one, two, check_nothing},
    {0},
};
