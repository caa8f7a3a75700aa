// watch_scenarios.c - the watch, concurrently with workers that continue at the worst moment, and with the
// end.
//
// Bodies here wait for time to pass instead of a wake-up. So a worker can continue at any step of the watch,
// with one departure.

#include "life.h"

#include <string.h>

#include "scenarios.h"

static void open_gate_silently(int number) { csched_store(&gates[number].open, 1, seq_cst); }

// Polls whether gate 0 is open.
static void polls(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[2]);
    while (!gate_is_open(&gates[0])) {
        pass_time();
    }
    ran(number_of(context), disposition);
}

static void polls_announced(void *context, void *extra, csched_disposition disposition)
{
    csched_block_begin();
    polls(context, extra, disposition);
    csched_block_end();
}

static void pass_time_until_replaced(void)
{
    while (csched_scheduler_statistics(scheduler).replaced == 0) {
        pass_time();
    }
}

// MARK: Seats

// Calms the explorer: the steps after it are not explored.
static void calms(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    explorer_calm(true);
    ran(number_of(context), disposition);
}

// A worker continues while the watch takes its seat.
static void goes_on_at_last(csched_function body)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, body));
    gate_pass(&gates[2]);
    submit(operation_with(1, calms));
    pass_time(); // the watch has seen the worker
    open_gate_silently(0);
    world_explore();
    pass_time();
    submit(operation(2));
    world_end(3);
}

static void goes_on_at_last_announced_main(void) { goes_on_at_last(polls_announced); }
MAIN(goes_on_at_last_announced)

static void goes_on_at_last_unannounced_main(void) { goes_on_at_last(polls); }
MAIN(goes_on_at_last_unannounced)

// A worker falls asleep while the watch checks it, and has executed nothing since the last check, because it
// has only cancelled. An operation that it does not take is queued in the deque of another worker.
static void polls_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    while (!gate_is_open(&gates[1])) {
        pass_time();
    }
    ran(number_of(context), disposition);
}

static void submits_and_polls(void *context, void *extra, csched_disposition disposition)
{
    submit(operation_with(3, calms));
    polls_gate_1(context, extra, disposition);
}

static void cancels(void) { shut_down(0); }

static void falls_asleep_main(void)
{
    world_open_with_spares(2, 1);
    submit(operation_with(0, passes_gate));
    explorer_settle(csched_site("settle"));
    submit(operation_with(1, submits_and_polls));
    explorer_settle(csched_site("settle"));
    submit(operation_with(2, polls_gate_1)); // cancelled by the first one
    int other = thread_start("closer", cancels);
    explorer_settle(csched_site("settle"));
    gate_open(&gates[0]);
    explorer_settle(csched_site("settle"));
    pass_time(); // the watch has seen both
    open_gate_silently(1);
    world_explore();
    pass_time();
    explorer_calm(true);
    thread_join(other);
    expect_settled(4);
    world_close();
}
MAIN(falls_asleep)

// MARK: Silence

static bool has_waited; // plain: used by the one worker

static void waits_as_it_is_woken(void *unused, csched_event event, uint32_t worker)
{
    (void)unused, (void)worker;
    if (event == CSCHED_WORKER_UNPARKED && !has_waited) {
        has_waited = true;
        pass_time();
    }
}

// The watch falls silent while the last worker, which was woken, begins an operation that blocks.
static void falls_silent_late_main(void)
{
    has_waited = false;
    world_open_with_spares(1, 1);
    submit(operation(2));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    csched_observer observer = {.notify = waits_as_it_is_woken};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    submit(operation_with(0, passes_gate));
    explorer_settle(csched_site("settle"));
    world_explore();
    pass_time();
    submit(operation_with(1, opens_gate));
    world_end(3);
}
MAIN(falls_silent_late)

// MARK: On guard

// In a crowd, two workers sleep. The one that is woken next stops, until a later operation lets it continue.
static csched_atomic(uint32_t) is_to_stop;

static void stops_as_it_is_woken(void *unused, csched_event event, uint32_t worker)
{
    (void)unused, (void)worker;
    if (event == CSCHED_WORKER_UNPARKED && csched_exchange(&is_to_stop, 0, seq_cst) != 0) {
        gate_pass(&gates[0]);
    }
}

static void run_one(int number)
{
    submit(operation(number));
    wait_for_all();
    explorer_settle(csched_site("settle"));
}

static void open_in_crowd(void)
{
    csched_init(&is_to_stop, 0);
    world_open_with_spares(2, 1);
    csched_observer observer = {.notify = stops_as_it_is_woken};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    run_one(2);
    pass_time(); // no sentry is left
    slow_yield_ns = 0;
    run_one(3);
}

