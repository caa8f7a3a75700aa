// items.c - operations that carry numbers: nothing lost, nothing twice, nothing torn, and what was written
// before the push is seen after the take.
//
// All of it is plain memory: this file is instrumented as the core is, so a race on it is reported.

#include "scenario.h"

#include <string.h>

static int payload[ITEMS_MOST];
static int taken[ITEMS_MOST]; // two takers race
static csched_atomic(uint32_t) done;

static void run(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra, (void)disposition;
}

void items_begin(void)
{
    memset(payload, 0, sizeof payload);
    memset(taken, 0, sizeof taken);
    csched_init(&done, 0);
}

csched_operation item_put(int number)
{
    payload[number] = number + 1;
    uintptr_t word = (uintptr_t)number + 1;
    return (csched_operation){
        .run = run, .context = (void *)word, .extra = (void *)(word << 8), .counter = (void *)(word << 16)};
}

int item_taken(const csched_operation *operation)
{
    uintptr_t word = (uintptr_t)operation->context;
    int number = (int)word - 1;
    if (word == 0 || word > ITEMS_MOST || operation->run != run || operation->extra != (void *)(word << 8) ||
        operation->counter != (void *)(word << 16)) {
        relacy_fail("an operation is torn, or none");
    }
    if (payload[number] != number + 1) {
        relacy_fail("operation %d was taken and not put", number);
    }
    if (taken[number]++ != 0) {
        relacy_fail("operation %d was taken twice", number);
    }
    return number;
}

void items_check(int count)
{
    for (int number = 0; number < count; number++) {
        if (taken[number] == 0) {
            relacy_fail("operation %d is lost", number);
        }
    }
}

void others_done(void)
{
    csched_fetch_add(&done, 1, release);
    csched_futex_wake(&done, 1);
}

void others_wait(uint32_t count)
{
    for (uint32_t seen; (seen = csched_load(&done, acquire)) < count;) {
        (void)csched_futex_wait(&done, seen, UINT64_MAX);
    }
}
