// plain.c - the functions that the compiler calls at instrumented plain accesses, called by hand: the flag
// for the instrumentation would be unsafe in this package's manifest.

#include <explorer/explored.h>

#include "programs.h"

void __sanitizer_cov_load1(const void *address);
void __sanitizer_cov_load4(const void *address);
void __sanitizer_cov_load8(const void *address);
void __sanitizer_cov_store1(const void *address);
void __sanitizer_cov_store4(const void *address);
void __sanitizer_cov_store8(const void *address);

#define PROGRAM(program, text)                                                                               \
    const explorer_program program = {.name = #program, .sentence = text, .body = program##_body}

static _Alignas(16) unsigned char bytes[16];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int flag;

static void run_both(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];
    atomic_init(&flag, 0);
    (void)pthread_mutex_init(&mutex, NULL);
    (void)pthread_create(&threads[0], NULL, first, NULL);
    (void)pthread_create(&threads[1], NULL, second, NULL);
    (void)pthread_join(threads[0], NULL);
    (void)pthread_join(threads[1], NULL);
    __sanitizer_cov_store8(bytes); // both have ended: happens after their accesses
}

#define THREAD(name, access)                                                                                 \
    static void *name(void *unused)                                                                          \
    {                                                                                                        \
        access;                                                                                              \
        return unused;                                                                                       \
    }

THREAD(reads, __sanitizer_cov_load4(bytes))
THREAD(writes, __sanitizer_cov_store4(bytes))
THREAD(writes_next_four, __sanitizer_cov_store4(bytes + 4))
THREAD(reads_last_of_eight, __sanitizer_cov_load1(bytes + 7))
THREAD(writes_eight, __sanitizer_cov_store8(bytes))

static void plain_write_and_read_body(void) { run_both(writes, reads); }
PROGRAM(plain_write_and_read, "one writes what the other one reads");
static void plain_read_and_write_body(void) { run_both(reads, writes); }
PROGRAM(plain_read_and_write, "one reads what the other one writes");
static void plain_two_writes_body(void) { run_both(writes, writes); }
PROGRAM(plain_two_writes, "both write");
static void plain_overlap_body(void) { run_both(writes_eight, reads_last_of_eight); }
PROGRAM(plain_overlap, "one writes eight bytes, of which the other one reads the last");
THREAD(writes_across, __sanitizer_cov_store8(bytes + 4))
THREAD(reads_the_ninth, __sanitizer_cov_load1(bytes + 9))
static void plain_two_granules_body(void) { run_both(writes_across, reads_the_ninth); }
PROGRAM(plain_two_granules, "one writes four bytes of eight, and four behind them");
static void plain_neighbours_body(void) { run_both(writes, writes_next_four); }
PROGRAM(plain_neighbours, "they write side by side");
static void plain_two_reads_body(void) { run_both(reads, reads); }
PROGRAM(plain_two_reads, "both read");

static void *writes_locked(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    __sanitizer_cov_load4(bytes);
    __sanitizer_cov_store4(bytes);
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static void plain_under_a_mutex_body(void) { run_both(writes_locked, writes_locked); }
PROGRAM(plain_under_a_mutex, "both read and write, under a mutex");

static void *writes_if_free(void *unused)
{
    if (pthread_mutex_trylock(&mutex) == 0) {
        __sanitizer_cov_store4(bytes);
        (void)pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void plain_under_trylock_body(void) { run_both(writes_locked, writes_if_free); }
PROGRAM(plain_under_trylock, "one writes if the mutex is free");

// The first write is released; the second one is not.
static void *writes_releases_and_writes(void *unused)
{
    __sanitizer_cov_store4(bytes);
    atomic_store_explicit(&flag, 1, memory_order_release);
    __sanitizer_cov_store4(bytes + 4);
    return unused;
}

static void *acquires_and_reads_the_second(void *unused)
{
    if (atomic_load_explicit(&flag, memory_order_acquire) == 1) {
        __sanitizer_cov_load4(bytes + 4);
    }
    return unused;
}

static void *acquires_and_writes_the_first(void *unused)
{
    if (atomic_load_explicit(&flag, memory_order_acquire) == 1) {
        __sanitizer_cov_store4(bytes);
    }
    return unused;
}

static void plain_after_a_release_body(void)
{
    run_both(writes_releases_and_writes, acquires_and_reads_the_second);
}
PROGRAM(plain_after_a_release, "what is written behind a release is read");
static void plain_handed_on_body(void)
{
    run_both(writes_releases_and_writes, acquires_and_writes_the_first);
}
PROGRAM(plain_handed_on, "what is written before a release is written again behind its acquire");

static void plain_before_a_thread_body(void)
{
    __sanitizer_cov_store4(bytes);
    run_both(reads, reads);
}
PROGRAM(plain_before_a_thread, "what was written before both began is read");

static void *reads_aside(void *unused)
{
    explorer_ignore_plain(true);
    __sanitizer_cov_load4(bytes);
    explorer_ignore_plain(false);
    return unused;
}

static void plain_ignored_body(void) { run_both(writes, reads_aside); }
PROGRAM(plain_ignored, "one looks aside");

static void plain_beyond_the_end_body(void)
{
    unsigned char *memory = malloc(16);
    __sanitizer_cov_store8(memory + 8);
    __sanitizer_cov_store8(memory + 16);
    free(memory);
}
PROGRAM(plain_beyond_the_end, "one element beyond the end is written");

static void plain_after_free_body(void)
{
    unsigned char *memory = malloc(16);
    free(memory);
    __sanitizer_cov_load1(memory);
}
PROGRAM(plain_after_free, "freed memory is read");

static unsigned char *block;
THREAD(writes_block, __sanitizer_cov_store4(block))
THREAD(frees_block, free(block))

static void plain_freed_unknown_body(void)
{
    block = malloc(16);
    run_both(writes_block, frees_block);
}
PROGRAM(plain_freed_unknown, "memory is freed by a thread that does not know of a write");

static atomic_int late;

static void *writes_it_plainly(void *unused)
{
    __sanitizer_cov_store4(&late);
    return unused;
}

static void *loads_it(void *unused)
{
    (void)atomic_load(&late);
    return unused;
}

static void plain_then_atomic_body(void) { run_both(writes_it_plainly, loads_it); }
PROGRAM(plain_then_atomic, "an atomic object is written plainly, by who tells nobody");

static void *stores_late(void *unused)
{
    atomic_store(&late, 1);
    return unused;
}

static void *reads_late_plainly(void *unused)
{
    __sanitizer_cov_load4(&late);
    return unused;
}

static void plain_of_atomic_body(void)
{
    atomic_init(&late, 0);
    run_both(stores_late, reads_late_plainly);
}
PROGRAM(plain_of_atomic, "an atomic object is read plainly");
