// life_observe_scenarios.c - observers are set, replaced and released, and submit.

#include "life.h"

#include <string.h>

#include "reclaim.h"
#include "scenarios.h"

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

// An observer that is notified that its worker falls asleep submits an operation, while another worker is
// the sentry: it is run without waiting for the sentry's check.
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
    world_end(3);
}
MAIN(observer_submits)

// Workers that are woken for the end report that, and operations submitted then are run.
static bool woken[2]; // each is used by one worker

static void submits_as_it_is_woken(void *context, csched_event event, uint32_t worker)
{
    (void)context;
    if (event == CSCHED_WORKER_UNPARKED && gate_is_open(&gates[1]) && !woken[worker]) {
        woken[worker] = true;
        for (int number = (int)worker; number < 4; number += 2) { // the second one goes to the inbox (U4)
            submit_job(operation(number));
        }
    }
}

static void observer_submits_at_the_end_main(void)
{
    woken[0] = woken[1] = false;
    world_open_workers(2);
    csched_observer observer = {.notify = submits_as_it_is_woken};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    explorer_settle(csched_site("settle"));
    gate_open(&gates[1]);
    world_explore();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    for (int number = 0; number < 4; number++) {
        if (times_run(number) != woken[number % 2]) {
            explorer_fail("what worker %d submitted as it was woken was run %d times (S1)", number % 2,
                          times_run(number));
        }
    }
    world_close();
}
MAIN(observer_submits_at_the_end)

// Two observers are set at the same time, while two workers call the previous one.
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

// Another scheduler's reader holds back retired memory. If an observer was ever set, the end waits for that
// reader.
static void reads_for_a_while(void)
{
    csched_reclaim_enter();
    gate_open(&gates[1]);
    give_way();
    csched_reclaim_exit();
}

static void observe_and_reader_main(void)
{
    forget_observers();
    world_open_workers(1);
    observe(0);
    int reader = thread_start("reader", reads_for_a_while);
    gate_pass(&gates[1]);
    submit(operation(0));
    world_explore();
    wait_for_all();
    if (!explorer_freezes()) {
        csched_completion_release(counter);
        csched_scheduler_destroy(scheduler);
        if (released[0] != 1) {
            explorer_fail("the scheduler has ended, and its observer was released %d times (R1)",
                          released[0]);
        }
    }
    thread_join(reader);
}
MAIN(observe_and_reader)

// Without an observer the end does not wait: the domain outlives the scheduler.
static void reads_until_open(void)
{
    csched_reclaim_enter();
    gate_open(&gates[1]);
    gate_pass(&gates[0]);
    csched_reclaim_exit();
}

static void end_and_reader_main(void)
{
    world_open_workers(2);
    int reader = thread_start("reader", reads_until_open);
    gate_pass(&gates[1]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    submit(operation(0));
    world_explore();
    wait_for_all();
    world_close();
    gate_open(&gates[0]);
    thread_join(reader);
}
MAIN(end_and_reader)

const explorer_program life_observe_scenarios[] = {
    SCENARIO("life", observe, "R1 R3", "an observer is replaced under a call", .check = observe_check),
    SCENARIO("life", observer_submits, "S3", "an observer submits as its worker falls asleep"),
    SCENARIO("life", observer_submits_at_the_end, "S1",
             "an observer submits as its worker is woken for the end"),
    SCENARIO("life", observe_twice, "R1 R3", "observers are replaced by two threads",
             .check = observe_twice_check),
    SCENARIO("life", observe_and_reader, "R1", "an observed scheduler ends beside a reader of another"),
    SCENARIO("life", end_and_reader, "R1 S13", "a scheduler ends beside a reader of another"),
};
const size_t life_observe_scenario_count = sizeof life_observe_scenarios / sizeof life_observe_scenarios[0];
