// capacity_scenarios.c - submitters find the scheduler full, and sleep until there is room.

#include "world.h"

#include "capacity.h"
#include "scenarios.h"

static csched_capacity capacity;
static csched_atomic(uint32_t) control;
static csched_atomic(uint32_t) inside;

enum { CLOSED = 1 };

static void begin(uint64_t limit)
{
    world_begin();
    csched_capacity_init(&capacity, limit, CSCHED_WHEN_FULL_SUSPEND);
    csched_init(&control, 0);
    csched_init(&inside, 0);
}

// Counted after entering and before leaving, so the count is never above the limit.
static void come(uint32_t count)
{
    if (csched_fetch_add(&inside, count, seq_cst) + count > capacity.limit) {
        explorer_fail("more wait than there is room for (K1)");
    }
}

static void go(uint32_t count)
{
    csched_fetch_sub(&inside, count, seq_cst);
    csched_capacity_leave(&capacity, count);
}

static void enters(uint32_t count)
{
    if (csched_capacity_enter(&capacity, count, &control, CLOSED)) {
        come(count);
        go(count);
    } else if (csched_load(&control, seq_cst) == 0) {
        explorer_fail("a submission was refused and nothing is closed (S14)");
    }
}

static void enters_one(void *unused)
{
    (void)unused;
    enters(1);
}

static void enters_two(void *unused)
{
    (void)unused;
    enters(2);
}

static void tries(void *unused)
{
    (void)unused;
    if (csched_capacity_try_enter(&capacity, 1)) {
        come(1);
        go(1);
    }
}

static void check(void)
{
    if (csched_load(&capacity.pending, seq_cst) != 0 || csched_load(&capacity.waiting, seq_cst) != 0) {
        explorer_fail("somebody is still counted (S6)");
    }
}

// One place, and three submitters that want it.
static void full_setup(void)
{
    begin(1);
    (void)explorer_spawn("submitter", enters_one, NULL);
    (void)explorer_spawn("submitter", enters_one, NULL);
    (void)explorer_spawn("impatient", tries, NULL);
}

// A submitter that needs both places, alongside submitters that need one.
static void bulk_setup(void)
{
    begin(2);
    (void)explorer_spawn("submitter", enters_two, NULL);
    (void)explorer_spawn("submitter", enters_one, NULL);
    (void)explorer_spawn("submitter", enters_one, NULL);
}

// The scheduler closes, and there is never room.
static void closes(void *unused)
{
    (void)unused;
    csched_store(&control, CLOSED, seq_cst);
    csched_capacity_interrupt(&capacity);
}

static void close_check(void)
{
    csched_capacity_leave(&capacity, 1);
    check();
}

static void close_setup(void)
{
    begin(1);
    csched_check(csched_capacity_try_enter(&capacity, 1), "no room");
    (void)explorer_spawn("submitter", enters_one, NULL);
    (void)explorer_spawn("closer", closes, NULL);
}

// The scheduler closes while a place is released and taken by another submitter, which keeps it.
static void leaves_one(void *unused)
{
    (void)unused;
    go(1);
}

static void stays(void *unused)
{
    (void)unused;
    if (csched_capacity_try_enter(&capacity, 1)) {
        come(1);
    }
}

static void close_full_check(void)
{
    uint32_t left = csched_load(&inside, seq_cst);
    if (left != 0) {
        go(left);
    }
    check();
}

static void close_full_setup(void)
{
    begin(1);
    csched_check(csched_capacity_try_enter(&capacity, 1), "no room");
    come(1);
    (void)explorer_spawn("submitter", enters_one, NULL);
    (void)explorer_spawn("closer", closes, NULL);
    (void)explorer_spawn("leaver", leaves_one, NULL);
    (void)explorer_spawn("other", stays, NULL);
}

// A place taken by an exempt submitter is released like any other.
static void comes_exempt(void *unused)
{
    (void)unused;
    csched_capacity_enter_exempt(&capacity, 1);
    csched_capacity_leave(&capacity, 1);
}

static void exempt_setup(void)
{
    begin(1);
    (void)explorer_spawn("submitter", enters_one, NULL);
    (void)explorer_spawn("exempt", comes_exempt, NULL);
}

// Of two woken submitters, the first may be stopped for ever: the second has to take the place.
static int leaver;

static void enters_and_stays(void *unused)
{
    (void)unused;
    (void)csched_capacity_enter(&capacity, 1, &control, CLOSED);
}

static void stopped_check(int stopped)
{
    if (stopped != leaver && csched_load(&capacity.pending, seq_cst) == 0) {
        explorer_fail("there is room, and a submitter waits for it (S2)");
    }
}

static void stopped_setup(void)
{
    begin(1);
    csched_check(csched_capacity_try_enter(&capacity, 1), "no room");
    come(1);
    explorer_daemon(explorer_spawn("submitter", enters_and_stays, NULL));
    explorer_daemon(explorer_spawn("submitter", enters_and_stays, NULL));
    leaver = explorer_spawn("leaver", leaves_one, NULL);
}

const explorer_program capacity_scenarios[] = {
    SCENARIO("capacity", full, "K1 S3 S6", "three want the one place", .check = check),
    SCENARIO("capacity", bulk, "K1 S3 S6", "one wants all places at once", .check = check),
    SCENARIO("capacity", close, "S3 S14", "the scheduler closes while one waits for room",
             .check = close_check),
    SCENARIO("capacity", close_full, "S3 S14", "the scheduler closes while another one comes first",
             .check = close_full_check),
    SCENARIO("capacity", stopped, "S2 K2", "one of two sleepers is stopped for ever", .daemons = true,
             .frozen_bound = 1, .check_frozen = stopped_check),
    SCENARIO("capacity", exempt, "S3 S6", "one that may not be refused takes the room", .check = check),
};
const size_t capacity_scenario_count = sizeof capacity_scenarios / sizeof capacity_scenarios[0];
