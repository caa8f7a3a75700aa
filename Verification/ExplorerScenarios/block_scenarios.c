// block_scenarios.c - bodies that block, and workers that take their place.

#include "life.h"

#include <string.h>

#include "scenarios.h"

// MARK: Bodies that block

// Opens gate 2 when it has begun, and waits for gate 0.
static void pass(void *context, csched_disposition disposition)
{
    gate_open(&gates[2]);
    gate_pass(&gates[0]);
    ran(number_of(context), disposition);
}

static void opens_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[1]);
}

static void blocks(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    pass(context, disposition);
}

static void blocks_announced(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_block_begin();
    pass(context, disposition);
    csched_block_end();
}

// Continues after it was blocked, submits, and waits for that operation.
static void submit_1_and_wait(void)
{
    submit(operation_with(1, opens_gate_2));
    gate_pass(&gates[2]);
}

static void blocks_and_submits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    submit_1_and_wait();
    ran(number_of(context), disposition);
}

static void blocks_announced_and_submits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_block_begin();
    gate_pass(&gates[0]);
    csched_block_end();
    submit_1_and_wait();
    ran(number_of(context), disposition);
}

// The same, but it submits while it is about to block.
static void submits_and_blocks_announced(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_block_begin();
    submit_1_and_wait();
    csched_block_end();
    ran(number_of(context), disposition);
}

// MARK: Replaced

static uint64_t times_replaced(void) { return csched_scheduler_statistics(scheduler).replaced; }

static void expect_replaced(void)
{
    if (times_replaced() == 0) {
        explorer_fail("nobody was replaced, and one was needed (Z1)");
    }
}

// The only worker blocks, and the operation that would unblock it is queued.
static void block_and_open(csched_function body, uint32_t spares)
{
    world_open_with_spares(1, spares);
    submit(operation_with(0, body));
    world_explore();
    submit(operation_with(1, opens_gate));
    wait_for_all();
    expect_replaced();
    world_end(2);
}

static void announced_main(void) { block_and_open(blocks_announced, 1); }
MAIN(announced)

static void unannounced_main(void) { block_and_open(blocks, 1); }
MAIN(unannounced)

static void memory_main(void) { block_and_open(blocks_announced, 2); }
MAIN(memory)

// A long body is asleep whenever the watch checks it, but runs between the checks; it is replaced only once
// it no longer does.
static void busy_main(void)
{
    world_open_with_spares(1, 1);
    busy_between_looks = true;
    submit(operation_with(0, blocks));
    gate_pass(&gates[2]);
    submit(operation(1));
    world_explore();
    for (int look = 0; look < 4; look++) {
        pass_time();
    }
    if (times_replaced() != 0) {
        explorer_fail("replaced, though it runs (Z3)");
    }
    busy_between_looks = false;
    while (times_replaced() == 0) {
        pass_time();
    }
    gate_open(&gates[0]);
    world_end(2);
}
MAIN(busy)

// The worker continues while the watch checks it: it still has its seat, or knows that it has none.
static void goes_on(csched_function body)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, body));
    gate_pass(&gates[2]);
    explorer_settle(csched_site("settle"));
    world_explore();
    submit(operation(1));
    gate_open(&gates[0]);
    submit(operation(2));
    world_end(3);
}

static void goes_on_announced_main(void) { goes_on(blocks_announced); }
MAIN(goes_on_announced)

static void goes_on_unannounced_main(void) { goes_on(blocks); }
MAIN(goes_on_unannounced)

// The watch has found the worker blocked, and takes its seat.
static void goes_on_late(csched_function body)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, body));
    gate_pass(&gates[2]);
    submit(operation(1));
    world_explore();
    for (int look = 0; look < 4; look++) {
        pass_time();
    }
    gate_open(&gates[0]);
    submit(operation(2));
    world_end(3);
}

static void goes_on_late_announced_main(void) { goes_on_late(blocks_announced); }
MAIN(goes_on_late_announced)

static void goes_on_late_unannounced_main(void) { goes_on_late(blocks); }
MAIN(goes_on_late_unannounced)

// The worker, without a seat, continues, submits, and waits: the new worker is asleep, and has to come.
static void submits_without_seat(csched_function body)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, body));
    explorer_settle(csched_site("settle"));
    submit(operation(2)); // so that it is replaced
    explorer_settle(csched_site("settle"));
    gate_open(&gates[0]);
    world_explore();
    world_end(3);
}

