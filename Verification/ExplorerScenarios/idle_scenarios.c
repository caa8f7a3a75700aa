// idle_scenarios.c - sleeping and waking, without the rest of the scheduler: numbers are published, and
// workers take them.

#include "world.h"

#include "idle.h"
#include "pace.h"
#include "scenarios.h"

enum { SUBMISSIONS_MOST = 6 };

static csched_idle idle;
static csched_atomic(uint32_t) published;
static csched_atomic(uint32_t) taken;
static int
    submitter_of[SUBMISSIONS_MOST]; // plain, by published number; -1: its submission has not returned yet

static void begin(void)
{
    world_begin();
    csched_idle_init(&idle);
    csched_init(&published, 0);
    csched_init(&taken, 0);
    for (int number = 0; number < SUBMISSIONS_MOST; number++) {
        submitter_of[number] = -1;
    }
}

static void submit_one(void)
{
    uint32_t number = csched_fetch_add(&published, 1, seq_cst);
    csched_idle_after_submit(&idle);
    submitter_of[number] = explorer_self();
}

static bool take_one(void)
{
    uint32_t seen = csched_load(&taken, acquire);
    while (seen < csched_load(&published, acquire)) {
        if (csched_cas(&taken, &seen, seen + 1, acq_rel, acquire)) {
            return true;
        }
    }
    return false;
}

static bool is_any_left(void) { return csched_load(&taken, acquire) < csched_load(&published, seq_cst); }

// Searches as a worker does, for ever. `after` is called after each take.
static void work(uint32_t index, void (*after)(void))
{
    csched_idle_search(&idle);
    for (;;) {
        if (take_one()) {
            if (csched_idle_found(&idle) == CSCHED_LAST_TO_LOOK && is_any_left()) {
                csched_idle_wake_one(&idle);
            }
            after();
            csched_idle_search(&idle);
            continue;
        }
        (void)csched_idle_announce(&idle, index);
        if (!is_any_left()) {
            csched_idle_sleep(&idle, index, UINT64_MAX);
        }
        (void)csched_idle_rise(&idle, index);
    }
}

static void nothing(void) {}

static void opens_gate_0(void) { gate_open(&gates[0]); }

static void first_worker(void *unused)
{
    (void)unused;
    work(0, nothing);
}

static void second_worker(void *unused)
{
    (void)unused;
    work(1, nothing);
}

static void first_worker_and_gate(void *unused)
{
    (void)unused;
    work(0, opens_gate_0);
}

static void start_worker(void (*body)(void *))
{
    csched_idle_join(&idle);
    explorer_daemon(explorer_spawn("worker", body, NULL));
}

static void submits_one(void *unused)
{
    (void)unused;
    submit_one();
}

static void submits_two(void *unused)
{
    (void)unused;
    submit_one();
    submit_one();
}

static void submits_behind_the_gate(void *unused)
{
    (void)unused;
    gate_pass(&gates[0]);
    submit_one();
}

// Expects a submission that has returned to be taken, unless a worker has stopped while holding it.
static void expect_taken(bool is_worker)
{
    for (uint32_t number = csched_load(&taken, acquire); number < SUBMISSIONS_MOST; number++) {
        if (!is_worker && submitter_of[number] >= 0) {
            explorer_fail("submission %u is not taken, and all sleep (S3)", number);
        }
    }
}

static void one_check(int frozen) { expect_taken(frozen == 0); }
static void two_check(int frozen) { expect_taken(frozen == 0 || frozen == 1); }

// One worker, and a submitter that stops in the middle of a wake-up: the next one finishes it.
static void one_setup(void)
{
    begin();
    start_worker(first_worker);
    (void)explorer_spawn("submitter", submits_one, NULL);
    (void)explorer_spawn("submitter", submits_one, NULL);
}

static void two_setup(void)
{
    begin();
    start_worker(first_worker);
    start_worker(second_worker);
    (void)explorer_spawn("submitter", submits_one, NULL);
    (void)explorer_spawn("submitter", submits_two, NULL);
}

// A slow waker finishes during a later sleep, in which another waker has stopped halfway.
static void epochs_setup(void)
{
    begin();
    start_worker(first_worker_and_gate);
    explorer_daemon(
        explorer_spawn("submitter", submits_behind_the_gate, NULL)); // the worker may stop before opening it
    (void)explorer_spawn("submitter", submits_two, NULL);
}

// Both sleepers are woken, and see what was written before; no memory beyond the last of them is read,
// although another worker is awake and searching.
static csched_idle *crew; // nothing behind it may be touched
static int written;       // plain

