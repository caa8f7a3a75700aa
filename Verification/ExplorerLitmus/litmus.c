// litmus.c - store buffering, message passing, coherence, independent reads, release sequences, load
// buffering.
//
// Names as in the literature: Alglave, Maranget, Tautschnig: Herding Cats (2014).

#include "litmus.h"

#include "access.h"

static int x, y;
static int a, b, c, d; // the values read

static void begin(void) { x = y = a = b = c = d = 0; }

static void spawn(void (*first)(void *), void (*second)(void *))
{
    begin();
    (void)explorer_spawn("P0", first, NULL);
    (void)explorer_spawn("P1", second, NULL);
}

static void reached(bool outcome)
{
    if (outcome) {
        explorer_fail("the weak outcome");
    }
}

// Defines the threads, setup and check of a test of two threads.
#define TWO(name, first, second, outcome)                                                                    \
    static void name##_0(void *unused)                                                                       \
    {                                                                                                        \
        (void)unused;                                                                                        \
        first                                                                                                \
    }                                                                                                        \
    static void name##_1(void *unused)                                                                       \
    {                                                                                                        \
        (void)unused;                                                                                        \
        second                                                                                               \
    }                                                                                                        \
    static void name##_setup(void) { spawn(name##_0, name##_1); }                                            \
    static void name##_check(void) { reached(outcome); }

// clang-format off
TWO(sb_relaxed,
    STORE(x, 1, relaxed); a = LOAD(y, relaxed);,
    STORE(y, 1, relaxed); b = LOAD(x, relaxed);,
    a == 0 && b == 0)
TWO(sb_release_acquire,
    STORE(x, 1, release); a = LOAD(y, acquire);,
    STORE(y, 1, release); b = LOAD(x, acquire);,
    a == 0 && b == 0)
TWO(sb_fences,
    STORE(x, 1, relaxed); FENCE(seq_cst); a = LOAD(y, relaxed);,
    STORE(y, 1, relaxed); FENCE(seq_cst); b = LOAD(x, relaxed);,
    a == 0 && b == 0)
TWO(sb_fence_of_all,
    STORE(x, 1, relaxed); a = LOAD(y, relaxed);,
    STORE(y, 1, relaxed); FENCE_OF_ALL(); b = LOAD(x, relaxed);,
    a == 0 && b == 0)
TWO(sb_one_fence,
    STORE(x, 1, relaxed); FENCE(seq_cst); a = LOAD(y, relaxed);,
    STORE(y, 1, relaxed); b = LOAD(x, relaxed);,
    a == 0 && b == 0)
TWO(sb_seq_cst,
    STORE(x, 1, seq_cst); a = LOAD(y, seq_cst);,
    STORE(y, 1, seq_cst); b = LOAD(x, seq_cst);,
    a == 0 && b == 0)
TWO(sb_exchange_and_fence,
    EXCHANGE(x, 1, seq_cst); a = LOAD(y, seq_cst);,
    STORE(y, 1, relaxed); FENCE(seq_cst); b = LOAD(x, relaxed);,
    a == 0 && b == 0)
TWO(sb_fence_and_load,
    STORE(x, 1, relaxed); FENCE(seq_cst); a = LOAD(y, relaxed);,
    STORE(y, 1, seq_cst); (void)LOAD(c, seq_cst); b = LOAD(x, relaxed);,
    a == 0 && b == 0)
TWO(mp_relaxed,
    STORE(x, 1, relaxed); STORE(y, 1, relaxed);,
    a = LOAD(y, relaxed); b = LOAD(x, relaxed);,
    a == 1 && b == 0)
TWO(mp_release_acquire,
    STORE(x, 1, relaxed); STORE(y, 1, release);,
    a = LOAD(y, acquire); b = LOAD(x, relaxed);,
    a == 1 && b == 0)
TWO(mp_release_relaxed,
    STORE(x, 1, relaxed); STORE(y, 1, release);,
    a = LOAD(y, relaxed); b = LOAD(x, relaxed);,
    a == 1 && b == 0)
TWO(mp_fences,
    STORE(x, 1, relaxed); FENCE(release); STORE(y, 1, relaxed);,
    a = LOAD(y, relaxed); FENCE(acquire); b = LOAD(x, relaxed);,
    a == 1 && b == 0)
TWO(corr,
    STORE(x, 1, relaxed); STORE(x, 2, relaxed);,
    a = LOAD(x, relaxed); b = LOAD(x, relaxed);,
    a == 2 && b == 1)