static void submits_announced_main(void) { submits_without_seat(blocks_announced_and_submits); }
MAIN(submits_announced)

static void submits_unannounced_main(void) { submits_without_seat(blocks_and_submits); }
MAIN(submits_unannounced)

static void submits_blocked_main(void)
{
    world_open_with_spares(1, 1);
    world_explore();
    submit(operation_with(0, submits_and_blocks_announced));
    world_end(2);
}
MAIN(submits_blocked)

// The same while the new worker falls asleep.
static void submits_late_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_and_submits));
    explorer_settle(csched_site("settle"));
    submit(operation(2)); // so that it is replaced
    while (csched_scheduler_statistics(scheduler).replaced == 0) {
        pass_time();
    }
    explorer_settle(csched_site("settle"));
    submit(operation_with(3, opens_gate));
    world_explore_without_time();
    world_end(4);
}
MAIN(submits_late)

// The body submits its own next step; then it announces that it blocks, while the other worker falls
// asleep.
static void submits_1_and_blocks_announced(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[1]);
    submit(operation_with(1, opens_gate_2));
    csched_block_begin();
    gate_pass(&gates[2]);
    csched_block_end();
    ran(number_of(context), disposition);
}

static void leaves_one_main(void)
{
    world_open_workers(2);
    submit(operation_with(0, submits_1_and_blocks_announced));
    explorer_settle(csched_site("settle"));
    submit(operation_with(2, opens_gate_1));
    world_explore_without_time();
    world_end(3);
}
MAIN(leaves_one)

// A wait for an operation that only another worker can run; and for one in its own deque.
static csched_completion *inner;

static void waits_for_inner(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[2]);
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    ran(number_of(context), disposition);
}

static csched_operation of_inner(int number)
{
    csched_operation what = operation(number);
    what.counter = inner;
    return what;
}

static void end_inner(int count)
{
    wait_for_all();
    expect_ran(count);
    explorer_calm(true);
    csched_completion_release(inner);
    world_close();
}

static void wait_main(void)
{
    world_open_with_spares(1, 1);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(0, waits_for_inner));
    gate_pass(&gates[2]);
    world_explore();
    submit(of_inner(1));
    (void)csched_completion_leave(inner, 1);
    end_inner(2);
}
MAIN(wait)

// Operations that run nested are called through the embedder, on the waiting thread; unrelated ones are not
// run.
static int isolated; // plain: used by one thread

static void isolate(void (*body)(void *), void *context)
{
    isolated++;
    body(context);
    isolated--;
}

static int waiting; // plain: 1 + the thread on whose stack a body waits, or 0

static void is_no_stranger(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (isolated != 1 || waiting != 1 + explorer_self()) {
        explorer_fail("an operation of the counter does not run in the wait, isolated (X7)");
    }
    ran(number_of(context), disposition);
}

static void is_stranger(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (waiting == 1 + explorer_self()) {
        explorer_fail("an operation ran below a wait that was not for it (X7)");
    }
    ran(number_of(context), disposition);
}

static void waits_nested(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_operation children[] = {of_inner(1), operation_with(2, is_stranger), of_inner(3)};
    children[0].run = children[2].run = is_no_stranger;
    csched_check(csched_submit_bulk(scheduler, children, 3) == CSCHED_OK, "a submission was not accepted");
    waiting = 1 + explorer_self();
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    waiting = 0;
    ran(number_of(context), disposition);
}

static void nested_main(void)
{
    isolated = waiting = 0;
    world_open_workers(1);
    csched_scheduler_isolate(scheduler, isolate);
    inner = csched_completion_create();
    world_explore();
    submit(operation_with(0, waits_nested));
    end_inner(4);
}
MAIN(nested)

// The option to help with any operation.
static void helps_anybody(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit(operation(1));
    csched_completion_enter(inner, 1);
    csched_operation last = operation_with(2, opens_gate_2);
    submit(last);
    submit(of_inner(3));
    (void)csched_completion_leave(inner, 1);
    csched_check(csched_completion_wait_helping(inner, CSCHED_FOREVER, CSCHED_HELP_ANYBODY) ==
                     CSCHED_WAIT_COMPLETED,
                 "wait");
    ran(number_of(context), disposition);
}

