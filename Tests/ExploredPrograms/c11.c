#include <explorer/explored.h>

// The header explored.h has replaced both headers below: including them again must change nothing.
#include <stdatomic.h>

#include <errno.h>
#include <pthread.h>

#include "expect.h"
#include "programs.h"

#define PROGRAM(program, text)                                                                               \
    const explorer_program program = {.name = #program, .sentence = text, .body = program##_body}

// MARK: A message

static atomic_int data;
static atomic_bool is_ready;
static memory_order publication;

static void *sends(void *unused)
{
    atomic_store_explicit(&data, 42, memory_order_relaxed);
    if (publication == memory_order_seq_cst) { // stands for the variant with fences
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&is_ready, true, memory_order_relaxed);
    } else {
        atomic_store_explicit(&is_ready, true, publication);
    }
    return unused;
}

static void *receives(void *unused)
{
    bool ready = false;
    if (publication == memory_order_seq_cst) {
        ready = atomic_load_explicit(&is_ready, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
    } else {
        ready = atomic_load_explicit(&is_ready, memory_order_acquire);
    }
    if (ready) {
        EXPECT(atomic_load_explicit(&data, memory_order_relaxed) == 42);
    }
    return unused;
}

static void run_both(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];
    EXPECT(pthread_create(&threads[0], NULL, first, NULL) == 0);
    EXPECT(pthread_create(&threads[1], NULL, second, NULL) == 0);
    EXPECT(pthread_join(threads[0], NULL) == 0);
    EXPECT(pthread_join(threads[1], NULL) == 0);
}

static void send_a_message(memory_order order)
{
    publication = order;
    atomic_init(&data, 0);
    atomic_init(&is_ready, false);
    run_both(sends, receives);
}

static void message_with_release_body(void) { send_a_message(memory_order_release); }
PROGRAM(message_with_release, "who sees the flag sees the data");
static void message_relaxed_body(void) { send_a_message(memory_order_relaxed); }
PROGRAM(message_relaxed, "the same, and nothing orders the two");
static void message_by_fences_body(void) { send_a_message(memory_order_seq_cst); }
PROGRAM(message_by_fences, "the same, by fences");

// MARK: Mutexes

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int count;

static void add_one(void)
{
    int before = atomic_load_explicit(&count, memory_order_relaxed);
    atomic_store_explicit(&count, before + 1, memory_order_relaxed);
}