static void sleeps(uint32_t index)
{
    csched_idle_join(crew);
    csched_idle_search(crew);
    (void)csched_idle_announce(crew, index);
    gate_open(&gates[index]);
    csched_idle_sleep(crew, index, CSCHED_FOREVER);
    if (csched_idle_rise(crew, index)) {
        explorer_plain_read(csched_site("written"), &written);
    }
}

static void first_sleeper(void *unused)
{
    (void)unused;
    sleeps(0);
}

static void second_sleeper(void *unused)
{
    (void)unused;
    sleeps(1);
}

static void wakes_all(void *unused)
{
    (void)unused;
    csched_idle_join(crew);
    csched_idle_search(crew);
    gate_pass(&gates[0]);
    gate_pass(&gates[1]);
    explorer_plain_write(csched_site("written"), &written);
    csched_idle_wake_all(crew);
}

static void all_setup(void)
{
    begin();
    crew = csched_allocate(sizeof *crew, CSCHED_LINE);
    csched_idle_init(crew);
    (void)explorer_spawn("sleeper", first_sleeper, NULL);
    (void)explorer_spawn("sleeper", second_sleeper, NULL);
    (void)explorer_spawn("waker", wakes_all, NULL);
}

static void all_check(void) { csched_free(crew); }

// Submissions come one after another while both workers sleep: the lowest is woken; in a crowd, the worker
// that was not woken last (W8).
static int taker; // plain: the worker that took the last number

static void takes_as_first(void) { taker = 0; }
static void takes_as_second(void) { taker = 1; }

static void first_taker(void *unused)
{
    (void)unused;
    work(0, takes_as_first);
}

static void second_taker(void *unused)
{
    (void)unused;
    work(1, takes_as_second);
}

static void expect_taker(int expected)
{
    taker = -1;
    submit_one();
    explorer_settle(csched_site("settle"));
    if (!explorer_freezes() && taker != expected) {
        explorer_fail("worker %d was woken instead of worker %d (W8)", taker, expected);
    }
}

static void submits_in_turn(void *unused)
{
    (void)unused;
    explorer_settle(csched_site("settle"));
    expect_taker(0);
    expect_taker(0);
    csched_idle_note_crowd(&idle, true);
    expect_taker(1);
    expect_taker(0);
    expect_taker(1);
    csched_idle_note_crowd(&idle, false);
    expect_taker(0);
}

static void turns_setup(void)
{
    begin();
    start_worker(first_taker);
    start_worker(second_taker);
    (void)explorer_spawn("submitter", submits_in_turn, NULL);
}

// The scenario `two`, in a crowd.
static void crowd_setup(void)
{
    two_setup();
    csched_idle_note_crowd(&idle, true);
}

// On guard, one looker is enough: when it stops, the watch comes back (W9).
static void submits_three(void *unused)
{
    submits_two(unused);
    submit_one();
}

// Acts as the watch; returns whether it owes another check.
static bool stand_guard(bool on, bool owes)
{
    if (!csched_idle_guard(&idle, on) && !owes) {
        return on;
    }
    bool waits = is_any_left();
    if (waits) {
        csched_idle_wake_one(&idle);
    }
    return waits;
}

static void stand_guard_until_calm(bool on)
{
    for (bool owes = false; (owes = stand_guard(on, owes));) {
        explorer_settle(csched_site("settle"));
    }
}

static void comes_back(void *unused)
{
    (void)unused;
    explorer_settle(csched_site("settle"));
    stand_guard_until_calm(true);
}

static void goes_off_guard(void *unused)
{
    (void)unused;
    stand_guard_until_calm(false);
}

static void guard_with(void (*body)(void *unused))
{
    begin();
    (void)csched_idle_guard(&idle, true);
    start_worker(first_worker);
    start_worker(second_worker);
    (void)explorer_spawn("submitter", submits_three, NULL);
    (void)explorer_spawn("watch", body, NULL);
}

static int submissions_missing(void)
{
    int missing = 0;
    for (uint32_t number = csched_load(&taken, acquire); number < SUBMISSIONS_MOST; number++) {
        missing += submitter_of[number] >= 0;
    }
    return missing;
}

static void guard_setup(void) { guard_with(comes_back); }

static void guard_check(int frozen)
{
    (void)frozen;
    if (submissions_missing() != 0) {
        explorer_fail("somebody came back, and %d submissions are not taken (S2)", submissions_missing());
    }
}

// Off guard, a worker that stops keeps the last wake-up that it received (W4).
static void guard_ends_setup(void) { guard_with(goes_off_guard); }

static void guard_ends_check(int frozen)
{
    if (submissions_missing() > (frozen == 0 || frozen == 1)) {
        explorer_fail("the guard has ended, and %d submissions are not taken (S2)", submissions_missing());
    }
}