static void anybody_main(void)
{
    world_open_workers(1);
    inner = csched_completion_create();
    world_explore();
    submit(operation_with(0, helps_anybody));
    end_inner(4);
}
MAIN(anybody)

// The operation that is waited for is in the deque of another worker, whose body cannot continue without
// it: the wait takes it, and not the operations behind it.
static void offers_and_passes_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_operation child = of_inner(1);
    child.run = opens_gate_1;
    submit(child);
    submit(operation_with(2, is_stranger));
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void waits_for_another(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    waiting = 1 + explorer_self();
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    waiting = 0;
    ran(number_of(context), disposition);
}

static void wait_steals_main(void)
{
    waiting = 0;
    world_open_workers(2);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    world_explore();
    submit(operation_with(0, waits_for_another));
    submit(operation_with(3, offers_and_passes_gate_1));
    gate_pass(&gates[1]);
    (void)csched_completion_leave(inner, 1);
    end_inner(4);
}
MAIN(wait_steals)

// A wait that names the operations it runs: it runs no others, and takes them only from its worker's own
// deque.
static int asked_by; // plain: the thread whose operations may be queried

static void is_named(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (number_of(context) != 1 && waiting == 1 + explorer_self()) {
        explorer_fail("operation %d ran below a wait that did not want it (X7)", number_of(context));
    }
    ran(number_of(context), disposition);
}

static bool are_not(const void *wanted_by, void *children, void *child)
{
    (void)wanted_by, (void)children, (void)child;
    return false;
}

static bool is_number_1(const void *wanted_by, void *context, void *extra)
{
    (void)wanted_by, (void)extra;
    if (number_of(context) > 2 || explorer_self() != asked_by) {
        explorer_fail("a wait looks at operation %d, which is none of its own (X7)", number_of(context));
    }
    return number_of(context) == 1;
}

static void waits_running(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[2]);
    gate_pass(&gates[3]);
    asked_by = explorer_self();
    csched_operation children[] = {of_inner(1), operation_with(2, is_named), operation_with(3, is_stranger)};
    children[0].run = is_named;
    csched_check(csched_submit_bulk(scheduler, children, 3) == CSCHED_OK, "a submission was not accepted");
    waiting = 1 + explorer_self();
    csched_check(csched_completion_wait_running(inner, is_named, is_number_1, are_not, NULL) ==
                     CSCHED_WAIT_COMPLETED,
                 "wait");
    waiting = 0;
    gate_open(&gates[1]);
    ran(number_of(context), disposition);
}

static void offers_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    gate_pass(&gates[2]); // the other worker is busy
    submit(operation_with(5, is_named));
    gate_open(&gates[3]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void wait_running_main(void)
{
    waiting = 0;
    world_open_workers(2);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1); // so that it checks again after it has run what it may
    submit(operation_with(4, offers_and_waits));
    gate_pass(&gates[0]);
    world_explore();
    submit(operation_with(0, waits_running));
    explorer_settle(csched_site("settle"));
    (void)csched_completion_leave(inner, 1);
    end_inner(6);
}
MAIN(wait_running)

// Suspended while a wait looks for an operation that belongs to it: the operation does not start, and is not
// forgotten.
static void waits_for_quiet_one(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    csched_operation child = of_inner(1);
    child.run = stays_quiet;
    submit(child);
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    ran(number_of(context), disposition);
}

static void wait_suspended_main(void)
{
    quiet = 0;
    world_open_with_spares(1, 1);
    inner = csched_completion_create();
    submit(operation_with(0, waits_for_quiet_one));
    gate_pass(&gates[0]);
    world_explore();
    gate_open(&gates[1]);
    suspends_and_resumes();
    end_inner(2);
}
MAIN(wait_suspended)

// A wait with a limit runs nothing: it ends in time, however long an operation would take.
static void waits_in_time(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_operation child = of_inner(1);
    child.run = passes_gate;
    submit(child);
    csched_check(csched_completion_wait(inner, 1000) == CSCHED_WAIT_TIMED_OUT, "wait");
    gate_open(&gates[0]);
    ran(number_of(context), disposition);
}

