// inbox_scenarios.c - one thread appends, workers take.

#include "scenario.h"

#include "inbox.h"
#include "scenarios.h"

static csched_inbox inbox;
static csched_reclaim *domain;
static int appended;
static bool refused;
static int last_taken[EXPLORER_THREADS];

static void begin(void)
{
    reclaim_model_begin();
    items_begin();
    appended = 0;
    refused = false;
    for (int thread = 0; thread < EXPLORER_THREADS; thread++) {
        last_taken[thread] = -1;
    }
    domain = csched_reclaim_create();
    csched_check(csched_inbox_init(&inbox, domain), "no memory");
}

// Accepted operations are counted; after the first refusal nothing is accepted.
static void append(int count)
{
    csched_operation operations[ITEMS_MOST];
    for (int index = 0; index < count; index++) {
        operations[index] = item_put(appended + index);
    }
    csched_append_result result = csched_inbox_append(&inbox, operations, (size_t)count);
    if (result == CSCHED_APPENDED) {
        if (refused) {
            explorer_fail("an append was accepted after one was refused (S14)");
        }
        appended += count;
    } else {
        refused = true;
    }
}

static size_t take(size_t room)
{
    csched_operation operations[CSCHED_BATCH + 1];
    operations[room].run = NULL;
    csched_reclaim_enter();
    size_t count = csched_inbox_take(&inbox, operations, room);
    csched_reclaim_exit();
    if (count > room || operations[room].run != NULL) {
        explorer_fail("a worker takes more than there is room for (R3)");
    }
    int *last = &last_taken[explorer_self() + 1];
    for (size_t index = 0; index < count; index++) {
        int number = item_taken(&operations[index]);
        if (number < *last) {
            explorer_fail("operation %d was taken after %d (Q3)", number, *last);
        }
        *last = number;
    }
    return count;
}

static void check(void)
{
    bool empty = csched_inbox_is_empty(&inbox);
    last_taken[0] = -1;
    size_t left = take(CSCHED_BATCH);
    if (empty != (left == 0)) {
        explorer_fail("the inbox is said to be %s (Q5)", empty ? "empty" : "not empty");
    }
    while (take(CSCHED_BATCH) != 0) {
    }
    items_check(appended);
    if ((int)csched_inbox_appended(&inbox) != appended) {
        explorer_fail("%d operations were accepted, and %d are counted (S6)", appended,
                      (int)csched_inbox_appended(&inbox));
    }
    csched_inbox_destroy(&inbox);
    csched_reclaim_destroy(domain);
}

// Running threads take everything except what the stopped thread holds.
static void check_frozen(int frozen) { (void)frozen; }

static void appends_one_by_one(void *unused)
{
    (void)unused;
    for (int index = 0; index < 3; index++) {
        append(1);
    }
}

static void takes_twice(void *room)
{
    (void)take((size_t)(uintptr_t)room);
    (void)take((size_t)(uintptr_t)room);
}

// Consumers compete for the same operations.
static void take_setup(void)
{
    begin();
    (void)explorer_spawn("owner", appends_one_by_one, NULL);
    (void)explorer_spawn("worker", takes_twice, (void *)1);
    (void)explorer_spawn("worker", takes_twice, (void *)2);
}

// The head advances from a used-up segment while another consumer is inside it.
static void appends_two_more(void *unused)
{
    (void)unused;
    append(2);
    append(1);
}

static void segments_setup(void)
{
    begin();
    append(2);
    (void)take(1);
    (void)explorer_spawn("owner", appends_two_more, NULL);
    (void)explorer_spawn("worker", takes_twice, (void *)2);
    (void)explorer_spawn("worker", takes_twice, (void *)2);
}

// An append that spans segments is accepted as a whole, or not at all.
static void appends_many(void *unused)
{
    (void)unused;
    append(1);
    append(3);
}

static void closes(void *unused)
{
    (void)unused;
    csched_reclaim_enter();
    csched_inbox_close(&inbox);
    csched_reclaim_exit();
}

static void close_setup(void)
{
    begin();
    (void)explorer_spawn("owner", appends_many, NULL);
    (void)explorer_spawn("closer", closes, NULL);
    (void)explorer_spawn("worker", takes_twice, (void *)2);
}

// Appends many at once, which require more than one new segment.
static void appends_twelve(void *unused)
{
    (void)unused;
    append(1);
    append(11);
}

static void bulk_setup(void)
{
    begin();
    (void)explorer_spawn("owner", appends_twelve, NULL);
    (void)explorer_spawn("worker", takes_twice, (void *)4);
}

// Three segments, and workers that are behind: a worker that finds the head elsewhere finds what is
// there.
static void appends_nine(void *unused)
{
    (void)unused;
    append(6);
    append(3);
}

static void takes_often(void *unused)
{
    for (int turn = 0; turn < 4; turn++) {
        takes_twice(unused);
    }
}

static void behind_setup(void)
{
    begin();
    (void)explorer_spawn("owner", appends_nine, NULL);
    (void)explorer_spawn("worker", takes_often, (void *)2);
    (void)explorer_spawn("worker", takes_often, (void *)2);
}

// A check for remaining operations, while a segment is added and the head advances to it.
static void looks(void *unused)
{
    (void)unused;
    csched_reclaim_enter();
    (void)csched_inbox_is_empty(&inbox);
    (void)csched_inbox_waiting(&inbox);
    csched_reclaim_exit();
}

static void appends_and_takes(void *unused)
{
    append(2);
    takes_twice(unused);
    append(1);
    takes_twice(unused);
}

static void look_setup(void)
{
    begin();
    (void)explorer_spawn("looker", looks, NULL);
    (void)explorer_spawn("owner", appends_and_takes, (void *)2);
}

const explorer_program inbox_scenarios[] = {
    SCENARIO("inbox", take, "Q1 Q2 Q3 Q6", "two workers take what one thread appends", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("inbox", segments, "Q1 Q2 Q3 R3 Q8", "a segment is used up under a worker", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("inbox", bulk, "Q1 Q3", "twelve are appended", .check = check, .check_frozen = check_frozen),
    SCENARIO("inbox", behind, "Q1 Q2 R3 R4", "segments are used up under two workers", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("inbox", look, "R3 R4", "a look while a segment comes", .check = check),
    SCENARIO("inbox", close, "Q1 S14", "an append is accepted before a close, or refused", .check = check,
             .check_frozen = check_frozen),
};
const size_t inbox_scenario_count = sizeof inbox_scenarios / sizeof inbox_scenarios[0];
