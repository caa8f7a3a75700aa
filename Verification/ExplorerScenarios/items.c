// items.c - operations that carry numbers. Checks that none is lost, duplicated or torn, and that writes made
// before the push are visible after the take.

#include "scenario.h"

#include <string.h>

static int payload[ITEMS_MOST]; // plain: the explorer reports a race unless the put happens before the take
static int taken[ITEMS_MOST];   // plain: two takers of the same item race

static void run(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra, (void)disposition;
}

csched_operation item(int number)
{
    uintptr_t word = (uintptr_t)number + 1;
    return (csched_operation){
        .run = run, .context = (void *)word, .extra = (void *)(word << 8), .counter = (void *)(word << 16)};
}

void items_begin(void)
{
    memset(payload, 0, sizeof payload);
    memset(taken, 0, sizeof taken);
}

csched_operation item_put(int number)
{
    explorer_plain_write(csched_site("payload"), &payload[number]);
    payload[number] = number + 1;
    return item(number);
}

int item_taken(const csched_operation *operation)
{
    uintptr_t word = (uintptr_t)operation->context;
    int number = (int)word - 1;
    if (word == 0 || word > ITEMS_MOST || operation->extra != (void *)(word << 8) ||
        operation->counter != (void *)(word << 16)) {
        explorer_fail("an operation is torn, or none (Q6)");
    }
    explorer_plain_read(csched_site("payload"), &payload[number]);
    if (payload[number] != number + 1) {
        explorer_fail("operation %d was taken and not put (Q6)", number);
    }
    explorer_plain_write(csched_site("taken"), &taken[number]);
    if (taken[number]++ != 0) {
        explorer_fail("operation %d was taken twice (Q2)", number);
    }
    return number;
}

bool item_was_taken(int number) { return taken[number] != 0; }

void items_check(int count)
{
    for (int number = 0; number < count; number++) {
        if (taken[number] == 0) {
            explorer_fail("operation %d is lost (Q1)", number);
        }
    }
}