// The guard ends during a submission, after the first of two sleepers was woken and has stopped.
static void looks_once(void *unused)
{
    (void)unused;
    (void)stand_guard(false, false);
}

static void fall_asleep(uint32_t worker)
{
    csched_idle_search(&idle);
    (void)csched_idle_announce(&idle, worker);
}

static void both_fall_asleep(void)
{
    fall_asleep(0);
    fall_asleep(1);
}

static void guard_is_off_setup(void)
{
    begin();
    csched_idle_join(&idle);
    csched_idle_join(&idle);
    (void)csched_idle_guard(&idle, true);
    both_fall_asleep();
    csched_idle_wake(&idle, 0);
    (void)explorer_spawn("submitter", submits_one, NULL);
    (void)explorer_spawn("watch", looks_once, NULL);
}

static void guard_is_off_check(void)
{
    if (!csched_idle_rise(&idle, 1)) {
        explorer_fail("the guard has ended, and all count on a worker that has stopped (S2)");
    }
}

// Submissions follow one another before any worker has woken up: on guard they wake one looker, off guard
// two.
static void expect_woken(int submissions, bool first, bool second)
{
    for (; submissions != 0; submissions--) {
        csched_idle_after_submit(&idle);
    }
    bool first_was = csched_idle_rise(&idle, 0);
    bool second_was = csched_idle_rise(&idle, 1);
    if (first_was != first || second_was != second) {
        explorer_fail("of two sleepers %d, %d were woken instead of %d, %d (W9)", first_was, second_was,
                      first, second);
    }
    (void)csched_idle_found(&idle);
    (void)csched_idle_found(&idle);
}

static void submits_as_they_sleep(void *unused)
{
    (void)unused;
    csched_idle_join(&idle);
    csched_idle_join(&idle);
    (void)csched_idle_guard(&idle, true);
    both_fall_asleep();
    expect_woken(2, true, false);
    both_fall_asleep();
    (void)csched_idle_become_sentry(&idle, 1); // a sentry is not a looker (W9)
    expect_woken(2, true, false);
    both_fall_asleep();
    csched_idle_note_crowd(&idle, true);
    csched_idle_wake(&idle, 1); // not the lowest, and counted before another worker is woken
    expect_woken(1, false, true);
    csched_idle_note_crowd(&idle, false);
    both_fall_asleep();
    csched_idle_search(&idle); // a third worker, which is enough
    expect_woken(1, false, false);
    both_fall_asleep();
    if (!csched_idle_guard(&idle, false) || csched_idle_guard(&idle, false)) {
        explorer_fail("the guard does not know whether it was on (W9)");
    }
    expect_woken(1, true, false);
    both_fall_asleep();
    (void)csched_idle_found(&idle); // the third worker has left
    expect_woken(2, true, true);
}

static void guard_wakes_setup(void)
{
    begin();
    (void)explorer_spawn("submitter", submits_as_they_sleep, NULL);
}

// Searches, each after a run of a given number of operations, in a crowd or not: which of them yield
// (pace.c).
static csched_pace pace;
static uint64_t done;

// A yield reads the clock twice, at 1 us each, if no other thread reads it.
static void set_crowd(bool crowded) { slow_yield_ns = crowded ? 1000 : 1001; }

// Whether a search may yield at all, and again after its first yield.
static void expect_look(uint64_t run, bool may_yield, bool may_again)
{
    done += run;
    bool calm = csched_pace_begin(&pace, done);
    bool again = calm && csched_pace_yield(&pace, true);
    if (calm != may_yield || again != may_again) {
        explorer_fail("a search yields %d, %d instead of %d, %d", calm, again, may_yield, may_again);
    }
}

static void expect_yield(bool may_again)
{
    if (csched_pace_yield(&pace, false) != may_again) {
        explorer_fail("after a later yield the search %s", may_again ? "ends" : "goes on");
    }
}

// The same for a search that ends in sleep.
static void expect_search(uint64_t run, bool may_yield, bool may_again)
{
    expect_look(run, may_yield, may_again);
    csched_pace_sleep(&pace, done);
}

static void expect_searches(int count, uint64_t run, bool may_yield)
{
    for (int search = 0; search < count; search++) {
        expect_search(run, may_yield, may_yield);
    }
}

static void expect_slow(int searches, uint64_t run)
{
    expect_search(run, true, false);
    expect_searches(searches, run, false);
}

