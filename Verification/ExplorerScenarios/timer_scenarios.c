// timer_scenarios.c - timers: set, fired, cancelled, repeated, and the end.
//
// While time stands still, a timer that is due at once needs a wake-up, and one that is due later never
// fires.

#include "life.h"

#include <string.h>

#include "cscheduler/timer.h"
#include "scenarios.h"
#include "timer_model.h"
#include "wheel.h"

enum { LATER = 1000000000 }; // later than the end of any scenario

static csched_timer *timers[ITEMS_MOST];
static bool was_in_time[ITEMS_MOST];

static void forget_timers(void)
{
    memset(timers, 0, sizeof timers);
    memset(was_in_time, 0, sizeof was_in_time);
    memset(accepted, 0, sizeof accepted);
}

static void open_timers(uint32_t workers)
{
    forget_timers();
    world_open_workers(workers);
}

// An operation that no counter waits for.
static csched_operation apart(int number)
{
    csched_operation what = operation(number);
    what.counter = NULL;
    return what;
}

static void set(int number, uint64_t delay_ns)
{
    csched_operation what = operation(number);
    csched_check(csched_submit_after(scheduler, &what, delay_ns, &timers[number]) == CSCHED_OK, "set");
}

// The scheduler has its timer thread, which sleeps until `delay_ns` from now.
static void set_first(uint64_t delay_ns)
{
    csched_operation what = apart(15);
    csched_check(csched_submit_after(scheduler, &what, delay_ns, &timers[15]) == CSCHED_OK, "set");
    explorer_settle(csched_site("settle"));
}

static void cancel(int number)
{
    was_in_time[number] = csched_timer_cancel(timers[number]);
    if (csched_timer_cancel(timers[number])) {
        explorer_fail("timer %d was cancelled twice (S13)", number);
    }
}

static void release(int number)
{
    if (timers[number] != NULL) {
        csched_timer_release(timers[number]);
        timers[number] = NULL;
    }
}

static void release_all(void)
{
    for (int number = 0; number < ITEMS_MOST; number++) {
        release(number);
    }
}

// After the end, or a wait: each of [0, count) ran, or was cancelled, as was reported to its canceller.
static void expect_told(int count)
{
    for (int number = 0; number < count; number++) {
        if (times_run(number) + times_cancelled(number) != 1 ||
            (was_in_time[number] && times_run(number) != 0)) {
            explorer_fail("operation %d was run %d times and cancelled %d times; in time: %d (S13)", number,
                          times_run(number), times_cancelled(number), was_in_time[number]);
        }
    }
}

// MARK: Set

// The first timer creates the thread, which finds the timer while it falls asleep.
static void first_main(void)
{
    open_timers(1);
    world_explore_without_time();
    set(0, 0);
    wait_for_all();
    expect_ran(1);
    release_all();
    world_close();
}
MAIN(first)

// Two threads set the first timer.
static void sets_1(void) { set(1, 0); }

static void first_twice_main(void)
{
    open_timers(1);
    int other = thread_start("setter", sets_1);
    world_explore_without_time();
    set(0, 0);
    thread_join(other);
    wait_for_all();
    expect_ran(2);
    release_all();
    world_close();
}
MAIN(first_twice)

// A timer that is due earlier than the thread would wake, set while it falls asleep; and another while it
// rises.
static void earlier_main(void)
{
    open_timers(1);
    csched_operation never = apart(15);
    csched_check(csched_submit_after(scheduler, &never, UINT64_MAX, &timers[15]) == CSCHED_OK, "set");
    world_explore_without_time();
    set(0, 0);
    wait_for_all();
    set(1, 0);
    wait_for_all();
    expect_ran(2);
    release_all();
    world_close();
    if (times_cancelled(15) != 1) {
        explorer_fail("what never fires was not cancelled in the end (S13)");
    }
}
MAIN(earlier)

// The timers' thread sleeps, and two threads set timers at the same time.
static void together_main(void)
{
    open_timers(1);
    set_first(LATER);
    int other = thread_start("setter", sets_1);
    world_explore_without_time();
    set(0, 0);
    thread_join(other);
    wait_for_all();
    expect_ran(2);
    release_all();
    world_close();
}
MAIN(together)

// Timers set for later fire by themselves, and not too early; undisturbed, in order and on time.
static uint64_t due_at[ITEMS_MOST];
static int fired;
static bool is_disturbed;

