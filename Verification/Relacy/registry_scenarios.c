// registry_scenarios.c - threads come and go, and workers take from what they leave.

#include "scenario.h"

#include "registry.h"

enum { SCHEDULER_ID = 7 };

static csched_registry registry;
static csched_reclaim *domain;
static csched_atomic(bool) closing;
static csched_submitter *submitters[3]; // plain: each thread its own
static int accepted[ITEMS_MOST];        // plain: which items were

static void begin(void)
{
    domain = csched_reclaim_create();
    csched_check(csched_registry_init(&registry, domain), "no memory");
    csched_init(&closing, false);
    for (int index = 0; index < 3; index++) {
        submitters[index] = NULL;
    }
    for (int number = 0; number < ITEMS_MOST; number++) {
        accepted[number] = 0;
    }
}

// As submit.c does.
static bool submit(int index, int number)
{
    csched_submitter *submitter = csched_registry_find(SCHEDULER_ID);
    if (submitter == NULL) {
        submitter = csched_registry_add(&registry, SCHEDULER_ID, false);
        csched_check(submitter != NULL, "no memory");
        if (csched_load(&closing, seq_cst)) { // U3
            csched_inbox_close(&submitter->inbox);
        }
        submitters[index] = submitter;
    }
    csched_operation operation = item_put(number);
    accepted[number] = csched_inbox_append(&submitter->inbox, &operation, 1) == CSCHED_APPENDED;
    return accepted[number] != 0;
}

static size_t take(uint64_t *cursor)
{
    csched_operation operations[4];
    csched_reclaim_enter();
    size_t count = csched_registry_take(&registry, cursor, operations, 4);
    csched_reclaim_exit();
    for (size_t index = 0; index < count; index++) {
        (void)item_taken(&operations[index]);
    }
    return count;
}

static void take_times(int times)
{
    uint64_t cursor = 0;
    for (int count = 0; count < times; count++) {
        (void)take(&cursor);
    }
}

static void check(void)
{
    uint64_t cursor = 0;
    uint64_t sum = 0;
    while (take(&cursor) != 0) {
    }
    for (int number = 0; number < ITEMS_MOST; number++) {
        sum += (uint64_t)accepted[number];
    }
    csched_check(csched_registry_is_empty(&registry), "not empty");
    csched_check(csched_registry_appended(&registry) == sum, "counted wrongly");
    csched_registry_destroy(&registry);
    csched_reclaim_destroy(domain);
}

// A thread submits and ends; two workers take, and take its inbox out of the table.
static void comes_and_goes(int index)
{
    if (index > 0) {
        take_times(4);
        return;
    }
    csched_check(submit(0, 0), "refused");
    csched_check(submit(0, 1), "refused");
}

static void comes_and_goes_check(void)
{
    uint64_t cursor = 0;
    while (take(&cursor) != 0) {
    }
    items_check(2);
    check();
}

// Two threads want a place at once, and one of them comes when the other may be gone.
static void places(int index)
{
    if (index == 2) {
        take_times(4);
    } else {
        csched_check(submit(index, index), "refused");
    }
}

// A new submitter and a close: at least one of the two sees the other.
static void closes(int index)
{
    if (index > 0) {
        (void)submit(index, 2 * index);
        (void)submit(index, 2 * index + 1);
        return;
    }
    csched_store(&closing, true, seq_cst);
    csched_reclaim_enter();
    csched_registry_close(&registry);
    uint64_t before = csched_registry_appended(&registry);
    csched_reclaim_exit();
    take_times(2);
    csched_reclaim_enter();
    uint64_t after = csched_registry_appended(&registry);
    csched_reclaim_exit();
    csched_check(before == after, "accepted after the close");
}

// The scheduler goes while the thread ends: the second one frees the inbox.
static void scheduler_goes(int index)
{
    if (index == 0) {
        others_wait(1);
        csched_registry_destroy(&registry);
    } else {
        submitters[1] = csched_registry_add(&registry, SCHEDULER_ID, false);
        others_done();
    }
}

static void scheduler_goes_check(void) { csched_reclaim_destroy(domain); }

const relacy_scenario registry_scenarios[] = {
    {"registry-comes_and_goes", "a thread submits and ends under two workers", 3, 0, begin, comes_and_goes,
     comes_and_goes_check},
    {"registry-places", "two threads want a place, and a worker frees one", 3, 0, begin, places, check},
    {"registry-close", "a new submitter and a close", 3, 0, begin, closes, check},
    {"registry-scheduler_goes", "the scheduler goes while a thread ends", 2, 0, begin, scheduler_goes,
     scheduler_goes_check},
    {0},
};
