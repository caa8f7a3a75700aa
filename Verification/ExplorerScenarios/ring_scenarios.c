// ring_scenarios.c - events are read while they are written, and while rings pass between threads.

#include "scenario.h"

#include "ring.h"
#include "scenarios.h"

enum { CAPACITY = 4, WRITERS = 3 };

static csched_rings rings;
static csched_ring *of_writer[WRITERS];
static bool shared; // whether rings may be taken over

// The first word of event `number` of a writer; the other words repeat it.
static uint64_t first_word(uint64_t writer, uint64_t number) { return writer << 32 | number; }

static csched_ring_owner owner_of(uint64_t writer)
{
    return (csched_ring_owner){.words = {writer, writer + 10, writer + 20}};
}

static void begin(void)
{
    csched_init(&rings.newest, NULL);
    csched_init(&rings.count, 0);
    csched_init(&rings.departures, 0);
    for (int writer = 0; writer < WRITERS; writer++) {
        of_writer[writer] = NULL;
    }
}

static void put(uint64_t writer, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        uint64_t word = first_word(writer, number);
        csched_ring_write(of_writer[writer], word, ~word, word + 1, ~word - 1);
    }
}

static void take(uint64_t writer)
{
    csched_ring_owner owner = owner_of(writer);
    of_writer[writer] = csched_rings_take(&rings, &owner, CAPACITY, shared ? 1 : WRITERS);
}

// Whole events of the owner alone, consecutive and without gaps.
static uint64_t check_ring(const csched_ring *ring, uint64_t at_least)
{
    csched_ring_event *events = csched_allocate(CAPACITY * sizeof *events, 0); // its bounds are checked
    csched_ring_contents contents = csched_ring_read(ring, events);
    uint64_t writer = contents.owner.words[0];
    if (contents.count >= CAPACITY) {
        explorer_fail("there are more events than fit (V4)");
    }
    for (uint64_t index = 0; index < contents.count; index++) {
        uint64_t word = first_word(writer, contents.lost + index);
        const uint64_t *words = events[index].words;
        if (words[0] != word || words[1] != ~word || words[2] != word + 1 || words[3] != ~word - 1) {
            explorer_fail("event %d is torn, or another one (V2, V4)", (int)index);
        }
        if (contents.owner.words[1] != writer + 10 || contents.owner.words[2] != writer + 20) {
            explorer_fail("the owner is torn (V4)");
        }
    }
    csched_free(events);
    if (contents.count != 0 && contents.lost + contents.count < at_least) {
        explorer_fail("events are missing that were there (V2)");
    }
    return contents.count;
}

static void check_all(uint64_t at_least)
{
    for (const csched_ring *ring = csched_load(&rings.newest, acquire); ring != NULL; ring = ring->older) {
        (void)check_ring(ring, at_least);
    }
}

static void free_all(void)
{
    for (csched_ring *ring = csched_load(&rings.newest, relaxed), *older; ring != NULL; ring = older) {
        older = ring->older;
        csched_free(ring);
    }
}

static void writes_seven(void *unused)
{
    (void)unused;
    put(0, 3, 7);
}

static void reads(void *unused)
{
    (void)unused;
    check_all(3);
}

static void lapped_setup(void)
{
    begin();
    shared = false;
    take(0);
    put(0, 0, 3);
    (void)explorer_spawn("writer", writes_seven, NULL);
    (void)explorer_spawn("reader", reads, NULL);
}

static void lapped_check(void)
{
    if (check_ring(of_writer[0], 7) != CAPACITY - 1) {
        explorer_fail("the last events are not all there (V2)");
    }
    free_all();
}

static void lapped_check_frozen(int stopped)
{
    (void)stopped;
    free_all();
}

static void writes_and_goes(void *unused)
{
    (void)unused;
    put(0, 1, 2);
    csched_ring_give_back(&rings, of_writer[0]);
}

static void takes_and_writes(void *writer)
{
    take((uint64_t)(uintptr_t)writer);
    put((uint64_t)(uintptr_t)writer, 0, 2);
}

static void reads_whatever(void *unused)
{
    (void)unused;
    check_all(0);
}

static void taken_setup(void)
{
    begin();
    shared = true;
    take(0);
    put(0, 0, 1);
    (void)explorer_spawn("leaver", writes_and_goes, NULL);
    (void)explorer_spawn("comer", takes_and_writes, (void *)1);
    (void)explorer_spawn("reader", reads_whatever, NULL);
}

static void taken_check(void)
{
    if (check_ring(of_writer[1], 2) != 2) {
        explorer_fail("the events of the thread that came are not all there (V4)");
    }
    free_all();
}

// The ring's thread has exited.
static void retaken_setup(void)
{
    begin();
    shared = true;
    take(0);
    put(0, 0, 2);
    csched_ring_give_back(&rings, of_writer[0]);
    (void)explorer_spawn("reader", reads_whatever, NULL);
    (void)explorer_spawn("comer", takes_and_writes, (void *)1);
}