static void in_order(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    int number = number_of(context);
    uint64_t now = explorer_now_ns();
    if (disposition == CSCHED_RUN && now < due_at[number]) {
        explorer_fail("timer %d fired too early (S1)", number);
    }
    if (!is_disturbed && (number != fired++ || now > due_at[number] + 20000)) {
        explorer_fail("timer %d fired out of order, or too late (S9)", number);
    }
    ran(number, disposition);
}

static void set_in_order(void)
{
    static const uint64_t delays[] = {3000, 60000, 120000, 500000, 5000000};
    fired = 0;
    for (int number = 4; number >= 0; number--) {
        csched_operation what = operation_with(number, in_order);
        due_at[number] = explorer_now_ns() + delays[number];
        csched_check(csched_submit_after(scheduler, &what, delays[number], NULL) == CSCHED_OK, "set");
    }
    wait_for_all();
    expect_ran(5);
    world_close();
}

static void early_main(void)
{
    open_timers(1);
    is_disturbed = true;
    world_explore();
    set_in_order();
}
MAIN(early)

static void order_main(void)
{
    open_timers(1);
    is_disturbed = false;
    set_in_order();
}
MAIN(order)

// Bursts, which the thread takes piecemeal.
static void sets_4_to_7(void)
{
    for (int number = 4; number < 8; number++) {
        set(number, 0);
    }
}

static void burst_main(void)
{
    open_timers(1);
    set_first(LATER);
    int other = thread_start("setter", sets_4_to_7);
    world_explore_without_time();
    for (int number = 0; number < 4; number++) {
        set(number, 0);
    }
    thread_join(other);
    wait_for_all();
    expect_ran(8);
    release_all();
    world_close();
}
MAIN(burst)

// Called on the timers' own thread: also while the scheduler is suspended, and cancelled like any other.
static void looks_at_thread(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (disposition == CSCHED_RUN && !csched_timer_is_own_thread()) {
        explorer_fail("a call of the timers' thread is made on another one (A1)");
    }
    ran(number_of(context), disposition);
}

static void call_main(void)
{
    open_timers(1);
    csched_scheduler_suspend(scheduler);
    set_first(LATER);
    world_explore();
    csched_operation what = operation_with(0, looks_at_thread);
    csched_check(csched_call_after(scheduler, &what, 0, &timers[0]) == CSCHED_OK, "set");
    what = operation_with(1, looks_at_thread);
    csched_check(csched_call_after(scheduler, &what, LATER, &timers[1]) == CSCHED_OK, "set");
    cancel(0);
    cancel(1);
    wait_for_all();
    csched_scheduler_resume(scheduler);
    expect_told(2);
    release_all();
    world_close();
}
MAIN(call)

// Memory runs out: a timer is refused, or fires.
static void memory_main(void)
{
    open_timers(1);
    world_explore();
    csched_operation what = operation(0);
    csched_status status = csched_submit_after(scheduler, &what, 0, NULL);
    csched_check(status == CSCHED_OK || status == CSCHED_OUT_OF_MEMORY, "set");
    accepted[0] = status == CSCHED_OK;
    wait_for_all();
    expect_accepted(1, false);
    world_close();
}

// Memory runs out while a timer fires, which waits until memory is available again.
static void memory_later_main(void)
{
    open_timers(1);
    csched_operation what = operation_with(0, opens_gate);
    csched_check(csched_submit_after(scheduler, &what, 2000, NULL) == CSCHED_OK, "set");
    what = operation(1);
    csched_check(csched_submit_every(scheduler, &what, 2000, LATER, &timers[1]) == CSCHED_OK, "set");
    explorer_memory_ends(true);
    world_explore();
    if (csched_completion_wait(counter, 5000) == CSCHED_WAIT_COMPLETED || times_run(0) + times_run(1) != 0) {
        explorer_fail("a timer fired without memory (S1)");
    }
    explorer_memory_ends(false);
    gate_pass(&gates[0]);
    cancel(1);
    wait_for_all();
    if (!was_in_time[1] || times_run(0) != 1 || times_cancelled(0) != 0 || times_cancelled(1) != 1) {
        explorer_fail("a timer that waited for memory is lost (S1)");
    }
    release_all();
    world_close();
}
MAIN(memory_later)

// MARK: Cancelled