static void wait_in_time_main(void)
{
    world_open_workers(1);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    world_explore();
    submit(operation_with(0, waits_in_time));
    wait_for_all();
    (void)csched_completion_leave(inner, 1);
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    end_inner(2);
}
MAIN(wait_in_time)

// A wait below an announcement, and an announcement below a wait.
static void announces_twice(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_block_begin();
    csched_block_begin();
    csched_block_end();
    submit_1_and_wait(); // as from outside: the outer announcement is still in force
    csched_block_end();
    submit(operation(2)); // its own next step
    ran(number_of(context), disposition);
}

static void announced_twice_main(void)
{
    world_open_with_spares(1, 1);
    world_explore();
    submit(operation_with(0, announces_twice));
    world_end(3);
}
MAIN(announced_twice)

// The worker is replaced before it announces that it blocks.
static void blocks_and_announces(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    csched_block_begin();
    csched_block_end();
    ran(number_of(context), disposition);
}

static void announced_late_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_and_announces));
    submit(operation_with(1, opens_gate));
    world_explore();
    world_end(2);
}
MAIN(announced_late)

// A wait visits the workers while their number changes.
static void grows(void) { csched_check(csched_scheduler_resize(scheduler, 3) == CSCHED_OK, "resize"); }

static void wait_grows_main(void)
{
    waiting = 0;
    world_open_workers(2);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(3, offers_and_passes_gate_1));
    gate_pass(&gates[0]);
    int other = thread_start("resizer", grows);
    world_explore();
    submit(operation_with(0, waits_for_another));
    thread_join(other);
    (void)csched_completion_leave(inner, 1);
    end_inner(4);
}
MAIN(wait_grows)

// One of the workers that a wait visits has ended, and its memory is freed.
static csched_helping helping;

static void waits_beside_one_that_goes(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    csched_check(csched_completion_wait_helping(inner, CSCHED_FOREVER, helping) == CSCHED_WAIT_COMPLETED,
                 "wait");
    ran(number_of(context), disposition);
}

static void look_at_one_that_goes(csched_helping whom)
{
    helping = whom;
    world_open_workers(2);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(0, waits_beside_one_that_goes));
    explorer_settle(csched_site("settle"));
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[0]);
    give_way();
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    (void)csched_completion_leave(inner, 1);
    end_inner(1);
}

static void wait_replaces_main(void) { look_at_one_that_goes(CSCHED_HELP_OWN); }
MAIN(wait_replaces)

static void anybody_replaces_main(void) { look_at_one_that_goes(CSCHED_HELP_ANYBODY); }
MAIN(anybody_replaces)

// Few places: an operation that a worker takes in a wait, or in order, no longer occupies one. Jobs come
// after a fair turn.
static int until_jobs;

static void submits_two_jobs(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (until_jobs-- > 0) {
        submit_job(operation_with(number_of(context), submits_two_jobs));
        return;
    }
    submit_job(operation(1));
    submit_job(operation_with(2, blocks));
    ran(number_of(context), disposition);
}

static void places_main(void)
{
    until_jobs = CSCHED_FAIR_FIRST;
    world_open_with_places(1);
    world_explore_without_time();
    submit(operation_with(0, submits_two_jobs));
    gate_pass(&gates[2]);
    submit(operation(3));
    gate_open(&gates[0]);
    world_end(4);
}
MAIN(places)

static void helps_anybody_to_the_end(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_completion_enter(inner, 1);
    gate_open(&gates[2]);
    gate_pass(&gates[1]);
    csched_check(csched_completion_wait_helping(inner, CSCHED_FOREVER, CSCHED_HELP_ANYBODY) ==
                     CSCHED_WAIT_COMPLETED,
                 "wait");
    ran(number_of(context), disposition);
}

static void leaves_inner(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    (void)csched_completion_leave(inner, 1);
    ran(number_of(context), disposition);
}

static void anybody_places_main(void)
{
    world_open_with_places(1);
    inner = csched_completion_create();
    submit(operation_with(0, helps_anybody_to_the_end));
    gate_pass(&gates[2]);
    submit(operation_with(1, leaves_inner));
    world_explore_without_time();
    gate_open(&gates[1]);
    submit(operation(2));
    gate_open(&gates[0]);
    end_inner(3);
}
MAIN(anybody_places)

// MARK: Limits and lives

