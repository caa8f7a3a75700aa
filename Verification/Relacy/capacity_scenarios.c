// capacity_scenarios.c - a bounded count, and sleep for those who find it full.

#include "scenario.h"

#include "capacity.h"

enum { LIMIT = 2 };

static csched_capacity capacity;
static csched_atomic(uint32_t) control;
static csched_atomic(uint32_t) inside;
static int entered[3]; // plain

static void begin(void)
{
    csched_capacity_init(&capacity, LIMIT, CSCHED_WHEN_FULL_SUSPEND);
    csched_init(&control, 0);
    csched_init(&inside, 0);
    entered[0] = entered[1] = entered[2] = 0;
    csched_capacity_enter_exempt(&capacity, LIMIT);
}

static void check(void) { csched_check(csched_load(&capacity.pending, relaxed) == 0, "counted wrongly"); }

static bool enter(int index, uint32_t count)
{
    if (!csched_capacity_enter(&capacity, count, &control, 1)) {
        return false;
    }
    entered[index] = 1;
    csched_check(csched_fetch_add(&inside, count, relaxed) + count <= LIMIT, "more than the limit");
    return true;
}

static void leave(uint32_t count)
{
    csched_fetch_sub(&inside, count, relaxed);
    csched_capacity_leave(&capacity, count);
}

// Two find it full; one of them wants all of it.
static void room_thread(int index)
{
    if (index == 0) {
        csched_capacity_leave(&capacity, 1);
        csched_capacity_leave(&capacity, LIMIT - 1);
        return;
    }
    uint32_t count = index == 1 ? 1 : LIMIT;
    csched_check(enter(index, count), "refused");
    leave(count);
}

static void room_check(void)
{
    csched_check(entered[1] == 1 && entered[2] == 1, "somebody did not get in");
    check();
}

// It stays full, and then it closes: whoever sleeps is told so.
static void closed_thread(int index)
{
    if (index == 0) {
        csched_fetch_or(&control, 1, seq_cst);
        csched_capacity_interrupt(&capacity);
    } else {
        csched_check(!enter(index, 1), "there was no room");
    }
}

static void closed_check(void) { csched_capacity_leave(&capacity, LIMIT), check(); }

// One that sleeps for room, and may have been woken, is stopped for ever: the other one gets in.
static void stopped_thread(int index)
{
    if (index == 0) {
        csched_capacity_leave(&capacity, LIMIT);
        return;
    }
    relacy_may_stop(index == 1);
    csched_check(enter(index, 1), "refused");
    relacy_may_stop(false);
    if (index == 2) {
        relacy_go_on();
    }
    leave(1);
}

const relacy_scenario capacity_scenarios[] = {
    {"capacity-room", "two sleep for room, one of them for all of it", 3, 0, begin, room_thread, room_check},
    {"capacity-closed", "who sleeps for room is told of the close", 2, 0, begin, closed_thread, closed_check},
    {"capacity-stopped", "one who sleeps for room is stopped for ever", 3, 0, begin, stopped_thread,
     room_check},
    {0},
};