// Cancelled while it fires.
static void cancel_main(void)
{
    open_timers(1);
    world_explore();
    set(0, 0);
    cancel(0);
    wait_for_all();
    release(0);
    world_close();
    expect_told(1);
}
MAIN(cancel)

// Released, by its setter, while it fires.
static void release_main(void)
{
    open_timers(1);
    world_explore();
    set(0, 0);
    release(0);
    wait_for_all();
    expect_ran(1);
    world_close();
}
MAIN(release)

// Two threads cancel the same timer: one of them is in time.
static bool other_was_in_time;
static void cancels_0(void) { other_was_in_time = csched_timer_cancel(timers[0]); }

static void cancel_twice_main(void)
{
    open_timers(1);
    set(0, LATER);
    int other = thread_start("canceller", cancels_0);
    world_explore_without_time();
    bool in_time = csched_timer_cancel(timers[0]);
    thread_join(other);
    wait_for_all();
    if (in_time == other_was_in_time || times_cancelled(0) != 1) {
        explorer_fail("cancelled %d times, in time: %d and %d (S13)", times_cancelled(0), in_time,
                      other_was_in_time);
    }
    release_all();
    world_close();
}
MAIN(cancel_twice)

static void expect_at_rest(void)
{
    const char *wrong = timer_model_at_rest(scheduler);
    if (wrong != NULL) {
        explorer_fail("when nothing happens any more, %s", wrong);
    }
}

// Cancelled timers are freed, although the first pending one is far away; pending timers stay.
static void sweep_main(void)
{
    open_timers(1);
    set_first(LATER);
    set(0, LATER + 1000);
    explorer_settle(csched_site("settle"));
    size_t before = explorer_allocated();
    world_explore_without_time();
    for (int number = 1; number < 7; number++) {
        set(number, LATER + (uint64_t)number * 100000);
    }
    for (int number = 1; number < 7; number++) {
        cancel(number);
        release(number);
    }
    explorer_calm(true);
    explorer_settle(csched_site("settle"));
    expect_at_rest();
    // Of 8 timers 2 are pending: 1 + 2 may wait for a sweep; and 2 more if the canceller saw an older limit.
    if (explorer_allocated() > before + 5) {
        explorer_fail("%zu cancelled timers are kept (R2)", explorer_allocated() - before);
    }
    for (int number = 1; number < 7; number++) {
        if (times_cancelled(number) != 1) {
            explorer_fail("timer %d was told %d times (S13)", number, times_cancelled(number));
        }
    }
    if (times_run(0) + times_cancelled(0) + times_run(15) + times_cancelled(15) != 0) {
        explorer_fail("a pending timer was swept away (S1)");
    }
    release_all();
    shut_down(CSCHED_FOREVER);
    expect_told(1);
    world_close();
}
MAIN(sweep)

// The wheel is swept, too, concurrently with a canceller.
static void cancels_4_to_6(void)
{
    for (int number = 4; number < 7; number++) {
        cancel(number);
    }
}

static void sweep_wheel_main(void)
{
    open_timers(1);
    set_first(LATER);
    for (int number = 0; number < 7; number++) {
        set(number, LATER + 1000 + (uint64_t)number);
    }
    set(7, 0);
    explorer_settle(csched_site("settle"));
    size_t before = explorer_allocated();
    int other = thread_start("canceller", cancels_4_to_6);
    world_explore_without_time();
    for (int number = 1; number < 4; number++) {
        cancel(number);
    }
    thread_join(other);
    explorer_calm(true);
    explorer_settle(csched_site("settle"));
    expect_at_rest();
    for (int number = 1; number < 7; number++) {
        release(number);
    }
    // Two are pending, and 1 + 2 may wait for a sweep; and one more if the canceller saw an older limit.
    if (explorer_allocated() > before - 2) {
        explorer_fail("%zu cancelled timers are kept (R2)", explorer_allocated() + 6 - before);
    }
    release_all();
    shut_down(CSCHED_FOREVER);
    expect_told(7);
    world_close();
}
MAIN(sweep_wheel)

// MARK: Again and again

static int times; // plain: runs of one timer are ordered

static void counts(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra;
    explorer_plain_write(csched_site("times"), &times);
    if (disposition == CSCHED_RUN) {
        times++;
    } else {
        ran(0, disposition);
    }
}

static void repeat(uint64_t delay_ns, uint64_t interval_ns)
{
    times = 0;
    csched_operation what = operation_with(0, counts);
    csched_check(csched_submit_every(scheduler, &what, delay_ns, interval_ns, &timers[0]) == CSCHED_OK,
                 "set");
}