static void searches(void *unused)
{
    (void)unused;
    csched_pace_init(&pace);
    expect_searches(3, 1, true);

    set_crowd(true); // after a slow yield 2 searches do not yield, after the next 5, the most
    expect_slow(2, 1);
    expect_slow(5, 1);
    expect_slow(5, 1);

    set_crowd(false); // each search with a quick yield halves that: 2, 1, 0
    expect_searches(3, 1, true);
    set_crowd(true);
    expect_search(1, true, false);
    expect_search(1, false, false);
    expect_look(3, false, false); // work found at the only look extends the run; a long run ends the haste
    expect_look(4, false, false);
    expect_look(1, true, true);
    expect_searches(12, 2, true); // runs of two justify a slow yield, empty runs do not
    expect_slow(5, 0);
    expect_search(0, true, false);
    expect_search(7, false, false);
    expect_search(2, false, false); // just long enough on average: the haste ends before its time
    expect_search(2, true, true);

    set_crowd(false); // later yields of a search halve nothing, and any of them may be slow
    expect_searches(3, 0, true);
    set_crowd(true);
    expect_slow(2, 0);
    expect_slow(5, 0);
    set_crowd(false);
    expect_look(0, true, true);
    expect_yield(true);
    set_crowd(true);
    expect_yield(false);
    csched_pace_sleep(&pace, done);
    expect_searches(5, 0, false);
    expect_search(0, true, false);
}

// Searches after runs whose operations each take as long as one reading of the clock, or half as long: in a
// run of one and in a run of two, respectively, if no other thread reads the clock in between.
static void expect_look_at(int times, uint64_t run, bool may_yield)
{
    while (times-- > 0) {
        (void)explorer_now_ns();
    }
    expect_search(run, may_yield, may_yield);
}

static void searches_of_slow_ones(void *unused)
{
    (void)unused;
    slow_operation_ns = 1000;
    set_crowd(false);
    csched_pace_init(&pace);
    expect_searches(3, 2, true);  // the first reading of the clock belongs to no run
    expect_searches(1, 1, true);  // one slow run of three
    expect_searches(3, 1, false); // two, then all three: at most three count
    expect_search(2, false, false);
    expect_searches(3, 2, true);
    expect_search(1, true, true);
    expect_search(1, false, false);
    expect_search(0, false, false); // no operation, no run
    expect_search(2, true, true);

    expect_look_at(1, 2, false); // the time of a run counts: at the limit it is slow
    expect_search(2, true, true);
    expect_search(2, true, true);
    for (int search = 0; search < 3; search++) { // the time of a sleep does not count
        (void)explorer_now_ns();
        csched_pace_wake(&pace, explorer_now_ns());
        expect_search(2, true, true);
    }
}

static void slow_setup(void)
{
    begin();
    done = 0;
    (void)explorer_spawn("worker", searches_of_slow_ones, NULL);
}

static void pace_setup(void)
{
    begin();
    done = 0;
    (void)explorer_spawn("worker", searches, NULL);
}

const explorer_program idle_scenarios[] = {
    SCENARIO("idle", one, "S2 S3", "one worker, two submitters", .daemons = true, .frozen_bound = 1,
             .check_frozen = one_check),
    SCENARIO("idle", two, "S2 S3", "two workers, three submissions", .daemons = true, .frozen_bound = 1,
             .check_frozen = two_check),
    SCENARIO("idle", epochs, "S2 S3", "a slow waker finishes in a later sleep", .daemons = true,
             .frozen_bound = 1, .check_frozen = one_check),
    SCENARIO("idle", crowd, "S2 S3", "the same in a crowd", .daemons = true, .frozen_bound = 1,
             .check_frozen = two_check),
    SCENARIO("idle", guard, "S2 S3", "one looker is enough while somebody comes back", .daemons = true,
             .frozen_bound = 1, .check_frozen = guard_check),
    SCENARIO("idle", guard_ends, "S2 S3", "the guard ends beside submissions", .daemons = true,
             .frozen_bound = 1, .check_frozen = guard_ends_check),
    SCENARIO("idle", guard_is_off, "S2 S3", "the same, while a worker has stopped",
             .check = guard_is_off_check),
    SCENARIO("idle", guard_wakes, "S3", "whom submissions wake on guard, and off it"),
    SCENARIO("idle", pace, "S12", "which searches yield"),
    SCENARIO("idle", slow, "S12", "which searches yield after slow operations"),
    SCENARIO("idle", turns, "S3", "in a crowd the two lowest take turns", .daemons = true,
             .check_frozen = two_check),
    SCENARIO("idle", all, "S3", "all are woken, and know what was written before", .check = all_check),
};
const size_t idle_scenario_count = sizeof idle_scenarios / sizeof idle_scenarios[0];
