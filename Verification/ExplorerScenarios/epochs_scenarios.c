// epochs_scenarios.c - our own grace periods: readers, threads that retire, and the collector.

#include "scenario.h"

#include "epochs.h"
#include "scenarios.h"
#include "world.h"

enum { NODES_MOST = 8, NONE = -1 };

typedef struct {
    csched_retired retired;
    csched_atomic(uint32_t) number;
} node;

static csched_epochs epochs;
static csched_atomic(node *) published;
static int order[NODES_MOST]; // in which nodes were collected
static int collected;

static node *make(uint32_t number)
{
    node *made = csched_allocate(sizeof *made, 0);
    csched_check(made != NULL, "no memory");
    csched_init(&made->number, number);
    return made;
}

static void begin(void)
{
    collected = 0;
    csched_epochs_init(&epochs);
    csched_init(&published, make(0));
}

static void retire(node *old) { csched_epochs_retire(&epochs, &old->retired); }

static void publish(uint32_t number) { retire(csched_exchange(&published, make(number), acq_rel)); }

// A node that is collected is freed: a reader that reads it then fails.
static int collect(void)
{
    int count = 0;
    uint64_t expected = 0;
    csched_retired *object = csched_epochs_collect(&epochs, &expected);
    for (csched_retired *next; object != NULL; object = next, count++) {
        next = csched_load(&object->link.next, relaxed);
        if (collected == NODES_MOST || count == CSCHED_COLLECTED_MOST) {
            explorer_fail("an object is collected twice, or too many at once (E2)");
        }
        order[collected++] = (int)csched_load(&((node *)(void *)object)->number, relaxed);
        csched_free(object);
    }
    if ((uint64_t)count != expected) {
        explorer_fail("%d objects are collected, and said to be %d (E2)", count, (int)expected);
    }
    return count;
}

static void collects(void *most)
{
    for (int left = (int)(intptr_t)most; left > 0;) {
        int count = collect();
        if (count == 0) {
            csched_epochs_rest(&epochs);
        }
        left -= count;
    }
}

static void look(csched_reader *reader)
{
    csched_epochs_enter(&epochs, reader);
    const node *seen = csched_load(&published, acquire);
    (void)csched_load(&seen->number, relaxed);
    csched_epochs_exit(&epochs, reader);
}

static csched_reader *join(void)
{
    csched_reader *reader = csched_epochs_join(&epochs);
    csched_check(reader != NULL, "no memory");
    return reader;
}

static void reads(void *times)
{
    csched_reader *reader = join();
    for (intptr_t time = 0; time < (intptr_t)times; time++) {
        look(reader);
    }
    csched_epochs_leave(reader);
}

static void reads_within(void *unused)
{
    (void)unused;
    csched_reader *reader = join();
    csched_epochs_enter(&epochs, reader);
    const node *seen = csched_load(&published, acquire);
    look(reader); // must not end the outer section
    (void)csched_load(&seen->number, relaxed);
    csched_epochs_exit(&epochs, reader);
    csched_epochs_leave(reader);
}

static void publishes(void *first)
{
    publish((uint32_t)(uintptr_t)first);
    publish((uint32_t)(uintptr_t)first + 1);
}

static void publishes_one(void *number) { publish((uint32_t)(uintptr_t)number); }

static void retires(void *first)
{
    for (uint32_t number = 0; number < 2; number++) {
        retire(make((uint32_t)(uintptr_t)first + number));
    }
}

static void free_readers(void)
{
    for (csched_reader *reader = csched_load(&epochs.readers, relaxed), *older; reader != NULL;
         reader = older) {
        older = reader->older;
        csched_free(reader);
    }
}

static void end(int expected)
{
    while (collect() != 0) {
    }
    if (collected != expected) {
        explorer_fail("%d objects are collected, and %d were retired (E2)", collected, expected);
    }
    csched_free(csched_load(&published, relaxed));
    free_readers();
}

static void spawn_reader(intptr_t times) { (void)explorer_spawn("reader", reads, (void *)times); }
static void spawn_collector(intptr_t most) { (void)explorer_spawn("collector", collects, (void *)most); }

static void read_setup(void)
{
    begin();
    spawn_reader(2);
    (void)explorer_spawn("writer", publishes, (void *)1);
    spawn_collector(2);
}

static void two_ended(void) { end(2); }

static void nested_setup(void)
{
    begin();
    (void)explorer_spawn("reader", reads_within, NULL);
    (void)explorer_spawn("writer", publishes_one, (void *)1);
    spawn_collector(1);
}

static void one_ended(void) { end(1); }

static void readers_setup(void)
{
    begin();
    spawn_reader(1);
    spawn_reader(1);
    (void)explorer_spawn("writer", publishes_one, (void *)1);
    spawn_collector(1);
}

// The second thread may get the reader that the first thread leaves.
static void two_come(void)
{
    int count = 0;
    for (csched_reader *reader = csched_load(&epochs.readers, relaxed); reader != NULL;
         reader = reader->older) {
        count++;
    }
    if (count > 2) {
        explorer_fail("there are more readers than threads (E4)");
    }
    end(1);
}

