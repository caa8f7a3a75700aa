// registry_scenarios.c - threads with inboxes appear and exit.

#include "scenario.h"

#include "registry_model.h"
#include "scenarios.h"
#include "world.h"

static csched_registry registry;
static csched_reclaim *domain;
static csched_atomic(uint32_t) closing;
static csched_atomic(uint32_t) sleeping;
static int put;
static int places_taken; // when everything was taken
static bool accepted[ITEMS_MOST];

enum { ID = 7 };

static void begin(void)
{
    world_begin();
    domain = csched_reclaim_create();
    csched_check(csched_registry_init(&registry, domain), "no memory");
    csched_init(&closing, 0);
    csched_init(&sleeping, 0);
    put = 0;
    for (int number = 0; number < ITEMS_MOST; number++) {
        accepted[number] = false;
    }
}

// As a submission does.
static void append(int number)
{
    csched_operation operation = item_put(number);
    csched_submitter *mine = csched_registry_find(ID);
    if (mine == NULL) {
        mine = csched_registry_add(&registry, ID, false);
        if (csched_load(&closing, seq_cst) != 0) {
            csched_inbox_close(&mine->inbox);
        }
    }
    accepted[number] = csched_inbox_append(&mine->inbox, &operation, 1) == CSCHED_APPENDED;
}

static size_t take(uint64_t *cursor)
{
    csched_operation operations[CSCHED_BATCH];
    csched_reclaim_enter();
    size_t count = csched_registry_take(&registry, cursor, operations, CSCHED_BATCH);
    csched_reclaim_exit();
    for (size_t index = 0; index < count; index++) {
        (void)item_taken(&operations[index]);
    }
    return count;
}

static bool is_empty(void)
{
    csched_reclaim_enter();
    bool empty = csched_registry_is_empty(&registry);
    csched_reclaim_exit();
    return empty;
}

static void check(void)
{
    uint64_t cursor = 0;
    while (take(&cursor) != 0) {
    }
    if (!is_empty()) {
        explorer_fail("an empty registry says that it is not (Q5)");
    }
    places_taken = registry_model_places_taken(&registry);
    uint64_t count = 0;
    for (int number = 0; number < ITEMS_MOST; number++) {
        count += accepted[number];
        if (accepted[number] != item_was_taken(number)) {
            explorer_fail("operation %d was %s (Q1)", number, accepted[number] ? "lost" : "run and refused");
        }
    }
    if (csched_registry_appended(&registry) != count) {
        explorer_fail("%d operations were appended, and %d are counted (S6)", (int)count,
                      (int)csched_registry_appended(&registry));
    }
    csched_registry_destroy(&registry);
    csched_reclaim_destroy(domain);
}

static void check_frozen(int frozen) { (void)frozen; }

static void submits_0(void) { append(0); }
static void submits_1_2(void)
{
    append(1);
    append(2);
}

static void works(void *unused)
{
    (void)unused;
    uint64_t cursor = 0;
    for (int look = 0; look < 3; look++) {
        (void)take(&cursor);
    }
}

// A thread ends while workers check its inbox: the inbox is freed when it is empty, and only once.
static void leave_setup(void)
{
    begin();
    (void)thread_start("submitter", submits_0);
    (void)explorer_spawn("worker", works, NULL);
    (void)explorer_spawn("worker", works, NULL);
}

// Two threads have ended, and their inboxes are unlisted at the same time: both are counted, and their places
// are free.
static void leave_two_check(void)
{
    check();
    if (places_taken != 0) {
        explorer_fail("%d places of threads that have ended are not free (R2)", places_taken);
    }
}

static void starts_workers(void)
{
    thread_join(thread_start("submitter", submits_0));
    thread_join(thread_start("submitter", submits_1_2));
    explorer_calm(false);
    (void)explorer_spawn("worker", works, NULL);
    (void)explorer_spawn("worker", works, NULL);
}

static void leave_two_setup(void)
{
    begin();
    explorer_calm(true);
    (void)thread_start("main", starts_workers);
}

// Two inboxes that are never empty are served in turn.
static void submits_three(void)
{
    for (int index = 0; index < 3; index++) {
        append(put++);
    }
    gate_pass(&gates[0]);
}

static void takes_in_turn(void)
{
    (void)thread_start("submitter", submits_three);
    explorer_settle(csched_site("settle"));
    (void)thread_start("submitter", submits_three);
    explorer_settle(csched_site("settle"));
    uint64_t cursor = 0;
    for (int index = 0; index < 6; index++) {
        csched_operation operation;
        csched_reclaim_enter();
        csched_check(csched_registry_take(&registry, &cursor, &operation, 1) == 1, "nothing");
        csched_reclaim_exit();
        if (item_taken(&operation) / 3 != index % 2) {
            explorer_fail("one of two threads waits while the other's are taken (S11)");
        }
    }
    gate_open(&gates[0]);
}

static void turn_setup(void)
{
    begin();
    explorer_calm(true);
    (void)thread_start("worker", takes_in_turn);
}

// The same when they are the last of a chunk and the first of the next.
static void turn_chunk_setup(void)
{
    begin();
    registry_model_fill(&registry, 1);
    explorer_calm(true);
    (void)thread_start("worker", takes_in_turn);
}

// Two threads arrive at the same time.
static void come_setup(void)
{
    begin();
    (void)thread_start("submitter", submits_0);
    (void)thread_start("submitter", submits_1_2);
    (void)explorer_spawn("worker", works, NULL);
}

// Two threads arrive at the same time, and there is no place left: each adds a chunk.
static void chunk_setup(void)
{
    begin();
    registry_model_fill(&registry, 0);
    (void)thread_start("submitter", submits_0);
    (void)thread_start("submitter", submits_1_2);
    (void)explorer_spawn("worker", works, NULL);
}