static void expect_threads(uint32_t most)
{
    uint32_t threads = csched_scheduler_statistics(scheduler).threads;
    if (threads > most) {
        explorer_fail("%u threads, and %u are the most (Z5)", threads, most);
    }
}

// As many workers are blocked as there may be: one warning, and nothing is lost.
static void limit_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks));
    submit(operation_with(1, blocks));
    submit(operation(2));
    submit(operation(3));
    while (csched_scheduler_statistics(scheduler).exhausted == 0) {
        pass_time();
    }
    pass_time(); // the next check finds the same
    pass_time();
    if (times_warned() != 1 || csched_scheduler_statistics(scheduler).exhausted != 1) {
        explorer_fail("the limit was told %d times (Z3)", times_warned());
    }
    expect_threads(2);
    expect_replaced();
    world_explore();
    gate_open(&gates[0]);
    world_end(4);
}
MAIN(limit)

// The same again: no second warning.
static void limit_again_main(void)
{
    world_open_with_spares(1, 1);
    for (int time = 0; time < 2; time++) {
        submit(operation_with(3 * time, blocks));
        submit(operation_with(3 * time + 1, blocks));
        submit(operation(3 * time + 2));
        while (csched_scheduler_statistics(scheduler).exhausted <= (uint64_t)time) {
            pass_time();
        }
        gate_open(&gates[0]);
        wait_for_all();
        explorer_settle(csched_site("settle"));
        gates[0].open = 0;
    }
    if (times_warned() != 1) {
        explorer_fail("the limit was told %d times (Z3)", times_warned());
    }
    world_end(6);
}
MAIN(limit_again)

// The worker continues while another one is hired for its seat: the new worker leaves without ever having had
// a seat.
static void let_go_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_announced));
    gate_pass(&gates[2]);
    submit(operation(1));
    pass_time();
    world_explore();
    pass_time();
    gate_open(&gates[0]);
    wait_for_all();
    while (csched_scheduler_statistics(scheduler).threads > 1) {
        pass_time();
    }
    world_end(2);
}
MAIN(let_go)

// A blocked worker is to leave: it is not replaced.
static void leaves_main(void)
{
    world_open_with_spares(2, 2);
    submit(operation_with(0, passes_gate));
    explorer_settle(csched_site("settle"));
    submit(operation_with(1, passes_gate));
    explorer_settle(csched_site("settle"));
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    world_explore();
    submit(operation_with(2, opens_gate));
    world_end(3); // checks the seats
}
MAIN(leaves)

// The watch is silent when the scheduler is idle.
static void silent_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation(0));
    wait_for_all();
    world_explore();
    while (!watch_model_is_silent(scheduler)) {
        pass_time();
    }
    world_end(1);
}
MAIN(silent)

// The watch falls silent while the last worker begins an operation that blocks.
static void falls_silent_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation(2));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    world_explore();
    pass_time();
    submit(operation_with(0, blocks));
    submit(operation_with(1, opens_gate));
    world_end(3);
}
MAIN(falls_silent)

// No thread can be created: neither the watch nor a replacement for a worker.
static void no_watch_main(void)
{
    csched_configuration configuration = world_configuration();
    configuration.workers = 1;
    configuration.spares = 1;
    pthread_model_fail(true);
    csched_check(csched_scheduler_create(&configuration, &scheduler) == CSCHED_THREAD_CREATION_FAILED,
                 "created without threads");
    pthread_model_fail(false);
    world_open_with_spares(1, 1);
    world_explore();
    submit(operation(0));
    world_end(1);
}
MAIN(no_watch)

static void no_spare_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_announced));
    gate_pass(&gates[2]);
    pthread_model_fail(true);
    submit(operation_with(1, opens_gate));
    for (int look = 0; look < 4; look++) {
        pass_time();
    }
    expect_threads(1);
    world_explore();
    pthread_model_fail(false); // the watch tries again
    world_end(2);
}
MAIN(no_spare)

// The last act of a worker's thread is to report that it ends: an operation that is submitted then is
// accepted and run, or refused.
static int late; // plain: of threads that take turns

static void submits_as_it_ends(void *unused, csched_event event, uint32_t worker)
{
    (void)unused, (void)worker;
    if (event == CSCHED_WORKER_STOPPED) {
        int number = late++;
        csched_operation what = operation(number);
        accepted[number] = csched_submit(scheduler, &what) == CSCHED_OK;
    }
}