static void *adds_locked(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    add_one();
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static void *adds(void *unused)
{
    add_one();
    return unused;
}

static void *adds_if_free(void *unused)
{
    int taken = pthread_mutex_trylock(&mutex);
    EXPECT(taken == 0 || taken == EBUSY);
    if (taken == 0) {
        add_one();
        (void)pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void begin_count(void)
{
    atomic_init(&count, 0);
    (void)pthread_mutex_init(&mutex, NULL);
    (void)pthread_mutex_init(&other_mutex, NULL);
}

static void counter_under_a_mutex_body(void)
{
    begin_count();
    run_both(adds_locked, adds_locked);
    EXPECT(atomic_load(&count) == 2);
}
PROGRAM(counter_under_a_mutex, "two add one each, under a mutex");

static void counter_without_a_mutex_body(void)
{
    begin_count();
    run_both(adds, adds);
    EXPECT(atomic_load(&count) == 2);
}
PROGRAM(counter_without_a_mutex, "two add one each, by a load and a store");

static void counter_under_trylock_body(void)
{
    begin_count();
    run_both(adds_if_free, adds_locked);
    int sum = atomic_load(&count);
    EXPECT(sum == 1 || sum == 2);
}
PROGRAM(counter_under_trylock, "one adds if nobody does");

static void *locks_in_order(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_mutex_lock(&other_mutex);
    (void)pthread_mutex_unlock(&other_mutex);
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static void *locks_backwards(void *unused)
{
    (void)pthread_mutex_lock(&other_mutex);
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_mutex_unlock(&other_mutex);
    return unused;
}

static void two_mutexes_in_two_orders_body(void)
{
    begin_count();
    run_both(locks_in_order, locks_backwards);
}
PROGRAM(two_mutexes_in_two_orders, "two locks, taken in both orders");

// MARK: Conditions

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int turns;

static void *hands_over(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    (void)atomic_fetch_add(&turns, 1);
    (void)pthread_cond_signal(&condition);
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static void *waits_for_a_turn(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    while (atomic_load(&turns) == 0) {
        (void)pthread_cond_wait(&condition, &mutex);
    }
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static void *waits_without_a_look(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_cond_wait(&condition, &mutex);
    EXPECT(atomic_load(&turns) == 1);
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static void begin_turns(void)
{
    begin_count();
    atomic_init(&turns, 0);
    (void)pthread_cond_init(&condition, NULL);
}

static void handed_over_by_a_condition_body(void)
{
    begin_turns();
    run_both(waits_for_a_turn, hands_over);
}
PROGRAM(handed_over_by_a_condition, "a wait that looks again");

static void a_condition_that_is_not_looked_at_again_body(void)
{
    begin_turns();
    run_both(waits_without_a_look, hands_over);
}
PROGRAM(a_condition_that_is_not_looked_at_again, "a wait that does not look at all");

// MARK: Memory

static unsigned char *shared_bytes;

static void *sets_bytes(void *unused)
{
    (void)memset(shared_bytes, 1, 100);
    return unused;
}

static void *copies_bytes(void *unused)
{
    char own[50];
    (void)memcpy(own, shared_bytes + 50, sizeof own);
    return unused;
}

static void bytes_in_bulk_body(void)
{
    shared_bytes = calloc(1, 100);
    run_both(sets_bytes, copies_bytes);
    free(shared_bytes);
}
PROGRAM(bytes_in_bulk, "memset beside memcpy");

static void bulk_beyond_the_end_body(void)
{
    char *memory = malloc(10);
    (void)memset(memory, 0, 11);
    free(memory);
}
PROGRAM(bulk_beyond_the_end, "memset of one byte too many");

static void freed_inside_body(void)
{
    char *memory = malloc(10);
    free(memory + 4);
}
PROGRAM(freed_inside, "memory is freed by an address inside of it");

static _Atomic(atomic_int *) cell;

static void *reads_the_cell(void *unused)
{
    atomic_int *seen = atomic_load(&cell);
    if (seen != NULL) {
        (void)atomic_load(seen);
    }
    return unused;
}

static void *frees_the_cell(void *unused)
{
    free(atomic_exchange(&cell, NULL));
    return unused;
}

static void freed_while_read_body(void)
{
    atomic_int *value = malloc(sizeof *value);
    atomic_init(value, 1);
    atomic_init(&cell, value);
    run_both(reads_the_cell, frees_the_cell);
}
PROGRAM(freed_while_read, "memory is freed while it is read");

static void left_over_memory_body(void)
{
    int *left = calloc(4, sizeof *left);
    EXPECT(left != NULL && left[3] == 0);
    EXPECT(calloc(SIZE_MAX, 2) == NULL);
    void *page = aligned_alloc(4096, 100);
    EXPECT((uintptr_t)page % 4096 == 0);
    free(page);
    char *grown = realloc(memcpy(malloc(3), "ab", 3), 20);
    EXPECT(memcmp(grown, "ab", 3) == 0);
    free(grown);
}
PROGRAM(left_over_memory, "memory that nobody frees");

// MARK: Loops without a yield

static void *sets_the_flag(void *unused)
{
    atomic_store_explicit(&is_ready, true, memory_order_release);
    return unused;
}

static void *spins_for_the_flag(void *unused)
{
    while (!atomic_load_explicit(&is_ready, memory_order_acquire)) {
    }
    return unused;
}

static void a_loop_that_spins_body(void)
{
    atomic_init(&is_ready, false);
    run_both(spins_for_the_flag, sets_the_flag);
}
PROGRAM(a_loop_that_spins, "one spins until the other one has set a flag");

static void a_loop_for_nothing_body(void)
{
    atomic_init(&is_ready, false);
    run_both(spins_for_the_flag, spins_for_the_flag);
}
PROGRAM(a_loop_for_nothing, "both spin, and nobody sets the flag");

enum { ROUNDS = 8 };
static atomic_int rounds;

static void *looks_and_stores(void *unused)
{
    for (int round = 1; round <= ROUNDS; round++) {
        EXPECT(!atomic_load_explicit(&is_ready, memory_order_relaxed));
        atomic_store_explicit(&rounds, round, memory_order_relaxed);
    }
    return unused;
}

static void *sees_none_or_all(void *unused)
{
    int seen = atomic_load_explicit(&rounds, memory_order_relaxed);
    EXPECT(seen == 0 || seen == ROUNDS);
    return unused;
}

static void a_loop_that_works_body(void)
{
    atomic_init(&is_ready, false);
    atomic_init(&rounds, 0);
    run_both(looks_and_stores, sees_none_or_all);
}
PROGRAM(a_loop_that_works, "one looks at the same, and changes something else between its looks");

// MARK: Mutexes that are used wrong

static void *unlocks(void *unused)
{
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static void unlocked_by_another_body(void)
{
    begin_count();
    (void)pthread_mutex_lock(&mutex);
    pthread_t thread;
    (void)pthread_create(&thread, NULL, unlocks, NULL);
    (void)pthread_join(thread, NULL);
}
PROGRAM(unlocked_by_another, "a mutex is unlocked by a thread that does not have it");

static void unlocked_free_body(void)
{
    begin_count();
    (void)pthread_mutex_unlock(&mutex);
}
PROGRAM(unlocked_free, "a mutex is unlocked that nobody has");

static void locked_twice_body(void)
{
    begin_count();
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_mutex_lock(&mutex);
}
PROGRAM(locked_twice, "a mutex is locked twice");

static void locked_uninitialised_body(void)
{
    pthread_mutex_t *allocated = malloc(sizeof *allocated);
    (void)pthread_mutex_lock(allocated);
}
PROGRAM(locked_uninitialised, "a mutex is locked that was not initialised");

static void unlocked_after_free_body(void)
{
    pthread_mutex_t *allocated = malloc(sizeof *allocated);
    (void)pthread_mutex_init(allocated, NULL);
    (void)pthread_mutex_lock(allocated);
    pthread_mutex_t *again = allocated;
    free(allocated);
    (void)pthread_mutex_unlock(again);
}
PROGRAM(unlocked_after_free, "a mutex is unlocked whose memory was freed");

static void joined_twice_body(void)
{
    pthread_t thread;
    (void)pthread_create(&thread, NULL, adds, NULL);
    (void)pthread_join(thread, NULL);
    (void)pthread_join(thread, NULL);
}
PROGRAM(joined_twice, "a thread is joined twice");

// MARK: Which waiter is woken

static void *waits_for_the_second_turn(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    while (atomic_load(&turns) < 2) {
        (void)pthread_cond_wait(&condition, &mutex);
    }
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

// The first turn is meant for one waiter, but its signal may wake the other.
static void the_wrong_waiter_body(void)
{
    begin_turns();
    pthread_t threads[2];
    (void)pthread_create(&threads[0], NULL, waits_for_a_turn, NULL);
    (void)pthread_create(&threads[1], NULL, waits_for_the_second_turn, NULL);
    explorer_settle(&(explorer_site){__FILE__, __LINE__, "settle"});
    (void)hands_over(NULL);
    (void)pthread_join(threads[0], NULL);
    (void)hands_over(NULL);
    (void)pthread_join(threads[1], NULL);
}
PROGRAM(the_wrong_waiter, "a signal wakes a waiter that it is not for");

// MARK: Nodes that come back

enum { NODES = 3, NONE = 9 };
static atomic_int top;
static atomic_int next[NODES];
static atomic_int popped[NODES];

static void push(int node)
{
    int seen = atomic_load(&top);
    do {
        atomic_store(&next[node], seen);
    } while (!atomic_compare_exchange_weak(&top, &seen, node));
}

static int pop(void)
{
    int seen = atomic_load(&top);
    while (seen != NONE && !atomic_compare_exchange_weak(&top, &seen, atomic_load(&next[seen]))) {
    }
    return seen;
}

static void *pops(void *unused)
{
    int node = pop();
    if (node != NONE) {
        (void)atomic_fetch_add(&popped[node], 1);
    }
    return unused;
}

static void *pops_two_and_returns_one(void *unused)
{
    int first = pop();
    (void)pops(NULL);
    if (first != NONE) {
        push(first);
    }
    return unused;
}

static void nodes_that_come_back_body(void)
{
    atomic_init(&top, NONE);
    for (int node = 0; node < NODES; node++) {
        atomic_init(&next[node], NONE);
        atomic_init(&popped[node], 0);
        push(node);
    }
    run_both(pops, pops_two_and_returns_one);
    for (int left = 0; left < NODES; left++) {
        (void)pops(NULL);
    }
    for (int node = 0; node < NODES; node++) {
        EXPECT(atomic_load(&popped[node]) == 1);
    }
}
PROGRAM(nodes_that_come_back, "a stack of nodes without a tag (ABA)");

// MARK: What C11 says of each operation

typedef struct {
    uint16_t index;
    uint16_t tag;
} pair;

static void operations_of_c11_body(void)
{
    int numbers[4] = {0};
    _Atomic(int *) pointer;
    atomic_init(&pointer, numbers);
    EXPECT(atomic_fetch_add(&pointer, 3) == numbers);
    EXPECT(atomic_fetch_sub(&pointer, 1) == numbers + 3);
    EXPECT(atomic_load(&pointer) == numbers + 2);

    atomic_schar small;
    atomic_init(&small, 127);
    EXPECT(atomic_fetch_add(&small, 1) == 127);
    EXPECT(atomic_fetch_sub(&small, 1) == -128);
    EXPECT(atomic_fetch_xor(&small, 0x0F) == 127);
    EXPECT(atomic_fetch_and(&small, 0x3C) == 0x70);
    EXPECT(atomic_fetch_or(&small, 1) == 0x30);
    EXPECT(atomic_exchange(&small, -5) == 0x31);
    EXPECT(atomic_load(&small) == -5);

    atomic_llong wide;
    atomic_init(&wide, -1);
    EXPECT(atomic_fetch_add_explicit(&wide, -2, memory_order_acq_rel) == -1);
    EXPECT(atomic_load_explicit(&wide, memory_order_consume) == -3);

    _Atomic(pair) both;
    atomic_init(&both, ((pair){1, 2}));
    pair seen = {1, 3};
    EXPECT(!atomic_compare_exchange_strong(&both, &seen, ((pair){7, 7})));
    EXPECT(seen.index == 1 && seen.tag == 2);
    EXPECT(atomic_compare_exchange_strong(&both, &seen, ((pair){7, 8})));
    EXPECT(atomic_load(&both).tag == 8);

    _Atomic(double) real;
    atomic_init(&real, 0.5);
    atomic_store_explicit(&real, 2.25, memory_order_release);
    EXPECT(atomic_load(&real) > 2.2);

    atomic_flag flag = ATOMIC_FLAG_INIT;
    EXPECT(!atomic_flag_test_and_set(&flag));
    EXPECT(atomic_flag_test_and_set_explicit(&flag, memory_order_acquire));
    atomic_flag_clear(&flag);
    EXPECT(!atomic_flag_test_and_set(&flag));
    EXPECT(atomic_is_lock_free(&wide));
}
PROGRAM(operations_of_c11, "the operations of one thread");

static void *returns_its_argument(void *argument) { return argument; }

static void results_of_threads_body(void)
{
    pthread_t threads[2];
    int results[2];
    for (int index = 0; index < 2; index++) {
        EXPECT(pthread_create(&threads[index], NULL, returns_its_argument, &results[index]) == 0);
    }
    for (int index = 0; index < 2; index++) {
        void *result = NULL;
        EXPECT(pthread_join(threads[index], &result) == 0);
        EXPECT(result == &results[index]);
    }
    EXPECT(sched_yield() == 0);
    EXPECT(pthread_equal(pthread_self(), pthread_self()));
    pthread_t more[EXPLORER_THREADS];
    int created = 0;
    while (pthread_create(&more[created], NULL, returns_its_argument, NULL) == 0) {
        created++;
    }
    EXPECT(created == EXPLORER_THREADS - 3);
}
PROGRAM(results_of_threads, "what threads return, and as many as there may be");