static void expect_stopped(void)
{
    if (times_cancelled(0) != 1) {
        explorer_fail("a timer that repeats was told %d times that it ends (S13)", times_cancelled(0));
    }
}

// Cancelled by another thread at any time.
static void repeat_main(void)
{
    open_timers(1);
    world_explore();
    repeat(0, 20000);
    was_in_time[0] = csched_timer_cancel(timers[0]);
    if (!was_in_time[0]) {
        explorer_fail("a timer that repeats was not cancelled (S13)");
    }
    wait_for_all();
    expect_stopped();
    release_all();
    world_close();
}
MAIN(repeat)

// Cancelled while it runs, and by itself: no run follows.
static void stops_itself(void *context, void *extra, csched_disposition disposition)
{
    counts(context, extra, disposition);
    if (disposition == CSCHED_RUN && times == 2) {
        csched_check(csched_timer_cancel(timers[0]), "cancel");
        if (times_cancelled(0) != 0) {
            explorer_fail("told of its end while it runs (S13)");
        }
    }
}

static void repeat_itself_main(void)
{
    open_timers(1);
    times = 0;
    world_explore();
    csched_operation what = operation_with(0, stops_itself);
    csched_check(csched_submit_every(scheduler, &what, 3000, 20000, &timers[0]) == CSCHED_OK, "set");
    wait_for_all();
    if (times != 2) {
        explorer_fail("it ran %d times (S1)", times);
    }
    expect_stopped();
    release_all();
    world_close();
}
MAIN(repeat_itself)

// Two workers, and a run that is longer than the interval: never two at once, and missed runs are skipped.
static uint64_t began_ns, last_ns;
static uint32_t inside;

static void takes_long(void *context, void *extra, csched_disposition disposition)
{
    if (csched_fetch_add(&inside, 1, relaxed) != 0) {
        explorer_fail("two runs of one timer at once (S9)");
    }
    counts(context, extra, disposition);
    uint64_t now = explorer_now_ns();
    if (disposition == CSCHED_RUN) {
        if (times > 1 && (now - began_ns) / 20000 <= (last_ns - began_ns) / 20000) {
            explorer_fail("two runs in one interval (S1)");
        }
        last_ns = now;
        while (explorer_now_ns() < now + 45000) {
        }
        if (times == 3) {
            csched_check(csched_timer_cancel(timers[0]), "cancel");
        }
    }
    csched_fetch_sub(&inside, 1, relaxed);
}

static void repeat_long_main(void)
{
    open_timers(2);
    times = 0;
    csched_init(&inside, 0);
    world_explore();
    csched_operation what = operation_with(0, takes_long);
    began_ns = explorer_now_ns() + 20000;
    csched_check(csched_submit_every(scheduler, &what, 20000, 20000, &timers[0]) == CSCHED_OK, "set");
    wait_for_all();
    expect_stopped();
    release_all();
    world_close();
}
MAIN(repeat_long)

// The interval is kept: no drift.
static uint64_t first_ns;

static void keeps_time(void *context, void *extra, csched_disposition disposition)
{
    counts(context, extra, disposition);
    if (disposition == CSCHED_RUN) {
        uint64_t now = explorer_now_ns();
        uint64_t due = first_ns + (uint64_t)(times - 1) * 100000;
        if (now < due || now > due + 50000) {
            explorer_fail("run %d came at %lld ns of its time (S1)", times, (long long)(now - due));
        }
        if (times == 4) {
            csched_check(csched_timer_cancel(timers[0]), "cancel");
        }
    }
}

static void repeat_in_time_main(void)
{
    open_timers(1);
    times = 0;
    csched_operation what = operation_with(0, keeps_time);
    first_ns = explorer_now_ns() + 3000;
    csched_check(csched_submit_every(scheduler, &what, 3000, 100000, &timers[0]) == CSCHED_OK, "set");
    wait_for_all();
    expect_stopped();
    release_all();
    world_close();
}
MAIN(repeat_in_time)

