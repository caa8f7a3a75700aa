// defects.c - faulty programs, one for each defect that the explorer looks for.

#include "litmus.h"

#include "access.h"

static int word, other;
static void *memory;

static void two(void (*first)(void *), void (*second)(void *))
{
    word = other = 0;
    (void)explorer_spawn("P0", first, NULL);
    (void)explorer_spawn("P1", second, NULL);
}

// A waiter whose futex word never changes: a wake between its check and its sleep is lost.
static void sleeps(void *unused)
{
    (void)unused;
    if (LOAD(word, seq_cst) == 0) {
        (void)explorer_futex_wait(SITE("wait"), &other, 0, UINT64_MAX);
    }
}

static void tells_and_wakes(void *unused)
{
    (void)unused;
    STORE(word, 1, seq_cst);
    explorer_futex_wake(SITE("wake"), &other, 1);
}

static void lost_wake_setup(void) { two(sleeps, tells_and_wakes); }

// Two mutexes locked in opposite orders.
static void locks_word_first(void *unused)
{
    (void)unused;
    explorer_lock(SITE("lock"), &word);
    explorer_lock(SITE("lock"), &other);
    explorer_unlock(SITE("unlock"), &other);
    explorer_unlock(SITE("unlock"), &word);
}

static void locks_other_first(void *unused)
{
    (void)unused;
    explorer_lock(SITE("lock"), &other);
    explorer_lock(SITE("lock"), &word);
    explorer_unlock(SITE("unlock"), &word);
    explorer_unlock(SITE("unlock"), &other);
}

static void deadlock_setup(void) { two(locks_word_first, locks_other_first); }

// Waits, without sleeping, for a store that never comes.
static void spins(void *unused)
{
    (void)unused;
    while (LOAD(word, acquire) == 0) {
        explorer_yield(SITE("yield"));
    }
}

static void does_nothing(void *unused) { (void)unused; }

static void livelock_setup(void) { two(spins, does_nothing); }

// Plain data published through a relaxed flag.
static void writes_and_tells(void *unused)
{
    (void)unused;
    explorer_plain_write(SITE("write other"), &other);
    other = 1;
    STORE(word, 1, relaxed);
}

static void hears_and_reads(void *unused)
{
    (void)unused;
    if (LOAD(word, acquire) == 1) {
        explorer_plain_read(SITE("read other"), &other);
    }
}

static void race_setup(void) { two(writes_and_tells, hears_and_reads); }

// A new object, published by a relaxed store.
static int *published;

static void makes(void *unused)
{
    (void)unused;
    int *made = explorer_allocate(sizeof *made, 0);
    explorer_init(made, sizeof *made, 7);
    published = made;
    STORE(word, 1, relaxed);
}

static void finds(void *unused)
{
    (void)unused;
    if (LOAD(word, acquire) == 1) {
        (void)LOAD(*published, relaxed);
    }
}

static void publish_setup(void) { two(makes, finds); }

// Memory freed under a reader.
static void frees(void *unused)
{
    (void)unused;
    STORE(word, 1, seq_cst);
    explorer_free(memory);
}

static void reads_freed(void *unused)
{
    (void)unused;
    if (LOAD(word, seq_cst) == 0) {
        (void)LOAD(*(int *)memory, relaxed);
    }
}

static void freed_setup(void)
{
    memory = explorer_allocate(4, 0);
    explorer_init(memory, 4, 0);
    two(frees, reads_freed);
}

// Memory used by a thread that knows it was freed.
static void frees_and_tells(void *unused)
{
    (void)unused;
    explorer_free(memory);
    STORE(word, 1, release);
}

static void hears_and_uses(void *unused)
{
    (void)unused;
    if (LOAD(word, acquire) == 1) {
        (void)LOAD(*(int *)memory, relaxed);
    }
}

static void late_setup(void)
{
    memory = explorer_allocate(4, 0);
    explorer_init(memory, 4, 0);
    two(frees_and_tells, hears_and_uses);
}

static void frees_if_first(void *unused)
{
    (void)unused;
    if (LOAD(word, seq_cst) == 0) {
        STORE(word, 1, seq_cst);
        explorer_free(memory);
    }
}

static void twice_setup(void)
{
    memory = explorer_allocate(4, 0);
    two(frees_if_first, frees_if_first);
}

static void leak_setup(void)
{
    memory = explorer_allocate(4, 0);
    two(does_nothing, does_nothing);
}

// A mutex in a program that must make progress when any thread stops.
static void locks(void *unused)
{
    (void)unused;
    explorer_lock(SITE("lock"), &word);
    explorer_unlock(SITE("unlock"), &word);
}

static void mutex_setup(void) { two(locks, locks); }
static void mutex_check_frozen(int frozen) { (void)frozen; }

#define DEFECT(test, what, message)                                                                          \
    {.program = {.name = #test, .sentence = what, .setup = test##_setup}, .violation = message}

static const defect_test tests[] = {
    DEFECT(lost_wake, "a waker that comes between the look and the sleep", "a lost wake-up"),
    DEFECT(deadlock, "two mutexes in two orders", "a lost wake-up or a deadlock"),
    DEFECT(livelock, "a loop that nothing ends", "a livelock"),
    DEFECT(race, "plain data beside a relaxed flag", "a data race"),
    DEFECT(publish, "a new object behind a relaxed flag", "a data race"),
    DEFECT(freed, "memory that is freed under a reader", "memory is freed by P0 while another"),
    DEFECT(late, "memory that is used after it was freed", "an access to freed memory"),
    DEFECT(twice, "memory that two threads free", "freed twice"),
    DEFECT(leak, "memory that nobody frees", "1 block was not freed"),
    {.program = {.name = "mutex",
                 .sentence = "a mutex whose holder stops for ever",
                 .setup = mutex_setup,
                 .check_frozen = mutex_check_frozen},
     .violation = "not lock-free",
     .frozen = true},
};

const size_t defect_count = sizeof tests / sizeof tests[0];

const defect_test *defect_test_at(size_t index) { return &tests[index]; }
