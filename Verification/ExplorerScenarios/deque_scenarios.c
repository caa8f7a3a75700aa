// deque_scenarios.c - a deque's owner and its thieves.

#include "scenario.h"

#include "deque.h"
#include "scenarios.h"

static csched_deque deque;
static csched_reclaim *domain;
static int pushed;

static void begin(void)
{
    reclaim_model_begin();
    items_begin();
    pushed = 0;
    domain = csched_reclaim_create();
    csched_check(csched_deque_init(&deque, domain, CSCHED_DEQUE_CAPACITY), "no memory");
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
    csched_operation operations[CSCHED_BATCH + 1];
    operations[room].run = NULL;
    csched_reclaim_enter();
    size_t count = csched_deque_steal(&deque, operations, room);
    csched_reclaim_exit();
    if (count > room || operations[room].run != NULL) {
        explorer_fail("a thief writes more than there is room for (R3)");
    }
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

enum { OWNER = 0 };

// A stopped thief holds only what it took last. No thread waits for it, or for the owner.
static void check_frozen(int frozen)
{
    if (frozen == OWNER) {
        return;
    }
    while (pop()) {
    }
    int missing = 0;
    for (int number = 0; number < pushed; number++) {
        missing += !item_was_taken(number);
    }
    if (missing > CSCHED_BATCH) {
        explorer_fail("%d operations are out of the owner's reach (S2)", missing);
    }
}

static void steals_twice(void *room)
{
    steal((size_t)(uintptr_t)room);
    steal((size_t)(uintptr_t)room);
}

static void pops_all(void *unused)
{
    (void)unused;
    while (pop()) {
    }
}

// The last operation: owner and thieves want the same one.
static void pushes_and_pops(void *unused)
{
    (void)unused;
    push(1);
    (void)pop();
    push(2);
    (void)pop();
    (void)pop();
}

static void last_setup(void)
{
    begin();
    (void)explorer_spawn("owner", pushes_and_pops, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)1);
    (void)explorer_spawn("thief", steals_twice, (void *)1);
}

// Two operations: one thief has read the top, the owner pops the newer operation, and the first thief
// takes the older one; the second thief must not combine the new top with the old bottom.
static void steals_once(void *unused)
{
    (void)unused;
    steal(1);
}

static void pops_once(void *unused)
{
    (void)unused;
    (void)pop();
}

static void pop_beside_two(void (*thief)(void *))
{
    begin();
    push(2);
    (void)explorer_spawn("thief", thief, NULL);
    (void)explorer_spawn("thief", thief, NULL);
    (void)explorer_spawn("owner", pops_once, NULL);
}

static void stale_setup(void) { pop_beside_two(steals_once); }

// Open: thieves take several at once, and the owner pops below `open`.
static void open_setup(void)
{
    begin();
    push(8);
    (void)explorer_spawn("owner", pops_all, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)4);
    (void)explorer_spawn("thief", steals_twice, (void *)4);
}

// Reopened: pushes and pops around the opening, with a slow thief.
static void pops_and_pushes(void *unused)
{
    (void)unused;
    for (int index = 0; index < 4; index++) {
        (void)pop();
    }
    push(4);
    while (pop()) {
    }
}

static void reopen_setup(void)
{
    begin();
    push(8);
    (void)explorer_spawn("owner", pops_and_pushes, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)4);
}

// Growth: the buffer is replaced under a thief.
static void pushes_many(void *unused)
{
    (void)unused;
    for (int index = 0; index < 6; index++) {
        push(1);
    }
    (void)pop();
}

static void grow_setup(void)
{
    begin();
    (void)explorer_spawn("owner", pushes_many, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)2);
}

// Opened while a thief takes the latest pushes: without reading bottom, it must see all of them.
static void pushes_eight(void *unused)
{
    (void)unused;
    push(4);
    push(4);
}

static void open_late_setup(void)
{
    begin();
    (void)explorer_spawn("owner", pushes_eight, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)4);
}

// More pushed at once than a doubled buffer holds.
static void pushes_twelve(void *unused)
{
    (void)unused;
    push(12);
}

static void bulk_setup(void)
{
    begin();
    (void)explorer_spawn("owner", pushes_twelve, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)4);
}