static void submits_opener(void) { submit(operation_with(1, opens_gate)); }

static void submit_as_one_stops(void)
{
    csched_store(&is_to_stop, 1, seq_cst);
    world_explore();
    submit(operation(0));
    explorer_settle(csched_site("settle"));
    submits_opener();
    world_end(4);
}

// The second submission counts on the first worker, and the watch returns to both (W9).
static void guards_main(void)
{
    open_in_crowd();
    pass_time(); // the watch is on guard
    submit_as_one_stops();
}
MAIN(guards)

// The watch has fallen silent: the second submission wakes the other worker (W2).
static void guards_no_more_main(void)
{
    open_in_crowd();
    while (!watch_model_is_silent(scheduler)) {
        pass_time();
    }
    submit_as_one_stops();
}
MAIN(guards_no_more)

// Two threads submit, and rely on a guard that ends concurrently, because the crowd is over or because the
// watch falls silent. The worker that stops may be the one that the watch then wakes.
static void submit_as_guard_ends(bool is_over)
{
    open_in_crowd();
    pass_time(); // the watch is on guard
    if (is_over) {
        scheduler_model_end_crowd(scheduler);
    }
    int other = thread_start("submitter", submits_opener);
    csched_store(&is_to_stop, 1, seq_cst);
    world_explore();
    submit(operation(0));
    thread_join(other);
    world_end(4);
}

static void guards_crowd_main(void) { submit_as_guard_ends(true); }
MAIN(guards_crowd)

static void guards_calm_main(void) { submit_as_guard_ends(false); }
MAIN(guards_calm)

// The watch falls silent while operations are held back by a suspension.
static void guards_suspended_main(void)
{
    open_in_crowd();
    csched_scheduler_suspend(scheduler);
    submit(operation(0));
    world_explore();
    while (!watch_model_is_silent(scheduler)) {
        pass_time();
    }
    csched_scheduler_resume(scheduler);
    submit(operation(1));
    world_end(4);
}
MAIN(guards_suspended)

// MARK: The reserve

static void expect_threads_at_last(uint32_t count)
{
    while (csched_scheduler_statistics(scheduler).threads != count) {
        pass_time();
    }
}

// A worker that is no longer needed is dismissed, and joined.
static void lets_go_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, polls));
    submit(operation_with(1, opens_gate));
    wait_for_all();
    world_explore();
    expect_threads_at_last(1);
    submit(operation(2));
    world_end(3);
}
MAIN(lets_go)

// The watch looks for a worker to dismiss, while a resize takes out a worker that has ended.
static void lets_go_and_resizes_main(void)
{
    world_open_with_spares(2, 1);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    explorer_settle(csched_site("settle"));
    (void)csched_futex_wait(&gates[3].open, 0, UINT64_C(1) << 40); // no worker was needed for a long time
    submit(operation_with(0, polls));
    gate_pass(&gates[2]);
    world_explore();
    pass_time();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_open(&gates[0]);
    world_end(1);
}
MAIN(lets_go_and_resizes)

// MARK: The end

// The scheduler has stopped, and its worker, which was woken for that, continues only now.
static int times_woken[2]; // each is used by one worker

static void waits_as_it_is_woken_again(void *unused, csched_event event, uint32_t worker)
{
    (void)unused;
    if (event == CSCHED_WORKER_UNPARKED && gate_is_open(&gates[1]) && ++times_woken[worker] == 2) {
        pass_time();
    }
}

static void close_observed(void (*notify)(void *context, csched_event event, uint32_t worker))
{
    memset(times_woken, 0, sizeof times_woken);
    csched_observer observer = {.notify = notify};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    explorer_settle(csched_site("settle"));
    gate_open(&gates[1]);
    csched_scheduler_close(scheduler);
    explorer_settle(csched_site("settle"));
}

static void ends_calm_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation(0));
    wait_for_all();
    close_observed(waits_as_it_is_woken_again);
    world_explore();
    pass_time(); // the watch falls silent
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_ran(1);
    world_close();
}
MAIN(ends_calm)

// The last of two workers continues, and arms the watch.
static void shuts_down_in_a_while(void)
{
    gate_pass(&gates[2]);
    pass_time();
    pass_time();
    shut_down(CSCHED_FOREVER);
}

static void waits_as_the_second(void *unused, csched_event event, uint32_t worker)
{
    (void)unused;
    if (event == CSCHED_WORKER_UNPARKED && gate_is_open(&gates[1]) && worker == 1) {
        pass_time();
    }
}