// A new thread and a close: the close reaches the inbox, or the thread closes it.
static void closes(void *unused)
{
    (void)unused;
    csched_store(&closing, 1, seq_cst);
    csched_reclaim_enter();
    csched_registry_close(&registry);
    csched_reclaim_exit();
}

static void close_check(void)
{
    csched_submitter *each = registry_model_first(&registry);
    if (each != NULL &&
        csched_inbox_append(&each->inbox, &(csched_operation){.context = NULL}, 1) == CSCHED_APPENDED) {
        explorer_fail("an inbox is open after the close (S14)");
    }
    check();
}

static void close_setup(void)
{
    begin();
    (void)thread_start("submitter", submits_0);
    (void)explorer_spawn("closer", closes, NULL);
}

// The same when the new thread's place is in a separate chunk.
static void submits_0_and_looks(void)
{
    append(0);
    gate_pass(&gates[0]);
    csched_operation late = item(1);
    if (csched_inbox_append(&csched_registry_find(ID)->inbox, &late, 1) == CSCHED_APPENDED) {
        explorer_fail("an inbox is open after the close (S14)");
    }
}

static void closes_and_tells(void *unused)
{
    closes(unused);
    gate_open(&gates[0]);
}

static void close_chunk_setup(void)
{
    begin();
    registry_model_fill(&registry, 0);
    (void)thread_start("submitter", submits_0_and_looks);
    (void)explorer_spawn("closer", closes_and_tells, NULL);
}

// The thread outlives the scheduler: the last of its two holders frees the inbox.
static void destroys(void *unused)
{
    (void)unused;
    csched_registry_destroy(&registry);
}

static void outlive_check(void) { csched_reclaim_destroy(domain); }

static void submits_to_the_next(void) { (void)csched_registry_find(ID + 1); }

static void outlive_submitter(void)
{
    append(0);
    gate_open(&gates[0]);
    submits_to_the_next();
}

static void outlive_destroyer(void *unused)
{
    gate_pass(&gates[0]);
    destroys(unused);
}

static void outlive_setup(void)
{
    begin();
    (void)thread_start("submitter", outlive_submitter);
    (void)explorer_spawn("destroyer", outlive_destroyer, NULL);
}

// A check before sleep that finds nothing: everything that was appended before has been taken.
static void looks(void *unused)
{
    (void)unused;
    gate_pass(&gates[0]);
    if (is_empty() && !item_was_taken(0)) {
        explorer_fail("operation 0 was overlooked (Q5)");
    }
}

static void submits_and_tells(void)
{
    append(0);
    gate_open(&gates[0]);
    append(1);
}

static void look_setup(void)
{
    begin();
    (void)thread_start("submitter", submits_and_tells);
    (void)explorer_spawn("looker", looks, NULL);
}

// A new thread appends, in a separate chunk, while a worker falls asleep: one of the two sees the other.
static bool seen_asleep;
static bool seen_operation;

static void submits_and_looks_for_sleepers(void)
{
    append(0);
    seen_asleep = csched_load(&sleeping, seq_cst) != 0;
}

static void falls_asleep(void *unused)
{
    (void)unused;
    csched_store(&sleeping, 1, seq_cst);
    seen_operation = !is_empty();
}

static void fall_asleep_check(void)
{
    if (!seen_asleep && !seen_operation) {
        explorer_fail("operation 0 is overlooked, and nobody is woken for it (S3)");
    }
    check();
}

static void fall_asleep_setup(void)
{
    begin();
    registry_model_fill(&registry, 0);
    seen_asleep = seen_operation = false;
    (void)thread_start("submitter", submits_and_looks_for_sleepers);
    (void)explorer_spawn("worker", falls_asleep, NULL);
}

// Counts the appended operations while a chunk is added.
static void counts(void *unused)
{
    (void)unused;
    csched_reclaim_enter();
    uint64_t count = csched_registry_appended(&registry);
    csched_reclaim_exit();
    if (count > 3) {
        explorer_fail("%d operations are counted, and three were appended (S6)", (int)count);
    }
}

static void count_setup(void)
{
    begin();
    registry_model_fill(&registry, 0);
    (void)thread_start("submitter", submits_0);
    (void)thread_start("submitter", submits_1_2);
    (void)explorer_spawn("counter", counts, NULL);
}

const explorer_program registry_scenarios[] = {
    SCENARIO("registry", leave, "Q1 R1 R3 S6", "a thread ends while workers look at its inbox",
             .check = check, .check_frozen = check_frozen),
    SCENARIO("registry", leave_two, "R2 S6", "two inboxes go at once", .check = leave_two_check),
    SCENARIO("registry", turn, "S11", "two threads are taken from in turn", .check = check),
    SCENARIO("registry", turn_chunk, "S11", "the same, out of two chunks", .check = check),
    SCENARIO("registry", come, "Q1 Q2", "two threads come at once", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("registry", chunk, "Q1 R1", "two threads come, and there is no place left", .check = check,
             .check_frozen = check_frozen),
    SCENARIO("registry", close, "S14", "a thread comes while the scheduler closes", .check = close_check),
    SCENARIO("registry", close_chunk, "S14", "the same, where its place is in a new chunk", .check = check),
    SCENARIO("registry", outlive, "R1 R3", "a thread ends while the scheduler goes", .check = outlive_check),
    SCENARIO("registry", look, "Q5", "a look before sleep overlooks nothing", .check = check),
    SCENARIO("registry", fall_asleep, "S3 Q5", "a thread comes while a worker falls asleep",
             .check = fall_asleep_check),
    SCENARIO("registry", count, "S6", "two threads come while their operations are counted", .check = check),
};
const size_t registry_scenario_count = sizeof registry_scenarios / sizeof registry_scenarios[0];
