// age_pipe.c - the workload `reclaim`: checks that a grace period waits for all readers.
//
// An updater publishes elements one after the other. The element that is replaced grows a year older, is
// retired, and then grows older by a year with each grace period, until it is freed at ten. A reader checks,
// inside a read section, how old the published element is: 0, or 1 if it has been replaced since. It can
// never be older: the grace period that would age it further has to wait for this reader. Every age beyond 1
// is a failure.
//
// Source: rcutorture of the Linux kernel.

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../CScheduler/src/reclaim.h"
#include "main.h"
#include "random.h"
#include "watchdog.h"

enum {
    AGES = 10,
    ELEMENTS_MOST = 10000, // alive at a time: beyond that the updater waits for grace periods
    READS = 1000,          // between two checks of the clock and of the number of reads
    PUBLISHED = 0x5AFE,
};

typedef struct {
    csched_retired retired;
    _Atomic(uint32_t) age;
    uint32_t content; // plain: freeing it must be ordered after every reader
} element;

static csched_reclaim *domain;
static _Atomic(element *) current;
static _Atomic(uint64_t) alive;
static _Atomic(uint64_t) left;
static _Atomic(uint64_t) histogram[AGES + 1];
static _Atomic(uint64_t) corrupt;
static _Atomic(uint64_t) updates;
static _Atomic(bool) ended;
static uint64_t end_ns;

static void retire(element *old);

static void grow_older(csched_retired *object)
{
    element *old = (element *)(void *)object;
    if (atomic_fetch_add_explicit(&old->age, 1, memory_order_relaxed) + 1 < AGES) {
        retire(old);
        return;
    }
    old->content = 0;
    free(old);
    atomic_fetch_sub_explicit(&alive, 1, memory_order_relaxed);
}

static void retire(element *old)
{
#ifdef STRESS_GRACE_SKIPPED
    grow_older(&old->retired);
#else
    csched_reclaim_retire(domain, &old->retired, grow_older);
#endif
}

static void replace(element *next)
{
    element *old = atomic_exchange_explicit(&current, next, memory_order_acq_rel);
    if (old != NULL) {
        atomic_fetch_add_explicit(&old->age, 1, memory_order_relaxed);
        retire(old);
    }
    atomic_fetch_add_explicit(&updates, 1, memory_order_relaxed);
}

static element *create(void)
{
    element *made = malloc(sizeof *made);
    if (made == NULL) {
        stress_stop("memory is exhausted: an element could not be allocated");
    }
    atomic_init(&made->age, 0);
    made->content = PUBLISHED;
    atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
    return made;
}

static void *update(void *context)
{
    stress_random random = {*(const uint64_t *)context};
    while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
        if (atomic_load_explicit(&alive, memory_order_relaxed) > ELEMENTS_MOST) {
            stress_sleep_ns(100000);
            continue;
        }
        replace(create());
        if (stress_one_in(&random, 4)) {
            stress_sleep_ns(stress_below(&random, 100000));
        }
    }
    return NULL;
}

// Gives the updater, or another reader, time in the middle of a read section.
static void linger(stress_random *random)
{
    switch (stress_below(random, 500)) {
    case 0:
        stress_sleep_ns(stress_below(random, 200000));
        break;
    case 1:
    case 2:
        sched_yield();
        break;
    case 3:
        for (volatile uint32_t spin = stress_below(random, 20000); spin > 0; spin--) {
        }
        break;
    default:
        break;
    }
}

static void look(stress_random *random, uint64_t *ages)
{
    bool nested = stress_one_in(random, 16);
    csched_reclaim_enter();
    element *found = atomic_load_explicit(&current, memory_order_acquire);
    if (nested) {
        csched_reclaim_enter();
        csched_reclaim_exit(); // must not end the outer one
    }
    linger(random);
    uint32_t age = atomic_load_explicit(&found->age, memory_order_relaxed);
    ages[age < AGES ? age : AGES]++;
    if (found->content != PUBLISHED) {
        atomic_fetch_add_explicit(&corrupt, 1, memory_order_relaxed);
    }
    csched_reclaim_exit();
}