// Undisturbed: a run of slightly more than two intervals skips times, and the next run comes at one of them.
static void leaves_out(void *context, void *extra, csched_disposition disposition)
{
    counts(context, extra, disposition);
    if (disposition == CSCHED_RUN) {
        uint64_t now = explorer_now_ns();
        if ((now - first_ns) % 100000 > 50000) {
            explorer_fail("run %d came between its times, at %lld ns (S1)", times,
                          (long long)(now - first_ns));
        }
        while (explorer_now_ns() < now + 260000) {
        }
        if (times == 3) {
            csched_check(csched_timer_cancel(timers[0]), "cancel");
        }
    }
}

static void repeat_leaves_out_main(void)
{
    open_timers(1);
    times = 0;
    csched_operation what = operation_with(0, leaves_out);
    first_ns = explorer_now_ns() + 3000;
    csched_check(csched_submit_every(scheduler, &what, 3000, 100000, &timers[0]) == CSCHED_OK, "set");
    wait_for_all();
    expect_stopped();
    release_all();
    world_close();
}
MAIN(repeat_leaves_out)

static void sets_none_again(void) { repeat(0, 0); }

static void repeat_never_main(void)
{
    open_timers(1);
    if (!stops("the interval is 0", sets_none_again)) {
        explorer_fail("an interval of 0 is taken (A1)");
    }
    world_close();
}
MAIN(repeat_never)

// A shutdown, of each kind, ends repeating timers.
static void repeat_and(uint64_t timeout_ns)
{
    open_timers(1);
    world_explore();
    repeat(0, 20000);
    shut_down(timeout_ns);
    explorer_calm(true);
    expect_stopped();
    if (csched_timer_cancel(timers[0])) {
        explorer_fail("cancelled after the end (S13)");
    }
    release_all();
    world_close();
}

static void repeat_and_drain_main(void) { repeat_and(CSCHED_FOREVER); }
MAIN(repeat_and_drain)

static void repeat_and_cancel_main(void) { repeat_and(0); }
MAIN(repeat_and_cancel)

// Cancelled while the scheduler ends.
static void shuts_down_at_once(void) { shut_down(0); }

static void repeat_to_the_end_main(void)
{
    open_timers(1);
    repeat(0, 20000);
    int other = thread_start("closer", shuts_down_at_once);
    world_explore();
    (void)csched_timer_cancel(timers[0]);
    explorer_calm(true);
    thread_join(other);
    expect_stopped();
    release_all();
    world_close();
}
MAIN(repeat_to_the_end)

// MARK: The end

// The first timer of all, concurrently with the shutdown.
static void tries_to_set_0(void)
{
    csched_operation what = operation(0);
    csched_status status = csched_submit_after(scheduler, &what, LATER, NULL);
    csched_check(status == CSCHED_OK || status == CSCHED_CLOSED, "set");
    accepted[0] = status == CSCHED_OK;
}

static void close_first_main(void)
{
    open_timers(1);
    int setter = thread_start("setter", tries_to_set_0);
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    thread_join(setter);
    explorer_calm(true);
    expect_accepted(1, true);
    world_close();
}
MAIN(close_first)

// The same with a timer that is not the first of its scheduler.
static void close_main(void)
{
    open_timers(1);
    set_first(LATER);
    int setter = thread_start("setter", tries_to_set_0);
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    thread_join(setter);
    explorer_calm(true);
    expect_accepted(1, true);
    if (times_cancelled(15) != 1) {
        explorer_fail("a pending timer was told %d times (S13)", times_cancelled(15));
    }
    csched_operation late = apart(14);
    if (csched_submit_after(scheduler, &late, 0, NULL) != CSCHED_CLOSED) {
        explorer_fail("a timer after the end was accepted (S14)");
    }
    release_all();
    world_close();
}
MAIN(close)

// Closed, without a timer before.
static void closed_main(void)
{
    open_timers(1);
    shut_down(CSCHED_FOREVER);
    size_t before = explorer_allocated();
    csched_operation late = apart(14);
    if (csched_submit_after(scheduler, &late, 0, NULL) != CSCHED_CLOSED || explorer_allocated() != before) {
        explorer_fail("a timer after the end was accepted (S14)");
    }
    world_close();
}
MAIN(closed)

// A timer fires while the scheduler closes: its operation is run, or notified that it will not be.
static void fire_and_close_main(void)
{
    open_timers(1);
    set_first(LATER);
    world_explore();
    set(0, 0);
    csched_scheduler_close(scheduler);
    wait_for_all();
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_told(1);
    release_all();
    world_close();
}
MAIN(fire_and_close)

