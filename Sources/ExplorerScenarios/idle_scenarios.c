// idle_scenarios.c - who sleeps and who wakes, without the rest of the scheduler: a number is published,
// workers take it.

#include "world.h"

#include "idle.h"
#include "scenarios.h"

enum { SUBMISSIONS_MOST = 4 };

static csched_idle idle;
static csched_atomic(uint32_t) published;
static csched_atomic(uint32_t) taken;
static int
    submitter_of[SUBMISSIONS_MOST]; // plain: by the number that was published; -1: nobody has come back yet

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

// As a worker's search, for ever. `after` is done with what was taken.
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

// A submission that has returned is taken, unless a worker has stopped with it in its hand.
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

// One worker, and a thread that stops in the middle of its wake-up: the next one finishes it.
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

// A waker is slow, and finishes in a later sleep, in which another one has stopped in the middle.
static void epochs_setup(void)
{
    begin();
    start_worker(first_worker_and_gate);
    explorer_daemon(
        explorer_spawn("submitter", submits_behind_the_gate, NULL)); // the worker may stop before it
    (void)explorer_spawn("submitter", submits_two, NULL);
}

// Both sleepers are woken, and know what was written before; nobody looks behind the last of them, though
// another worker is awake and searches.
static csched_idle *crew; // with nothing behind it that may be touched
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

const explorer_program idle_scenarios[] = {
    SCENARIO("idle", one, "S2 S3", "one worker, two submitters", .daemons = true, .frozen_bound = 1,
             .check_frozen = one_check),
    SCENARIO("idle", two, "S2 S3", "two workers, three submissions", .daemons = true, .frozen_bound = 1,
             .check_frozen = two_check),
    SCENARIO("idle", epochs, "S2 S3", "a slow waker finishes in a later sleep", .daemons = true,
             .frozen_bound = 1, .check_frozen = one_check),
    SCENARIO("idle", all, "S3", "all are woken, and know what was written before", .check = all_check),
};
const size_t idle_scenario_count = sizeof idle_scenarios / sizeof idle_scenarios[0];