TWO(lb,
    a = LOAD(x, relaxed); STORE(y, 1, relaxed);,
    b = LOAD(y, relaxed); STORE(x, 1, relaxed);,
    a == 1 && b == 1)
TWO(release_sequence_of_a_store,
    STORE(x, 1, relaxed); STORE(y, 1, release); STORE(y, 2, relaxed);,
    a = LOAD(y, acquire); b = LOAD(x, relaxed);,
    a == 2 && b == 0)
TWO(release_sequence_of_an_exchange,
    STORE(x, 1, relaxed); STORE(y, 1, release); EXCHANGE(y, 2, relaxed);,
    a = LOAD(y, acquire); b = LOAD(x, relaxed);,
    a == 2 && b == 0)
// clang-format on

// Independent reads of independent writes.
static void writes_x_release(void *unused)
{
    (void)unused;
    STORE(x, 1, release);
}
static void writes_y_release(void *unused)
{
    (void)unused;
    STORE(y, 1, release);
}
static void writes_x_seq_cst(void *unused)
{
    (void)unused;
    STORE(x, 1, seq_cst);
}
static void writes_y_seq_cst(void *unused)
{
    (void)unused;
    STORE(y, 1, seq_cst);
}

static void reads_x_y_acquire(void *unused)
{
    (void)unused;
    a = LOAD(x, acquire);
    b = LOAD(y, acquire);
}

static void reads_y_x_acquire(void *unused)
{
    (void)unused;
    c = LOAD(y, acquire);
    d = LOAD(x, acquire);
}

static void reads_x_y_seq_cst(void *unused)
{
    (void)unused;
    a = LOAD(x, seq_cst);
    b = LOAD(y, seq_cst);
}

static void reads_y_x_seq_cst(void *unused)
{
    (void)unused;
    c = LOAD(y, seq_cst);
    d = LOAD(x, seq_cst);
}

static void iriw_acquire_setup(void)
{
    spawn(writes_x_release, writes_y_release);
    (void)explorer_spawn("P2", reads_x_y_acquire, NULL);
    (void)explorer_spawn("P3", reads_y_x_acquire, NULL);
}

static void iriw_seq_cst_setup(void)
{
    spawn(writes_x_seq_cst, writes_y_seq_cst);
    (void)explorer_spawn("P2", reads_x_y_seq_cst, NULL);
    (void)explorer_spawn("P3", reads_y_x_seq_cst, NULL);
}

static void iriw_check(void) { reached(a == 1 && b == 0 && c == 1 && d == 0); }

#define TEST(test, what, is_allowed, is_reachable)                                                           \
    {.program = {.name = #test, .sentence = what, .setup = test##_setup, .check = test##_check},             \
     .allowed = is_allowed,                                                                                  \
     .reachable = is_reachable}
#define iriw_acquire_check iriw_check
#define iriw_seq_cst_check iriw_check

static const litmus_test tests[] = {
    TEST(sb_relaxed, "two stores may be late for two loads", true, true),
    TEST(sb_release_acquire, "release and acquire do not hurry them", true, true),
    TEST(sb_fences, "two seq_cst fences do", false, false),
    TEST(sb_one_fence, "one does not", true, true),
    TEST(sb_fence_of_all, "one of all threads does", false, false),
    TEST(sb_seq_cst, "seq_cst on all four does", false, false),
    TEST(sb_exchange_and_fence, "so does an exchange against a fence", false, false),
    TEST(sb_fence_and_load, "a seq_cst load is no fence for the loads behind it", true, true),
    TEST(mp_relaxed, "a message may come before what it tells of", true, true),
    TEST(mp_release_acquire, "not from a release to an acquire", false, false),
    TEST(mp_release_relaxed, "but to a relaxed load", true, true),
    TEST(mp_fences, "fences on both sides suffice", false, false),
    TEST(corr, "a thread never reads backwards", false, false),
    TEST(release_sequence_of_a_store, "a store of the same thread ends a release sequence (C++20)", true,
         true),
    TEST(release_sequence_of_an_exchange, "an exchange continues it", false, false),
    TEST(iriw_acquire, "two readers may disagree about the order of two stores", true, true),
    TEST(iriw_seq_cst, "not about seq_cst ones", false, false),
    TEST(lb, "loads may see what depends on them: out of the explorer's reach", true, false),
};

const size_t litmus_count = sizeof tests / sizeof tests[0];

const litmus_test *litmus_test_at(size_t index) { return &tests[index]; }