// Cancelled while the scheduler ends.
static void cancels_timer_0(void) { was_in_time[0] = csched_timer_cancel(timers[0]); }

static void cancel_and_close_main(void)
{
    open_timers(1);
    set(0, LATER);
    explorer_settle(csched_site("settle"));
    int other = thread_start("canceller", cancels_timer_0);
    world_explore_without_time();
    shut_down(CSCHED_FOREVER);
    thread_join(other);
    explorer_calm(true);
    expect_told(1);
    release_all();
    world_close();
}
MAIN(cancel_and_close)

// The end meets timers in every place: the inbox, the backlog, the wheel.
static void close_burst_main(void)
{
    open_timers(1);
    set_first(LATER);
    set(0, LATER);
    world_explore_without_time();
    for (int number = 1; number < 7; number++) {
        set(number, number % 2 == 0 ? 0 : LATER);
    }
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    expect_told(7);
    release_all();
    world_close();
}
MAIN(close_burst)

// Timers are notified of the end on the timers' thread, which cannot wait for itself.
static bool was_there;

static void shuts_down_inside(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    was_there = csched_timer_is_own_thread();
    if (csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) != CSCHED_WOULD_DEADLOCK) {
        explorer_fail("a shutdown waits for its own thread (S13)");
    }
    ran(number_of(context), disposition);
}

static void end_inside_main(void)
{
    open_timers(1);
    was_there = false;
    csched_operation what = operation_with(0, shuts_down_inside);
    csched_check(csched_submit_after(scheduler, &what, LATER, NULL) == CSCHED_OK, "set");
    shut_down(CSCHED_FOREVER);
    if (!was_there || csched_timer_is_own_thread()) {
        explorer_fail("a timer was not cancelled on their thread (A1)");
    }
    world_close();
}
MAIN(end_inside)

// No thread can be created.
static void passes_gate_3(void) { gate_pass(&gates[3]); }

static void no_thread_main(void)
{
    open_timers(1);
    int others[EXPLORER_THREADS];
    int count = 0;
    while (explorer_threads() < EXPLORER_THREADS) {
        others[count++] = thread_start("other", passes_gate_3);
    }
    csched_operation what = operation(0);
    if (csched_submit_after(scheduler, &what, 0, NULL) != CSCHED_THREAD_CREATION_FAILED ||
        csched_completion_outstanding(counter) != 0) {
        explorer_fail("a timer without a thread was accepted (S14)");
    }
    gate_open(&gates[3]);
    while (count > 0) {
        thread_join(others[--count]);
    }
    world_close();
}
MAIN(no_thread)

static void fork_main(void)
{
    open_timers(1);
    set_first(LATER);
    pthread_model_fork(false);
    set(0, 0);
    wait_for_all();
    explorer_settle(csched_site("settle"));
    pthread_model_fork(true);
    csched_operation late = operation(2);
    if (csched_submit_after(scheduler, &late, 0, NULL) != CSCHED_CLOSED) {
        explorer_fail("a forked child's scheduler accepts a timer (A1)");
    }
    if (csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) != CSCHED_OK) {
        explorer_fail("a forked child's scheduler waits for its parent's timers (A1)");
    }
    csched_scheduler_destroy(scheduler);
    expect_ran(1);
    release_all();
    timer_model_end_parents_thread(scheduler);
}
MAIN(fork)

// MARK: Threads that stop for ever

static void sets_freely(void)
{
    csched_operation what = apart(0);
    (void)csched_submit_after(scheduler, &what, 0, NULL);
}

static void cancels_freely(void) { (void)csched_timer_cancel(timers[1]); }

static void free_main(void)
{
    open_timers(2);
    csched_operation what = apart(1);
    csched_check(csched_submit_after(scheduler, &what, UINT64_MAX, &timers[1]) == CSCHED_OK, "set");
    explorer_settle(csched_site("settle"));
    int one = thread_start("setter", sets_freely);
    int other = thread_start("canceller", cancels_freely);
    world_explore_without_time();
    explorer_settle(csched_site("settle"));
    what = apart(2);
    csched_check(csched_submit_after(scheduler, &what, 0, NULL) == CSCHED_OK, "set");
    gate_open(&gates[3]);
    if (!explorer_freezes()) {
        thread_join(one);
        thread_join(other);
        explorer_settle(csched_site("settle"));
        release_all();
        world_close();
    }
}

