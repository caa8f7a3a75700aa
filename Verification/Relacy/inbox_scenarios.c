// inbox_scenarios.c - one thread appends, workers take.

#include "scenario.h"

#include "inbox.h"

static csched_inbox inbox;
static csched_reclaim *domain;
static int accepted; // the producer's own, until the end

static void begin(void)
{
    accepted = 0;
    domain = csched_reclaim_create();
    csched_check(csched_inbox_init(&inbox, domain), "no memory");
}

static csched_append_result append(int count)
{
    csched_operation operations[ITEMS_MOST];
    for (int index = 0; index < count; index++) {
        operations[index] = item_put(accepted + index);
    }
    csched_append_result result = csched_inbox_append(&inbox, operations, (size_t)count);
    accepted += result == CSCHED_APPENDED ? count : 0;
    return result;
}

// In the order of the appends: `newest` is what the thread took last.
static bool take(size_t room, int *newest)
{
    csched_operation operations[CSCHED_SEGMENT_MOST];
    csched_reclaim_enter();
    size_t count = csched_inbox_take(&inbox, operations, room);
    csched_reclaim_exit();
    for (size_t index = 0; index < count; index++) {
        int number = item_taken(&operations[index]);
        csched_check(number > *newest, "taken out of order");
        *newest = number;
    }
    return count != 0;
}

static void check(void)
{
    int newest = -1;
    while (take(2, &newest)) {
    }
    items_check(accepted);
    csched_check(csched_inbox_appended(&inbox) == (uint64_t)accepted, "counted wrongly");
    csched_inbox_destroy(&inbox);
    csched_reclaim_destroy(domain);
}

static void take_times(int times, size_t room)
{
    int newest = -1;
    for (int count = 0; count < times; count++) {
        (void)take(room, &newest);
    }
}

// Two consumers behind one producer.
static void consumers(int index)
{
    if (index > 0) {
        take_times(3, 2);
        return;
    }
    (void)append(1);
    (void)append(2);
}

// Segments are used up, swung and freed; one append spans three of them.
static void segments(int index)
{
    if (index > 0) {
        take_times(4, 3);
        return;
    }
    (void)append(2);
    (void)append(1);
    (void)append(7);
}

// Whatever was appended lies before the close, and nothing comes after it.
static void closes(int index)
{
    if (index == 0) {
        (void)append(1);
        (void)append(2);
        (void)append(1);
    } else if (index == 1) {
        csched_reclaim_enter();
        csched_inbox_close(&inbox);
        uint64_t before = csched_inbox_appended(&inbox);
        csched_reclaim_exit();
        take_times(2, 2);
        csched_check(csched_inbox_appended(&inbox) == before, "appended after the close");
    } else {
        take_times(2, 2);
    }
}

const relacy_scenario inbox_scenarios[] = {
    {"inbox-consumers", "two consumers behind one producer", 3, 0, begin, consumers, check},
    {"inbox-segments", "segments are used up and freed under two consumers", 3, 0, begin, segments, check},
    {"inbox-close", "a close between appends", 3, 0, begin, closes, check},
    {0},
};