// The owner takes its own oldest operation, for fairness.
static void takes_its_oldest(void *unused)
{
    (void)unused;
    (void)pop();
    steal(1);
    (void)pop();
    steal(1);
    (void)pop();
}

static void own_oldest_setup(void)
{
    begin();
    push(6);
    (void)explorer_spawn("owner", takes_its_oldest, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)4);
}

// A thief that takes the oldest operation only if it wants that operation.
static bool is_even(const void *unused, const csched_operation *operation)
{
    (void)unused;
    return ((uintptr_t)operation->context - 1) % 2 == 0;
}

static void steal_even(void)
{
    csched_operation operation;
    csched_reclaim_enter();
    bool found = csched_deque_steal_if(&deque, is_even, NULL, &operation);
    csched_reclaim_exit();
    if (found && item_taken(&operation) % 2 != 0) {
        explorer_fail("a thief took what it did not want (X7)");
    }
}

static void steals_even_twice(void *unused)
{
    (void)unused;
    steal_even();
    steal_even();
}

static void steals_even_once(void *unused)
{
    (void)unused;
    steal_even();
}

static void wanted_setup(void)
{
    begin();
    push(3);
    (void)explorer_spawn("owner", pops_all, NULL);
    (void)explorer_spawn("thief", steals_even_twice, NULL);
    (void)explorer_spawn("thief", steals_even_twice, NULL);
}

static void wanted_last_setup(void)
{
    begin();
    (void)explorer_spawn("owner", pushes_and_pops, NULL);
    (void)explorer_spawn("thief", steals_even_twice, NULL);
    (void)explorer_spawn("thief", steals_twice, (void *)1);
}

static void wanted_stale_setup(void)
{
    begin();
    push(2);
    push(1);
    (void)explorer_spawn("thief", steals_twice, (void *)1);
    (void)explorer_spawn("thief", steals_even_once, NULL);
    (void)explorer_spawn("owner", pops_once, NULL);
}

// Two such thieves: the owner must not see the old top.
static bool is_any(const void *unused, const csched_operation *operation)
{
    (void)unused;
    return operation->run != NULL;
}

static void steals_any(void *unused)
{
    (void)unused;
    csched_operation operation;
    csched_reclaim_enter();
    bool found = csched_deque_steal_if(&deque, is_any, NULL, &operation);
    csched_reclaim_exit();
    if (found) {
        (void)item_taken(&operation);
    }
}

static void wanted_both_setup(void) { pop_beside_two(steals_any); }

static void wanted_grow_setup(void)
{
    begin();
    (void)explorer_spawn("owner", pushes_many, NULL);
    (void)explorer_spawn("thief", steals_even_twice, NULL);
}

const explorer_program deque_scenarios[] = {
    SCENARIO("deque", last, "Q1 Q2 Q6 R4", "owner and thieves want the last operation", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("deque", stale, "Q2", "a thief sees a new top and an old bottom", .check = check),
    SCENARIO("deque", open, "Q1 Q2 Q6 R4", "thieves take many, and the owner pops below what is open",
             .check = check, .check_frozen = check_frozen),
    SCENARIO("deque", reopen, "Q1 Q2 Q6 R4", "the deque is closed and opened again under a thief",
             .check = check, .check_frozen = check_frozen),
    SCENARIO("deque", grow, "Q1 Q2 Q6 R3", "the buffer grows under a thief", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("deque", open_late, "Q1 Q2 R4", "the deque is opened under a thief", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("deque", bulk, "Q1 Q2", "twelve are pushed at once", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("deque", own_oldest, "Q1 Q2", "the owner takes its own oldest operation", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("deque", wanted, "Q1 Q2", "thieves take what they want alone", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("deque", wanted_last, "Q1 Q2", "the last operation, and a thief that wants it", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("deque", wanted_stale, "Q2", "a thief that wants what is there sees a new top and an old bottom",
             .check = check),
    SCENARIO("deque", wanted_both, "Q2", "two thieves that want what is there, and the owner",
             .check = check),
    SCENARIO("deque", wanted_grow, "Q1 Q2 R3", "the buffer grows under a thief that wants what is there",
             .check = check, .check_frozen = check_frozen),
};
const size_t deque_scenario_count = sizeof deque_scenarios / sizeof deque_scenarios[0];