// A stopped setter or canceller keeps only its own timer. A worker may stop with the operation, and the
// timers' thread with all of them.
static void free_check_frozen(int frozen)
{
    if (frozen != 4 && frozen != 5) {
        return;
    }
    if (gates[3].open != 0 && times_run(2) != 1) {
        explorer_fail("a timer was run %d times after a thread had stopped (S2)", times_run(2));
    }
    if (frozen == 5 && times_run(0) != 1) {
        explorer_fail("a timer was run %d times beside a thread that stopped (S2)", times_run(0));
    }
}
MAIN(free)

// MARK: The wheel

// A timer fires at the first tick that does not begin before its deadline.
static void ticks_main(void)
{
    for (uint64_t time = 0; time < 200; time++) {
        uint64_t begins = timer_model_tick_of(time) << CSCHED_TICK_SHIFT;
        if (begins < time || begins >= time + (UINT64_C(1) << CSCHED_TICK_SHIFT)) {
            explorer_fail("a timer of %llu fires at %llu (S1)", (unsigned long long)time,
                          (unsigned long long)begins);
        }
    }
    if (timer_model_tick_of(UINT64_MAX) != CSCHED_TICK_LAST) {
        explorer_fail("a timer beyond all times fires (S1)");
    }
}
MAIN(ticks)

enum { ENTRIES = 24 };

// An entry is taken when its tick has come, once, and the wheel reports when that is.
static void wheel_main(void)
{
    static csched_wheel wheel;
    static csched_wheel_entry entries[ENTRIES];
    static const uint64_t ticks[ENTRIES] = {5,  6,  7,  8,   9,   15,   16,   17,   18,         20,  63,  64,
                                            65, 79, 80, 255, 256, 1023, 1024, 1025, UINT32_MAX, 100, 101, 0};
    for (uint64_t start = 0; start < 70; start += 3) {
        for (uint64_t step = 1; step < 300; step = step * 2 + 1) {
            csched_wheel_init(&wheel, start);
            bool taken[ENTRIES] = {false};
            for (int index = 0; index < ENTRIES; index++) {
                entries[index].tick = ticks[index];
                csched_wheel_insert(&wheel, &entries[index]);
            }
            uint64_t now = start;
            for (int left = ENTRIES; left > 0;) {
                uint64_t first = UINT64_MAX;
                for (int index = 0; index < ENTRIES; index++) {
                    if (!taken[index] && ticks[index] < first) {
                        first = ticks[index];
                    }
                }
                uint64_t next = csched_wheel_next(&wheel);
                if (next > first && next > now) {
                    explorer_fail("the wheel wants to be moved at %llu, and an entry is due at %llu (S1)",
                                  (unsigned long long)next, (unsigned long long)first);
                }
                if (next > now + step) {
                    if (csched_wheel_take(&wheel, now + step) != NULL) {
                        explorer_fail("an entry is taken before its tick (S1)");
                    }
                    now = next > now + 3 * step ? next - step : now + step;
                    continue;
                }
                now += step;
                for (csched_wheel_entry *each; (each = csched_wheel_take(&wheel, now)) != NULL;) {
                    for (; each != NULL; each = each->next) {
                        if (each->tick > now || taken[each - entries]) {
                            explorer_fail("an entry of %llu is taken at %llu, or again (S1)",
                                          (unsigned long long)each->tick, (unsigned long long)now);
                        }
                        taken[each - entries] = true;
                        left--;
                    }
                }
                for (int index = 0; index < ENTRIES; index++) {
                    if (!taken[index] && ticks[index] <= now) {
                        explorer_fail("an entry of %llu is left at %llu (S1)",
                                      (unsigned long long)ticks[index], (unsigned long long)now);
                    }
                }
            }
            if (csched_wheel_next(&wheel) != UINT64_MAX) {
                explorer_fail("an empty wheel wants to be moved (S1)");
            }
        }
    }
}
MAIN(wheel)

static bool is_odd(csched_wheel_entry *entry, void *context)
{
    (void)context;
    return entry->tick % 2 != 0;
}