// Uses its own inbox.
static void submits_from_inbox(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)context, (void)disposition;
    csched_block_begin();
    csched_operation what = operation(8);
    what.counter = NULL;
    csched_check(csched_submit(scheduler, &what) == CSCHED_OK, "a submission was not accepted");
    csched_block_end();
    gate_pass(&gates[1]);
}

static void ends_main(void)
{
    late = 0;
    memset(accepted, 0, sizeof accepted);
    world_open_workers(2);
    csched_observer observer = {.notify = submits_as_it_ends};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    for (int number = 0; number < 2; number++) {
        csched_operation what = {.run = submits_from_inbox};
        submit(what);
        explorer_settle(csched_site("settle"));
    }
    gate_open(&gates[1]);
    explorer_settle(csched_site("settle"));
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    world_explore();
    give_way();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    explorer_calm(true);
    expect_accepted(2, false);
    world_close();
}
MAIN(ends)

// As a worker rises for the end, its observer submits an operation that blocks. The watch takes the
// worker's seat, and has ended when the worker enters the reserve.
static int rises; // plain: since the close, or -1

static void submits_as_it_rises_to_end(void *unused, csched_event event, uint32_t worker)
{
    (void)unused, (void)worker;
    if (event == CSCHED_WORKER_UNPARKED && rises >= 0 && ++rises == 2) { // the first rise is for the close
        submit(operation_with(0, blocks));
    }
}

static void opens_gate_0(void)
{
    give_way();
    gate_open(&gates[0]);
}

static void reserve_at_end_main(void)
{
    rises = -1;
    world_open_with_spares(1, 1);
    csched_observer observer = {.notify = submits_as_it_rises_to_end};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    rises = 0;
    csched_scheduler_close(scheduler);
    gate_pass(&gates[2]);
    while (csched_scheduler_statistics(scheduler).replaced == 0) {
        pass_time();
    }
    int other = thread_start("opener", opens_gate_0);
    world_explore();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    thread_join(other);
    world_end(1);
}
MAIN(reserve_at_end)

// A dismissed worker is hired again.
static void again_main(void)
{
    world_open_with_spares(1, 1);
    watch_the_end_of_a_worker();
    submit(operation_with(0, blocks_announced));
    submit(operation_with(1, opens_gate));
    wait_for_all();
    csched_store(&gates[0].open, 0, seq_cst);
    world_explore();
    gate_pass(&gates[0]); // one of the two is dismissed, sooner or later
    csched_store(&gates[0].open, 0, seq_cst);
    submit(operation_with(2, blocks_announced));
    submit(operation_with(3, opens_gate));
    world_end(4);
}
MAIN(again)

// A shutdown while the worker is blocked, and another worker is needed for a queued operation.
static void drain_main(void)
{
    world_open_with_spares(1, 1);
    accepted[0] = accepted[1] = true;
    submit(operation_with(0, blocks_announced));
    gate_pass(&gates[2]);
    submit(operation_with(1, opens_gate));
    world_explore();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_accepted(2, false);
    world_close();
}
MAIN(drain)

// A worker without a seat submits, and rests, while another worker, which has seen none of this, is about to
// end the scheduler.
static void passes_and_submits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    pass(context, disposition);
    submit(operation(1));
}

static void passes_announced_and_submits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_block_begin();
    pass(context, disposition);
    csched_block_end();
    submit(operation(1));
}

static void rests_at_end(csched_function body)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, body));
    gate_pass(&gates[2]);
    while (times_replaced() == 0) {
        pass_time();
    }
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[0]);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    explorer_calm(true);
    expect_ran(2);
    world_close();
}

static void rests_at_end_announced_main(void) { rests_at_end(passes_announced_and_submits); }
MAIN(rests_at_end_announced)

static void rests_at_end_unannounced_main(void) { rests_at_end(passes_and_submits); }
MAIN(rests_at_end_unannounced)

// Resized while the worker is blocked, and while it is replaced.
static void grows_and_shrinks(void)
{
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
}