// One thread leaves the ring, and another one, which is the same to the explorer, takes it.
static void goes_and_comes(void *unused)
{
    (void)unused;
    put(0, 1, 2);
    csched_ring_give_back(&rings, of_writer[0]);
    take(1);
}

static void handed_setup(void)
{
    begin();
    shared = true;
    take(0);
    put(0, 0, 1);
    (void)explorer_spawn("writer", goes_and_comes, NULL);
    (void)explorer_spawn("reader", reads_whatever, NULL);
}

// Of two free rings, the one that was given back first is taken.
static void oldest_check(void)
{
    shared = false;
    take(1);
    shared = true;
    csched_ring_give_back(&rings, of_writer[0]);
    csched_ring_give_back(&rings, of_writer[1]);
    take(2);
    if (of_writer[2] != of_writer[0]) {
        explorer_fail("the events that are lost are not the oldest");
    }
    free_all();
}

// Both threads want the one free ring.
static void two_setup(void)
{
    begin();
    shared = true;
    take(0);
    csched_ring_give_back(&rings, of_writer[0]);
    (void)explorer_spawn("comer", takes_and_writes, (void *)1);
    (void)explorer_spawn("comer", takes_and_writes, (void *)2);
}

// There are two free rings, and each thread gets one.
static void each_setup(void)
{
    begin();
    shared = false;
    take(0);
    take(1);
    csched_ring_give_back(&rings, of_writer[0]);
    csched_ring_give_back(&rings, of_writer[1]);
    shared = true;
    (void)explorer_spawn("comer", takes_and_writes, (void *)1);
    (void)explorer_spawn("comer", takes_and_writes, (void *)2);
}

static void each_check(void)
{
    if (of_writer[1] == of_writer[2] || csched_load(&rings.count, relaxed) != 2) {
        explorer_fail("a ring that is free was not taken (V1)");
    }
    free_all();
}

static void two_check(void)
{
    if (of_writer[1] == of_writer[2]) {
        explorer_fail("a ring has two writers (V1)");
    }
    if (of_writer[1] != of_writer[0] && of_writer[2] != of_writer[0]) {
        explorer_fail("nobody has taken the ring that is free (V1)");
    }
    if (check_ring(of_writer[1], 2) + check_ring(of_writer[2], 2) != 4) {
        explorer_fail("events are missing (V2)");
    }
    free_all();
}

static void takes_and_goes(void *writer)
{
    takes_and_writes(writer);
    csched_ring_give_back(&rings, of_writer[(uintptr_t)writer]);
}

// No ring exists at first: the second thread may take the ring that the first has created and given back.
static void passed_setup(void)
{
    begin();
    shared = true;
    (void)explorer_spawn("comer", takes_and_goes, (void *)1);
    (void)explorer_spawn("comer", takes_and_goes, (void *)2);
}

static void passed_check(void)
{
    uint64_t count = 0;
    for (const csched_ring *ring = csched_load(&rings.newest, relaxed); ring != NULL; ring = ring->older) {
        count += check_ring(ring, 2);
    }
    if (count != (of_writer[1] == of_writer[2] ? 2 : 4)) {
        explorer_fail("events are missing (V2)");
    }
    free_all();
}

// Two threads add new rings at the same time.
static void new_setup(void)
{
    begin();
    shared = false;
    (void)explorer_spawn("comer", takes_and_writes, (void *)1);
    (void)explorer_spawn("comer", takes_and_writes, (void *)2);
    (void)explorer_spawn("reader", reads_whatever, NULL);
}

static void new_check(void)
{
    int count = 0;
    for (const csched_ring *ring = csched_load(&rings.newest, relaxed); ring != NULL; ring = ring->older) {
        count += check_ring(ring, 2) == 2 ? 1 : 0;
    }
    if (count != 2 || csched_load(&rings.count, relaxed) != 2) {
        explorer_fail("a ring is lost (V3)");
    }
    csched_ring_give_back(&rings, of_writer[1]);
    take(0);
    if (of_writer[0] == of_writer[1]) {
        explorer_fail("events are overwritten though there are not enough rings");
    }
    free_all();
}

const explorer_program ring_scenarios[] = {
    SCENARIO("ring", lapped, "V2 V4", "a reader beside a writer that laps it", .check = lapped_check,
             .check_frozen = lapped_check_frozen, .leaks = true),
    SCENARIO("ring", taken, "V1 V2 V4", "a ring is read while another thread takes it", .check = taken_check),
    SCENARIO("ring", retaken, "V4", "a ring is taken whose thread has ended, beside a reader",
             .check = taken_check),
    SCENARIO("ring", handed, "V4", "a ring changes its thread beside a reader", .check = oldest_check),
    SCENARIO("ring", two, "V1", "two threads want the ring that is free", .check = two_check),
    SCENARIO("ring", each, "V1", "two threads want rings, and two are free", .check = each_check),
    SCENARIO("ring", passed, "V1 V3", "a ring is made, left, and taken", .check = passed_check),
    SCENARIO("ring", new, "V3", "two threads get rings at once, beside a reader", .check = new_check),
};
const size_t ring_scenario_count = sizeof ring_scenarios / sizeof ring_scenarios[0];