// One reader exists, and is free.
static void handed_setup(void)
{
    begin();
    csched_epochs_leave(join());
    spawn_reader(1);
    spawn_reader(1);
    (void)explorer_spawn("writer", publishes_one, (void *)1);
    spawn_collector(1);
}

// A section that opens one gate, and lasts until the next one is open.
static void stay(csched_reader *reader, int opened)
{
    csched_epochs_enter(&epochs, reader);
    gate_open(&gates[opened]);
    gate_pass(&gates[opened + 1]);
    csched_epochs_exit(&epochs, reader);
    csched_epochs_leave(reader);
}

static csched_reader *earlier;

// A section of the new period delays no grace period: it lasts until the collector has what it waits for.
static void ends_when_told(void *unused)
{
    (void)unused;
    earlier = join();
    stay(earlier, 0);
}

static void comes_later(void *unused)
{
    (void)unused;
    csched_reader *reader = join();
    gate_pass(&gates[0]);
    while (csched_load(&earlier->awaited, relaxed) == 0) {
        csched_yield();
    }
    stay(reader, 1);
}

static void collects_beside(void *unused)
{
    (void)unused;
    gate_pass(&gates[0]);
    publish(1);
    if (collect() != 1) {
        explorer_fail("an object that is retired is not collected (E2)");
    }
    gate_open(&gates[2]);
}

static void later_setup(void)
{
    world_begin();
    begin();
    (void)explorer_spawn("earlier", ends_when_told, NULL);
    (void)explorer_spawn("later", comes_later, NULL);
    (void)explorer_spawn("collector", collects_beside, NULL);
}

static void publishes_and_collects(void *unused)
{
    (void)unused;
    publish(1);
    if (collect() != 1) {
        explorer_fail("an object that is retired is not collected (E2)");
    }
}

static void noted_setup(void)
{
    begin();
    (void)explorer_spawn("collector", publishes_and_collects, NULL);
    spawn_reader(1);
}

static void retire_setup(void)
{
    begin();
    (void)explorer_spawn("writer", retires, (void *)1);
    (void)explorer_spawn("writer", retires, (void *)3);
    spawn_collector(4);
}

static int place_of(int number)
{
    for (int place = 0; place < collected; place++) {
        if (order[place] == number) {
            return place;
        }
    }
    return NONE;
}

static void retire_check(void)
{
    end(4);
    for (int number = 1; number <= 4; number++) {
        if (place_of(number) == NONE) {
            explorer_fail("object %d is lost (E2)", number);
        }
    }
    if (place_of(1) > place_of(2) || place_of(3) > place_of(4)) {
        explorer_fail("objects of one thread are not collected in order (E2)");
    }
}

// The collector is not one of the threads: all of them are wait-free.
static void stopped_setup(void)
{
    begin();
    (void)explorer_spawn("writer", retires, (void *)1);
    (void)explorer_spawn("writer", retires, (void *)3);
    (void)explorer_spawn("reader", reads, (void *)1);
}

static void stopped_check(void) { end(4); }

// As in a child that is forked at that moment: the stopped thread no longer exists.
static void stopped_check_frozen(int stopped)
{
    (void)stopped;
    uint64_t left = csched_epochs_after_fork(&epochs, NULL);
    retire(make(5));
    while (collect() != 0) {
    }
    if ((uint64_t)collected != left + 1) {
        explorer_fail("%d objects are collected in the child, and %d were there (E2)", collected,
                      (int)left + 1);
    }
    if (place_of(5) == NONE) {
        explorer_fail("what the child retires is not collected");
    }
    csched_reader *newest = csched_load(&epochs.readers, relaxed), *reader = join();
    if (csched_load(&epochs.readers, relaxed) != newest && newest != NULL) {
        explorer_fail("a reader of the parent is not used again (E4)");
    }
    if (reader->depth != 0 || csched_load(&reader->began, relaxed) != 0) {
        explorer_fail("a reader of the parent is in a section");
    }
}

const explorer_program epochs_scenarios[] = {
    SCENARIO("epochs", read, "E1 E2 E3", "a reader beside a writer and a collector", .check = two_ended),
    SCENARIO("epochs", nested, "E1", "a section within a section", .check = one_ended),
    SCENARIO("epochs", readers, "E1 E3 E4", "two readers come and go", .check = two_come),
    SCENARIO("epochs", handed, "E1 E4", "a reader is taken over beside a collector", .check = two_come),
    SCENARIO("epochs", later, "E1 E3", "a section of the new period lasts", .check = one_ended),
    SCENARIO("epochs", noted, "E1", "a section begins beside a period", .check = one_ended),
    SCENARIO("epochs", retire, "E2 E3", "two threads retire, one collects", .check = retire_check),
    SCENARIO("epochs", stopped, "E2", "any thread stops for ever, and the process forks",
             .check = stopped_check, .check_frozen = stopped_check_frozen, .leaks = true),
};
const size_t epochs_scenario_count = sizeof epochs_scenarios / sizeof epochs_scenarios[0];