static void resize_main(void)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_announced));
    gate_pass(&gates[2]);
    int other = thread_start("resizer", grows_and_shrinks);
    world_explore();
    submit(operation_with(1, opens_gate));
    thread_join(other);
    submit(operation(2));
    world_end(3);
}
MAIN(resize)

// Suspended while a worker is replaced: neither worker starts anything.
static void suspend_main(void)
{
    quiet = 0;
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_announced));
    gate_pass(&gates[2]);
    submit(operation_with(1, stays_quiet));
    world_explore();
    suspends_and_resumes();
    gate_open(&gates[0]);
    world_end(2);
}
MAIN(suspend)

// Jobs of one body: the first goes to its worker's deque, the rest to the inbox, in order, even if the
// scheduler is closed meanwhile. The jobs are so few that no fair turn falls between two of them.
enum { JOBS = 3 };
static int order[4];
static int begun;

static void notes_its_turn(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    order[begun++] = number_of(context);
    ran(number_of(context), disposition);
}

static void submits_jobs(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    for (int number = 1; number <= JOBS; number++) {
        submit_job(operation_with(number, notes_its_turn));
    }
    ran(number_of(context), disposition);
}

static void jobs_main(void)
{
    begun = 0;
    world_open_workers(1);
    world_explore();
    submit(operation_with(0, submits_jobs));
    wait_for_all();
    expect_ran(JOBS + 1);
    for (int turn = 0; turn < JOBS; turn++) {
        if (order[turn] != turn + 1) {
            explorer_fail("job %d began in place of job %d (U4)", order[turn], turn + 1);
        }
    }
    world_close();
}
MAIN(jobs)

// Another worker takes jobs from the inbox of the worker that has submitted them, and uses up a part of it.
static void submits_six_jobs(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    for (int number = 1; number <= 6; number++) {
        submit_job(operation(number));
    }
    ran(number_of(context), disposition);
}

static void jobs_taken_main(void)
{
    world_open_workers(2);
    world_explore_without_time();
    submit(operation_with(0, submits_six_jobs));
    world_end(7);
}
MAIN(jobs_taken)

// When a body no longer blocks, the operations that it submits are its worker's next steps, the newest
// first.
static void announces_and_submits_two(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_block_begin();
    csched_block_end();
    submit(operation_with(2, notes_its_turn));
    submit(operation_with(1, notes_its_turn));
    ran(number_of(context), disposition);
}

static void announced_once_main(void)
{
    begun = 0;
    world_open_workers(1);
    world_explore();
    submit(operation_with(0, announces_and_submits_two));
    wait_for_all();
    expect_ran(3);
    if (order[0] != 1) {
        explorer_fail("what a body submits when it blocks no more went elsewhere (U5)");
    }
    world_close();
}
MAIN(announced_once)

// The same on the worker that has received the seat.
static void submits_two_and_opens(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit(operation_with(3, notes_its_turn));
    submit(operation_with(2, notes_its_turn));
    ran(number_of(context), disposition);
}

static void announced_seat_main(void)
{
    begun = 0;
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_announced));
    submit(operation_with(1, submits_two_and_opens));
    world_explore();
    while (csched_completion_outstanding(counter) > 1) {
        pass_time();
    }
    if (order[0] != 2) {
        explorer_fail("a body does not block, and what it submits went elsewhere (U5)");
    }
    gate_open(&gates[0]);
    world_end(4);
}
MAIN(announced_seat)

static void jobs_and_close_main(void)
{
    begun = 0;
    world_open_workers(1);
    submit(operation_with(0, submits_jobs));
    int other = thread_start("closer", closes);
    world_explore();
    wait_for_all();
    thread_join(other);
    world_end(JOBS + 1);
}
MAIN(jobs_and_close)

