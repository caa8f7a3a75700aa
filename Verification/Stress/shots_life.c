// shots_life.c - whole schedulers: created, fed by two threads, and shut down by a third during that.
//
// An operation that a shutdown refuses or cancels has also ended, once: never both, and always with a
// report.

#include "load.h"

enum { WORKERS_MOST = 3, CAPACITY_MOST = 64, SPAN_MOST = 8, BULK_MOST = 32, LIFE_MOST = 1000 };

typedef struct {
    stress_producer *producer;
    csched_scheduler *scheduler;
    csched_lane *lane;
    csched_completion *counter; ///< every operation that was accepted
    uint64_t timeout_ns;        ///< of the shutdown
    uint32_t close_after;       ///< operations submitted before the shutdown begins
    _Atomic(uint32_t) submitted;
} lifetime;

typedef struct {
    lifetime *life;
    uint32_t first;
    uint32_t count;
    uint64_t seed;
} feeder;

static void did_not_run(lifetime *life, uint32_t first, uint32_t count)
{
    for (uint32_t number = first; number < first + count; number++) {
        stress_did_not_run(&life->producer->ledger, number);
    }
}

// True: accepted. Otherwise it was refused for a valid reason.
static bool accepted(csched_status status)
{
    if (status != CSCHED_OK && status != CSCHED_CLOSED && status != CSCHED_FULL) {
        stress_expect_ok(status, "a submission to a scheduler that may be closing");
    }
    return status == CSCHED_OK;
}

static void run_in_life(void *context, void *extra, csched_disposition disposition);

static csched_operation operation_of(lifetime *life, uint32_t number, uint32_t span)
{
    return (csched_operation){
        .run = run_in_life, .context = life, .extra = stress_pack(number, span), .counter = life->counter};
}

static void run_in_life(void *context, void *extra, csched_disposition disposition)
{
    lifetime *life = context;
    uint32_t number = stress_number(extra);
    uint32_t span = stress_span(extra);
    if (disposition == CSCHED_CANCEL) {
        did_not_run(life, number, span);
        return;
    }
    stress_ran(&life->producer->ledger, number);
    if (span > 1) { // may run in the caller's thread (CSCHED_WHEN_FULL_RUN_IN_CALLER), which may be refused
        csched_operation next = operation_of(life, number + 1, span - 1);
        if (!accepted(csched_submit(life->scheduler, &next))) {
            did_not_run(life, number + 1, span - 1);
        }
    }
}

static bool submit_bulk(lifetime *life, uint32_t first, uint32_t count)
{
    csched_operation operations[BULK_MOST];
    for (uint32_t index = 0; index < count; index++) {
        operations[index] = operation_of(life, first + index, 1);
    }
    return accepted(csched_submit_bulk(life->scheduler, operations, count));
}

static bool submit(lifetime *life, uint32_t number, uint32_t span, stress_random *random)
{
    csched_operation operation = operation_of(life, number, span);
    switch (stress_below(random, 4)) {
    case 0:
        return submit_bulk(life, number, span);
    case 1:
        return accepted(csched_lane_submit(life->lane, &operation));
    case 2: { // operations that the closed scheduler refuses go to the other one
        csched_scheduler *fallback = life->producer->scheduler;
        stress_expect_ok(
            csched_lane_submit_surely(life->lane, &operation, CSCHED_PRIORITY_INHERITED, fallback),
            "csched_lane_submit_surely");
        return true;
    }
    default:
        return accepted(csched_submit(life->scheduler, &operation));
    }
}

static void *feed(void *context)
{
    const feeder *task = context;
    lifetime *life = task->life;
    stress_random random = {task->seed};
    for (uint32_t done = 0, span; done < task->count; done += span) {
        span = 1 + stress_below(&random, SPAN_MOST);
        span = span < task->count - done ? span : task->count - done;
        if (!submit(life, task->first + done, span, &random)) {
            did_not_run(life, task->first + done, span);
        }
        atomic_fetch_add_explicit(&life->submitted, span, memory_order_relaxed);
    }
    return NULL;
}

