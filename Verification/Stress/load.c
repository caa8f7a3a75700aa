// load.c - producers: their rounds, their end, and the threads that replace them.

#include "load.h"

#include <stdio.h>
#include <stdlib.h>

#include "disturber.h"
#include "watchdog.h"

enum { ROUND_MOST = 65536, ROUND_LEAST = 512, ROUNDS_OF_A_THREAD = 5 };
enum { ONE_ROUND_SPARSE_IN = 4, SPARSE_PART = 16, PAUSE_MOST_NS = 60000 };
static const uint64_t injection_interval = 1000000;

void stress_expect_ok(csched_status status, const char *call)
{
    if (status != CSCHED_OK) {
        fprintf(stderr, "stress: %s answered: %s.\n", call, csched_status_message(status));
        stress_stop("a call that must succeed was refused");
    }
}

bool stress_errs(stress_producer *producer, stress_injection injection)
{
    if (producer->load->options->injection != injection) {
        return false;
    }
    uint64_t all = producer->submitted + producer->ledger.used;
    if (all < producer->next_injection) {
        return false;
    }
    producer->next_injection += injection_interval;
    producer->tally.injected++;
    return true;
}

static void create_producer(stress_load *load, stress_producer *producer, uint64_t seed)
{
    *producer = (stress_producer){
        .load = load,
        .scheduler = load->scheduler,
        .round = csched_completion_create(),
        .phase = csched_completion_create(),
        .random = {seed},
        .next_injection = injection_interval / 2,
    };
    if (producer->round == NULL || producer->phase == NULL) {
        stress_stop("memory is exhausted: csched_completion_create answered NULL");
    }
    stress_ledger_create(&producer->ledger, load->round + 2 * STRESS_SHOT);
    for (uint32_t index = 0; index < STRESS_LANES; index++) {
        producer->seats[index] = (stress_seat){.producer = producer, .lane = &load->lanes[index]};
    }
}

static void destroy_producer(stress_producer *producer)
{
    csched_completion_release(producer->round);
    csched_completion_release(producer->phase);
    stress_ledger_destroy(&producer->ledger);
}

void stress_load_create(stress_load *load, const stress_options *options, uint32_t producers,
                        uint32_t workers)
{
    *load = (stress_load){
        .options = options, .count = producers, .workers = workers, .shots = stress_choose_shots(options)};
    pthread_mutex_init(&load->mutex, NULL);
    pthread_cond_init(&load->idle, NULL);
    csched_configuration configuration = csched_configuration_default();
    configuration.workers = workers;
    configuration.name = "stress";
    stress_expect_ok(csched_scheduler_create(&configuration, &load->scheduler), "csched_scheduler_create");
    load->producers = calloc(producers, sizeof *load->producers);
    for (uint32_t index = 0; index < STRESS_LANES; index++) {
        load->lanes[index].lane = csched_lane_create(load->scheduler);
        if (load->lanes[index].lane == NULL || load->producers == NULL) {
            stress_stop("memory is exhausted: the load could not be created");
        }
    }
    uint64_t round = options->operations / producers / 4; // a few rounds each, also in a short run
    load->round = round < ROUND_LEAST ? ROUND_LEAST : round > ROUND_MOST ? ROUND_MOST : (uint32_t)round;
    for (uint32_t index = 0; index < producers; index++) {
        create_producer(load, &load->producers[index], options->seed * 1000003 + index);
    }
}

// Reserves a round from the remaining operations: returns its number of operations, or 0 at the
// end.
static uint32_t reserve(stress_load *load, uint32_t operations)
{
    uint64_t left = atomic_load_explicit(&load->left, memory_order_relaxed);
    uint64_t rest;
    do {
        rest = left > operations ? left - operations : 0;
    } while (!atomic_compare_exchange_weak_explicit(&load->left, &left, rest, memory_order_relaxed,
                                                    memory_order_relaxed));
    return (uint32_t)(left - rest);
}

// Lets the scheduler run dry: by waiting, or by letting time pass.
static void pause_between(stress_producer *producer)
{
    switch (stress_below(&producer->random, 4)) {
    case 0:
        break;
    case 1:
        stress_sleep_ns(stress_below(&producer->random, PAUSE_MOST_NS));
        break;
    default:
        (void)csched_completion_wait(producer->round, CSCHED_FOREVER);
    }
}

// False: nothing is left to do.
static bool play_round(stress_producer *producer)
{
    stress_load *load = producer->load;
    stress_ledger *ledger = &producer->ledger;
    bool sparse = load->sparse || stress_one_in(&producer->random, ONE_ROUND_SPARSE_IN);
    uint32_t operations = reserve(load, sparse ? load->round / SPARSE_PART : load->round);
    if (operations == 0) {
        return false;
    }
    producer->rounds++;
    stress_begin(ledger, (uint32_t)stress_next(&producer->random));
    while (ledger->used < operations) {
        stress_shoot(producer);
        if (sparse) {
            pause_between(producer);
        }
    }
    if (csched_completion_wait(producer->round, CSCHED_FOREVER) != CSCHED_WAIT_COMPLETED) {
        stress_note(&ledger->wrong);
    }
    producer->submitted += ledger->used;
    stress_check(ledger, &producer->tally);
    stress_beat();
    return true;
}