const explorer_program block_scenarios[] = {
    SCENARIO("block", announced, "S3 S12", "the only worker blocks, and has said so"),
    SCENARIO("block", unannounced, "S3 S12", "the only worker blocks, and has not said so"),
    SCENARIO("block", busy, "S12", "a long body sleeps for moments, and then for good"),
    SCENARIO("block", memory, "S1 S3", "the only worker blocks, and memory runs out",
             .allocations_fail = true),
    SCENARIO("block", goes_on_announced, "S1 S8", "a worker goes on as its seat is given away"),
    SCENARIO("block", goes_on_unannounced, "S1 S8", "the same, and it has not said that it blocks"),
    SCENARIO("block", goes_on_late_announced, "S1 S8", "a worker goes on as the watch takes its seat"),
    SCENARIO("block", goes_on_late_unannounced, "S1 S8", "the same, and it has not said that it blocks"),
    SCENARIO("block", submits_announced, "S1 S3", "a worker without a seat submits what it waits for"),
    SCENARIO("block", submits_unannounced, "S1 S3", "the same, and it does not know that it has no seat"),
    SCENARIO("block", submits_blocked, "S1 S3", "a worker submits while it says that it blocks"),
    SCENARIO("block", submits_late, "S3", "a worker without a seat submits as the new one falls asleep"),
    SCENARIO("block", leaves_one, "S3", "a worker blocks, and leaves one in its deque"),
    SCENARIO("block", wait, "S3 S16", "a worker waits inside a body for what comes from outside"),
    SCENARIO("block", nested, "S16", "a wait runs what belongs to it, and no stranger"),
    SCENARIO("block", anybody, "S16", "a wait that helps anybody"),
    SCENARIO("block", wait_steals, "S3 S16", "a wait takes what belongs to it from another worker"),
    SCENARIO("block", wait_running, "S16", "a wait that names what it runs"),
    SCENARIO("block", wait_suspended, "S7 S3", "suspended while a wait looks for what belongs to it"),
    SCENARIO("block", wait_in_time, "S16", "a wait with a limit runs nothing"),
    SCENARIO("block", announced_twice, "S3", "an announcement inside another one"),
    SCENARIO("block", announced_late, "S3 S17", "a worker announces that it blocks, and is replaced already"),
    SCENARIO("block", wait_grows, "R3 S16", "a wait looks at the workers while they change"),
    SCENARIO("block", wait_replaces, "R3 S16", "a wait looks at a worker whose memory goes"),
    SCENARIO("block", anybody_replaces, "R3 S16", "a wait that helps anybody looks at such a worker"),
    SCENARIO("block", announced_once, "S12", "a body that has announced that it blocks goes on"),
    SCENARIO("block", announced_seat, "S12", "the seat of a body that has announced that it blocks"),
    SCENARIO("block", places, "S6 S3", "jobs of one body, and few places"),
    SCENARIO("block", anybody_places, "S6 S3", "a wait that helps anybody, and few places"),
    SCENARIO("block", silent, "S3", "the watch is silent when nothing happens"),
    SCENARIO("block", falls_silent, "S3", "the watch falls silent while the last worker begins what blocks"),
    SCENARIO("block", no_watch, "S6 R3", "no thread for the watch can be made"),
    SCENARIO("block", no_spare, "S1 R3", "no thread can be made in place of the one that blocks"),
    SCENARIO("block", ends, "S13 S14", "a worker submits as its thread ends"),
    SCENARIO("block", limit, "S1 S3", "as many are blocked as there may be"),
    SCENARIO("block", limit_again, "S1 S3", "as many are blocked as there may be, for the second time"),
    SCENARIO("block", let_go, "S8 R3", "a worker is hired, and goes without a seat"),
    SCENARIO("block", leaves, "S8", "a worker that blocks is to leave"),
    SCENARIO("block", again, "S3 R3", "a worker in reserve goes, and is hired again"),
    SCENARIO("block", reserve_at_end, "S13", "a worker comes into the reserve when the watch has ended"),
    SCENARIO("block", drain, "S13 S16", "a shutdown that needs another worker"),
    SCENARIO("block", rests_at_end_announced, "S1 S13",
             "a worker without a seat submits at the end, and rests"),
    SCENARIO("block", rests_at_end_unannounced, "S1 S13",
             "the same, and it does not know that it has no seat"),
    SCENARIO("block", resize, "S8 R3", "resized while a worker is replaced"),
    SCENARIO("block", suspend, "S7 S3", "suspended while a worker is replaced"),
    SCENARIO("block", jobs, "S12", "jobs of one body begin in order"),
    SCENARIO("block", jobs_taken, "S1 S3", "two workers take jobs in order from one inbox"),
    SCENARIO("block", jobs_and_close, "S13 S14", "jobs of one body beside a close"),
};
const size_t block_scenario_count = sizeof block_scenarios / sizeof block_scenarios[0];