static void wheel_filter_main(void)
{
    static csched_wheel wheel;
    static csched_wheel_entry entries[ENTRIES];
    csched_wheel_init(&wheel, 3);
    for (int index = 0; index < ENTRIES; index++) {
        entries[index].tick = (uint64_t)index * (uint64_t)index / 2;
        csched_wheel_insert(&wheel, &entries[index]);
    }
    csched_wheel_filter(&wheel, is_odd, NULL);
    int taken = 0, odd = 0;
    for (csched_wheel_entry *each; (each = csched_wheel_take(&wheel, UINT32_MAX)) != NULL;) {
        for (; each != NULL; each = each->next) {
            taken++;
            if (each->tick % 2 == 0) {
                explorer_fail("an entry was filtered out, and taken (S1)");
            }
        }
    }
    for (int index = 0; index < ENTRIES; index++) {
        odd += entries[index].tick % 2 != 0;
    }
    if (taken != odd) {
        explorer_fail("%d of %d entries are left (S1)", taken, odd);
    }
}
MAIN(wheel_filter)

static void memory_setup(void) { world_setup(memory_main); }

const explorer_program timer_scenarios[] = {
    SCENARIO("timer", first, "S1 S3", "the first timer of a scheduler"),
    SCENARIO("timer", first_twice, "S1 S3", "two threads set the first timer of a scheduler"),
    SCENARIO("timer", earlier, "S1 S3", "a timer that is due earlier, while the thread falls asleep"),
    SCENARIO("timer", together, "S1 S3", "two threads set timers while their thread sleeps"),
    SCENARIO("timer", early, "S1", "timers do not fire too early"),
    SCENARIO("timer", order, "S9", "timers fire in their order, and in time"),
    SCENARIO("timer", burst, "S1 S3", "more timers than are taken at once"),
    SCENARIO("timer", call, "A1 S13", "a call on the timers' own thread"),
    SCENARIO("timer", memory, "S1 S6", "memory runs out", .allocations_fail = true),
    SCENARIO("timer", memory_later, "S1 S6", "memory runs out while timers fire"),
    SCENARIO("timer", cancel, "S13 R1", "a timer is cancelled while it fires"),
    SCENARIO("timer", release, "S1 R1", "a timer is given up while it fires"),
    SCENARIO("timer", cancel_twice, "S13 R1", "two threads cancel a timer"),
    SCENARIO("timer", sweep, "R2 S13", "timers that were cancelled early do not pile up"),
    SCENARIO("timer", sweep_wheel, "R2 S13", "timers that were cancelled late do not pile up"),
    SCENARIO("timer", repeat, "S13 R1", "a timer that repeats is cancelled"),
    SCENARIO("timer", repeat_itself, "S13 S1", "a timer that repeats cancels itself"),
    SCENARIO("timer", repeat_long, "S9 S1", "a run is longer than its interval"),
    SCENARIO("timer", repeat_in_time, "S1", "a timer that repeats keeps its time"),
    SCENARIO("timer", repeat_leaves_out, "S1", "a timer that repeats leaves times out"),
    SCENARIO("timer", repeat_never, "A1", "an interval of 0"),
    SCENARIO("timer", repeat_and_drain, "S13", "a shutdown ends what repeats"),
    SCENARIO("timer", repeat_and_cancel, "S13 C1", "a shutdown that cancels ends what repeats"),
    SCENARIO("timer", repeat_to_the_end, "S13 R1", "what repeats is cancelled beside a shutdown"),
    SCENARIO("timer", close_first, "S13 S14", "the first timer beside a shutdown"),
    SCENARIO("timer", close, "S13 S14", "a timer beside a shutdown"),
    SCENARIO("timer", closed, "S14", "a first timer after the end"),
    SCENARIO("timer", fire_and_close, "S13", "a timer fires while the scheduler closes"),
    SCENARIO("timer", cancel_and_close, "S13 R1", "a timer is cancelled beside a shutdown"),
    SCENARIO("timer", close_burst, "S13", "a shutdown meets timers everywhere"),
    SCENARIO("timer", end_inside, "A1 S13", "a shutdown on the timers' own thread"),
    SCENARIO("timer", no_thread, "S14 S6", "no thread can be made"),
    SCENARIO("timer", fork, "A1", "a forked child", .leaks = true),
    SCENARIO("timer", free, "S2 S3", "any thread stops for ever", .check_frozen = free_check_frozen),
    SCENARIO("timer", ticks, "S1", "times and ticks"),
    SCENARIO("timer", wheel, "S1", "the wheel by itself"),
    SCENARIO("timer", wheel_filter, "R2 S1", "the wheel is swept"),
};
const size_t timer_scenario_count = sizeof timer_scenarios / sizeof timer_scenarios[0];