static void note_end(stress_load *load)
{
    pthread_mutex_lock(&load->mutex);
    if (atomic_fetch_sub_explicit(&load->active, 1, memory_order_relaxed) == 1) {
        pthread_cond_broadcast(&load->idle);
    }
    pthread_mutex_unlock(&load->mutex);
}

static void start(stress_producer *producer);

// A thread plays a few rounds, then hands its place to a new thread: threads that submit come and
// go.
static void *produce(void *context)
{
    stress_producer *producer = context;
    stress_load *load = producer->load;
    for (uint32_t round = 0; round < ROUNDS_OF_A_THREAD; round++) {
        if (!play_round(producer)) {
            note_end(load);
            return NULL;
        }
    }
    start(producer);
    return NULL;
}

static void start(stress_producer *producer)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, produce, producer) != 0) {
        stress_stop("a thread could not be created for a producer");
    }
    (void)pthread_detach(thread);
}

static void wait_until_idle(stress_load *load, uint64_t end_ns)
{
    pthread_mutex_lock(&load->mutex);
    while (atomic_load_explicit(&load->active, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&load->lives, memory_order_relaxed) != 0) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec++;
        (void)pthread_cond_timedwait(&load->idle, &load->mutex, &soon);
        if (stress_now_ns() >= end_ns) {
            atomic_store_explicit(&load->left, 0, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&load->mutex);
}

void stress_load_run(stress_load *load, uint64_t operations, uint64_t end_ns)
{
    atomic_store_explicit(&load->left, operations, memory_order_relaxed);
    atomic_store_explicit(&load->active, load->count, memory_order_relaxed);
    stress_disturber disturber;
    if (!load->sparse) {
        stress_disturber_start(&disturber, load, stress_next(&load->producers[0].random));
    }
    for (uint32_t index = 0; index < load->count; index++) {
        start(&load->producers[index]);
    }
    wait_until_idle(load, end_ns);
    if (!load->sparse) {
        stress_disturber_stop(&disturber);
    }
}

void stress_load_destroy(stress_load *load, stress_tally *tally)
{
    stress_expect_ok(csched_scheduler_shutdown(load->scheduler, CSCHED_FOREVER), "csched_scheduler_shutdown");
    csched_statistics statistics = csched_scheduler_statistics(load->scheduler);
    if (statistics.submitted != statistics.executed || statistics.cancelled != 0) {
        fprintf(stderr, "stress: %llu operations were submitted, %llu executed and %llu cancelled.\n",
                (unsigned long long)statistics.submitted, (unsigned long long)statistics.executed,
                (unsigned long long)statistics.cancelled);
        stress_note(&load->wrong);
    }
    for (uint32_t index = 0; index < STRESS_LANES; index++) {
        const stress_lane *lane = &load->lanes[index];
        if (lane->runs != atomic_load_explicit(&lane->expected, memory_order_relaxed)) {
            fprintf(stderr, "stress: a lane ran %llu operations of %llu, or two at a time.\n",
                    (unsigned long long)lane->runs, (unsigned long long)lane->expected);
            stress_note(&load->wrong);
        }
        csched_lane_release(lane->lane);
    }
    for (uint32_t index = 0; index < load->count; index++) {
        stress_tally_add(tally, &load->producers[index].tally);
        destroy_producer(&load->producers[index]);
    }
    tally->wrong += atomic_load_explicit(&load->wrong, memory_order_relaxed);
    csched_scheduler_destroy(load->scheduler);
    free(load->producers);
    pthread_mutex_destroy(&load->mutex);
    pthread_cond_destroy(&load->idle);
}

uint64_t stress_load_progress(const stress_load *load)
{
    return csched_scheduler_statistics(load->scheduler).executed;
}

static void describe_producer(const stress_producer *producer, uint32_t index)
{
    const stress_ledger *ledger = &producer->ledger;
    uint32_t missing = 0;
    uint32_t last = 0;
    for (uint32_t number = 0; number < ledger->used; number++) {
        if (atomic_load_explicit(&ledger->ends[number], memory_order_relaxed) == 0) {
            missing++;
            last = number;
        }
    }
    fprintf(stderr,
            "  producer %u: round %u, %u operations, %u of them have not ended, %u count in the round", index,
            producer->rounds, ledger->used, missing, csched_completion_outstanding(producer->round));
    fprintf(stderr, missing == 0 ? ".\n" : "; the last is a '%s'.\n",
            stress_kind_name(ledger->words[last] % 16));
}

void stress_load_describe(const stress_load *load)
{
    csched_statistics now = csched_scheduler_statistics(load->scheduler);
    fprintf(
        stderr,
        "  scheduler: submitted %llu, executed %llu, cancelled %llu, stolen %llu, parked %llu, woken %llu, "
        "retired %llu, reclaimed %llu, running %llu, workers %u; lives %llu.\n",
        (unsigned long long)now.submitted, (unsigned long long)now.executed,
        (unsigned long long)now.cancelled, (unsigned long long)now.stolen, (unsigned long long)now.parked,
        (unsigned long long)now.woken, (unsigned long long)now.retired, (unsigned long long)now.reclaimed,
        (unsigned long long)now.running, now.workers,
        (unsigned long long)atomic_load_explicit(&load->lives, memory_order_relaxed));
    for (uint32_t index = 0; index < load->count; index++) {
        describe_producer(&load->producers[index], index);
    }
}