static void ends_arming_main(void)
{
    world_open_with_spares(1, 1);
    int other = thread_start("closer", shuts_down_in_a_while);
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    explorer_settle(csched_site("settle"));
    close_observed(waits_as_the_second);
    gate_open(&gates[2]);
    explorer_settle(csched_site("settle"));
    world_explore();
    thread_join(other);
    explorer_calm(true);
    world_close();
}
MAIN(ends_arming)

// The observer then submits an operation that blocks: the watch checks the worker, and takes the seat.
static void submits_as_it_is_woken_again(void *unused, csched_event event, uint32_t worker)
{
    (void)unused;
    if (event == CSCHED_WORKER_UNPARKED && gate_is_open(&gates[1]) && ++times_woken[worker] == 2) {
        submit(operation(1));
        submit(operation_with(0, polls));
    }
}

static void open_and_stop(void)
{
    world_open_with_spares(1, 1);
    close_observed(submits_as_it_is_woken_again);
    gate_pass(&gates[2]);
}

static void end_stopped(void)
{
    pass_time();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_ran(2);
    world_close();
}

static void ends_armed_main(void)
{
    open_and_stop();
    pass_time();
    open_gate_silently(0);
    world_explore();
    end_stopped();
}
MAIN(ends_armed)

// The worker enters the reserve when the watch, which would recall it, is ending or has ended.
static void ends_in_reserve_main(void)
{
    open_and_stop();
    pass_time_until_replaced();
    open_gate_silently(0);
    world_explore();
    end_stopped();
}
MAIN(ends_in_reserve)

// A leaving worker has ended, except for its last report; then the scheduler ends. No worker would run an
// operation that is submitted after that.
static bool was_accepted;

static void submits_after_the_end(void *unused, csched_event event, uint32_t worker)
{
    (void)unused;
    if (event != CSCHED_WORKER_STOPPED) {
        return;
    }
    if (worker == 0) {
        gate_open(&gates[0]);
        return;
    }
    gate_pass(&gates[0]);
    csched_operation late = {.run = does_nothing};
    was_accepted = csched_submit(scheduler, &late) == CSCHED_OK;
}

static void submits_announced(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)context, (void)disposition;
    csched_block_begin();
    submit((csched_operation){.run = does_nothing}); // to its own inbox
    csched_block_end();
    gate_pass(&gates[1]);
}

static void ends_late_main(void)
{
    was_accepted = false;
    world_open_workers(2);
    csched_observer observer = {.notify = submits_after_the_end};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    for (int number = 0; number < 2; number++) {
        submit((csched_operation){.run = submits_announced});
        explorer_settle(csched_site("settle"));
    }
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_open(&gates[1]);
    explorer_settle(csched_site("settle")); // not by a gate: it has reported nothing
    world_explore();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    if (was_accepted) {
        explorer_fail("an operation was accepted that nobody is left to run (S13)");
    }
    world_close();
}
MAIN(ends_late)

const explorer_program watch_scenarios[] = {
    SCENARIO("block", goes_on_at_last_announced, "S1 S8", "a worker goes on between two steps of the watch"),
    SCENARIO("block", goes_on_at_last_unannounced, "S1 S8", "the same, and it has not said that it blocks"),
    SCENARIO("block", falls_asleep, "S8 S3", "a worker falls asleep as the watch looks at it"),
    SCENARIO("block", falls_silent_late, "S3",
             "the watch falls silent while the last worker, awake already, begins what blocks"),
    SCENARIO("block", guards, "S2 S3", "in a crowd, the worker that was woken stops"),
    SCENARIO("block", guards_no_more, "S2 S3", "the same, and the watch is silent"),
    SCENARIO("block", guards_crowd, "S2 S3", "two submissions count on a guard that ends with the crowd"),
    SCENARIO("block", guards_calm, "S2 S3", "the same, and the watch falls silent"),
    SCENARIO("block", guards_suspended, "S3", "the watch falls silent beside suspended operations"),
    SCENARIO("block", lets_go, "R3", "a worker in reserve goes, and is joined"),
    SCENARIO("block", lets_go_and_resizes, "R3 S8", "the watch looks at the reserve beside a resize"),
    SCENARIO("block", ends_calm, "S3 S13", "the watch falls silent while the scheduler ends"),
    SCENARIO("block", ends_arming, "S3 S13", "the watch is armed while the scheduler ends"),
    SCENARIO("block", ends_armed, "S3 S13", "the watch looks while the scheduler ends"),
    SCENARIO("block", ends_in_reserve, "S3 S13", "a worker joins the reserve while the scheduler ends"),
    SCENARIO("block", ends_late, "S13 S14", "a worker submits after all others have ended"),
};
const size_t watch_scenario_count = sizeof watch_scenarios / sizeof watch_scenarios[0];
