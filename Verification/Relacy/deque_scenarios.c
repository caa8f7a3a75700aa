// deque_scenarios.c - one owner, thieves.

#include "scenario.h"

#include "deque.h"

static csched_deque deque;
static csched_reclaim *domain;
static int pushed;

static void begin(void)
{
    pushed = 0;
    domain = csched_reclaim_create();
    csched_check(csched_deque_init(&deque, domain), "no memory");
}

static void push(int count)
{
    csched_operation operations[ITEMS_MOST];
    for (int index = 0; index < count; index++) {
        operations[index] = item_put(pushed + index);
    }
    csched_check(csched_deque_push(&deque, operations, (size_t)count), "no memory");
    pushed += count;
}

static bool pop(void)
{
    csched_operation operation;
    bool found = csched_deque_pop(&deque, &operation);
    if (found) {
        (void)item_taken(&operation);
    }
    return found;
}

static void steal(size_t room)
{
    csched_operation operations[CSCHED_BATCH];
    csched_reclaim_enter();
    size_t count = csched_deque_steal(&deque, operations, room);
    csched_reclaim_exit();
    for (size_t index = 0; index < count; index++) {
        (void)item_taken(&operations[index]);
    }
}

static void check(void)
{
    while (pop()) {
    }
    items_check(pushed);
    csched_deque_destroy(&deque);
    csched_reclaim_destroy(domain);
}

static void begin_with_eight(void)
{
    begin();
    push(8);
}

static void steal_twice(size_t room)
{
    steal(room);
    steal(room);
}

// The last operation: owner and thieves want the same one.
static void last(int index)
{
    if (index > 0) {
        steal_twice(1);
        return;
    }
    push(1);
    (void)pop();
    push(2);
    (void)pop();
    (void)pop();
}

// Open: thieves take many, and the owner pops below `open`.
static void opened(int index)
{
    if (index > 0) {
        steal_twice(4);
        return;
    }
    while (pop()) {
    }
}

// Opened again: pushes and pops around the opening, with thieves that are slow.
static void reopen(int index)
{
    if (index > 0) {
        steal_twice(4);
        return;
    }
    for (int count = 0; count < 4; count++) {
        (void)pop();
    }
    push(4);
    while (pop()) {
    }
}

// Growth: the buffer is replaced under a thief.
static void grow(int index)
{
    if (index > 0) {
        steal_twice(2);
        return;
    }
    for (int count = 0; count < 6; count++) {
        push(1);
    }
    (void)pop();
}

// The owner takes the oldest of its own, as fairness wants.
static void own_oldest(int index)
{
    if (index > 0) {
        steal_twice(4);
        return;
    }
    (void)pop();
    steal(1);
    (void)pop();
    steal(1);
    (void)pop();
}

const relacy_scenario deque_scenarios[] = {
    {"deque-last", "owner and thieves want the last operation", 3, 0, begin, last, check},
    {"deque-open", "thieves take many, and the owner pops below what is open", 3, 0, begin_with_eight, opened,
     check},
    {"deque-reopen", "the deque is closed and opened again under a thief", 2, 0, begin_with_eight, reopen,
     check},
    {"deque-grow", "the buffer grows under a thief", 2, 0, begin, grow, check},
    {"deque-own_oldest", "the owner takes its own oldest operation", 2, 0, begin_with_eight, own_oldest,
     check},
    {0},
};