static bool take_reads(void)
{
    uint64_t before = atomic_load_explicit(&left, memory_order_relaxed);
    do {
        if (before == 0 || stress_now_ns() >= end_ns) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&left, &before, before > READS ? before - READS : 0,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void *read_ages(void *context)
{
    stress_random random = {*(const uint64_t *)context};
    uint64_t ages[AGES + 1] = {0};
    csched_reclaim_join();
    while (take_reads()) {
        for (int read = 0; read < READS; read++) {
            look(&random, ages);
        }
        stress_beat();
        if (stress_one_in(&random, 16)) { // readers come and go
            csched_reclaim_leave();
            csched_reclaim_join();
        }
    }
    csched_reclaim_leave();
    for (int age = 0; age <= AGES; age++) {
        atomic_fetch_add_explicit(&histogram[age], ages[age], memory_order_relaxed);
    }
    return NULL;
}

static uint64_t no_progress(void) { return 0; } // the readers call stress_beat

static void describe(void)
{
    fprintf(stderr, "  reclaim: retired %llu, freed %llu, elements alive %llu, reads left %llu.\n",
            (unsigned long long)csched_reclaim_retired(domain),
            (unsigned long long)csched_reclaim_freed(domain), (unsigned long long)alive,
            (unsigned long long)left);
}

static bool report(const stress_options *options)
{
    uint64_t reads = 0, old = 0;
    char more[400] = ",\"ages\":[";
    size_t length = sizeof ",\"ages\":[" - 1;
    for (int age = 0; age <= AGES; age++) {
        uint64_t count = atomic_load_explicit(&histogram[age], memory_order_relaxed);
        reads += count;
        old += age > 1 ? count : 0;
        length += (size_t)snprintf(more + length, sizeof more - length, "%s%llu", age == 0 ? "" : ",",
                                   (unsigned long long)count);
    }
    (void)snprintf(more + length, sizeof more - length, "],\"updates\":%llu",
                   (unsigned long long)atomic_load_explicit(&updates, memory_order_relaxed));
    stress_tally tally = {.operations = reads, .ran = reads, .stale = old, .wrong = corrupt};
    // Without elements of age 1, the readers observed no replacement, and the run is inconclusive.
    bool told =
        atomic_load_explicit(&histogram[1], memory_order_relaxed) > 0 || options->operations < 1000000;
    if (!told) {
        fprintf(stderr, "stress: no reader saw an element that had been replaced: the check saw nothing.\n");
    }
    bool passed = stress_tally_is_clean(&tally) && told;
    stress_report(&tally, more, passed ? "passed" : "failed");
    return passed;
}

static const stress_watched watched = {.progress = no_progress, .describe = describe};

bool stress_reclaim(const stress_options *options)
{
    pthread_t updater;
    pthread_t *readers = calloc(options->threads, sizeof *readers);
    uint64_t *seeds = calloc(options->threads + 1, sizeof *seeds);
    domain = csched_reclaim_create();
    if (readers == NULL || seeds == NULL || domain == NULL) {
        stress_stop("memory is exhausted: the readers could not be allocated");
    }
    end_ns = options->seconds == UINT32_MAX ? UINT64_MAX
                                            : stress_now_ns() + options->seconds * UINT64_C(1000000000);
    atomic_store(&left, options->operations);
    replace(create());
    stress_watch(&watched);
    seeds[options->threads] = options->seed;
    bool started = pthread_create(&updater, NULL, update, &seeds[options->threads]) == 0;
    for (uint32_t index = 0; started && index < options->threads; index++) {
        seeds[index] = options->seed * 1000003 + index;
        started = pthread_create(&readers[index], NULL, read_ages, &seeds[index]) == 0;
    }
    if (!started) {
        stress_stop("a thread could not be created for the reclamation");
    }
    for (uint32_t index = 0; index < options->threads; index++) {
        pthread_join(readers[index], NULL);
    }
    atomic_store(&ended, true);
    pthread_join(updater, NULL);
    retire(atomic_exchange(&current, NULL));
    while (atomic_load_explicit(&alive, memory_order_relaxed) != 0) {
        stress_sleep_ns(1000000);
    }
    stress_watch(NULL);
    csched_reclaim_destroy(domain);
    free(readers);
    free(seeds);
    return report(options);
}