static void *close_midway(void *context)
{
    lifetime *life = context;
    while (atomic_load_explicit(&life->submitted, memory_order_relaxed) < life->close_after) {
        stress_sleep_ns(1000);
    }
    stress_expect_ok(csched_scheduler_shutdown(life->scheduler, life->timeout_ns),
                     "csched_scheduler_shutdown");
    return NULL;
}

static void note_released(void *owner)
{
    stress_load *load = owner;
    pthread_mutex_lock(&load->mutex);
    if (atomic_fetch_sub_explicit(&load->lives, 1, memory_order_relaxed) == 1) {
        pthread_cond_broadcast(&load->idle);
    }
    pthread_mutex_unlock(&load->mutex);
}

static csched_scheduler *create(stress_producer *producer)
{
    static const csched_when_full policies[] = {CSCHED_WHEN_FULL_SUSPEND, CSCHED_WHEN_FULL_REJECT,
                                                CSCHED_WHEN_FULL_RUN_IN_CALLER};
    stress_random *random = &producer->random;
    csched_configuration configuration = csched_configuration_default();
    configuration.name = "life";
    configuration.workers = 1 + stress_below(random, WORKERS_MOST);
    configuration.when_full = policies[stress_below(random, 3)];
    if (stress_one_in(random, 2)) {
        configuration.capacity = 1 + stress_below(random, CAPACITY_MOST);
    }
    csched_scheduler *scheduler = NULL;
    stress_expect_ok(csched_scheduler_create(&configuration, &scheduler), "csched_scheduler_create");
    atomic_fetch_add_explicit(&producer->load->lives, 1, memory_order_relaxed);
    csched_scheduler_set_owner(scheduler, producer->load, note_released);
    return scheduler;
}

static void start(pthread_t *thread, void *(*function)(void *context), void *context)
{
    if (pthread_create(thread, NULL, function, context) != 0) {
        stress_stop("a thread could not be created for a scheduler that is shut down");
    }
}

// Called when all operations have ended; they no longer use anything of the life.
static void destroy(lifetime *life)
{
    stress_producer *producer = life->producer;
    if (csched_completion_wait(life->counter, CSCHED_FOREVER) != CSCHED_WAIT_COMPLETED) {
        stress_note(&producer->ledger.wrong);
    }
    csched_statistics statistics = csched_scheduler_statistics(life->scheduler);
    if (statistics.submitted != statistics.executed + statistics.cancelled || statistics.running != 0) {
        stress_note(&producer->ledger.wrong);
    }
    csched_lane_release(life->lane);
    csched_completion_release(life->counter);
    if (stress_one_in(&producer->random, 4)) {
        csched_scheduler_destroy_later(life->scheduler);
    } else {
        csched_scheduler_destroy(life->scheduler);
    }
}

void stress_shot_life(stress_producer *producer)
{
    const uint64_t timeouts[] = {0, CSCHED_FOREVER, 50000};
    lifetime life = {.producer = producer,
                     .scheduler = create(producer),
                     .counter = csched_completion_create(),
                     .timeout_ns = timeouts[stress_below(&producer->random, 3)]};
    life.lane = csched_lane_create(life.scheduler);
    if (life.counter == NULL || life.lane == NULL) {
        stress_stop("memory is exhausted: a counter or a lane could not be created");
    }
    uint32_t count = 2 + stress_below(&producer->random, LIFE_MOST);
    uint32_t half = count / 2;
    life.close_after = stress_below(&producer->random, count + 1);
    uint32_t first = stress_expect(&producer->ledger, STRESS_LIFE, count);
    feeder other = {&life, first, half, stress_next(&producer->random)};
    feeder own = {&life, first + half, count - half, stress_next(&producer->random)};
    pthread_t feeding, closing;
    start(&feeding, feed, &other);
    start(&closing, close_midway, &life);
    (void)feed(&own);
    pthread_join(feeding, NULL);
    pthread_join(closing, NULL);
    destroy(&life);
}
