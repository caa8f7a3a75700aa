// world.c - one scheduler and its surroundings, for a scenario.

#include "world.h"

#include <setjmp.h>
#include <string.h>

#include "tuning.h"

csched_scheduler *scheduler;
csched_completion *counter;
gate gates[4];

static bool has_begun[IN_TURN];
static int runs[ITEMS_MOST]; // plain: operations that depend on each other race on it if they are not ordered
static int cancels[ITEMS_MOST]; // plain

static int warnings;

static jmp_buf stopped;
static const char *expected; // the sentence that `stops` expects from its call

uint64_t slow_yield_ns;
uint64_t slow_operation_ns;
bool busy_between_looks;
int times_yielded;

uint64_t port_slow_yield_ns(void) { return slow_yield_ns; }
uint64_t port_slow_operation_ns(void) { return slow_operation_ns; }
uint64_t port_thread_ran_ns(void) { return busy_between_looks ? explorer_now_ns() : 0; }

void port_yield(const explorer_site *site)
{
    times_yielded++;
    explorer_yield(site);
}

void world_begin(void)
{
    slow_yield_ns = 2000; // reached only if other threads read the clock during the yield
    slow_operation_ns = UINT64_C(1) << 40;
    busy_between_looks = false;
    times_yielded = 0;
    reclaim_model_begin();
    scheduler_model_begin();
    pthread_model_begin();
    items_begin();
    memset(runs, 0, sizeof runs);
    memset(cancels, 0, sizeof cancels);
    memset(gates, 0, sizeof gates);
    memset(has_begun, 0, sizeof has_begun);
    scheduler = NULL;
    counter = NULL;
    expected = NULL;
    warnings = 0;
}

void world_open(csched_configuration configuration)
{
    csched_check(csched_scheduler_create(&configuration, &scheduler) == CSCHED_OK, "create");
    counter = csched_completion_create();
    explorer_settle(csched_site("settle"));
}

csched_configuration world_configuration(void)
{
    csched_configuration configuration = csched_configuration_default();
    configuration.spares = 0;
    return configuration;
}

void world_open_workers(uint32_t workers) { world_open_with_spares(workers, 0); }

void world_open_with_places(uint64_t places)
{
    csched_configuration configuration = world_configuration();
    configuration.workers = 1;
    configuration.capacity = places;
    world_open(configuration);
}

void world_open_with_spares(uint32_t workers, uint32_t spares)
{
    csched_configuration configuration = world_configuration();
    configuration.workers = workers;
    configuration.spares = spares;
    world_open(configuration);
}

void world_explore(void) { explorer_calm(false); }

void world_explore_without_time(void)
{
    explorer_stop_time(true);
    world_explore();
}

void world_close(void)
{
    explorer_calm(true);
    explorer_stop_time(false);
    if (!explorer_freezes()) {
        explorer_settle(csched_site("settle"));
        const char *wrong = scheduler_model_at_rest(scheduler);
        if (wrong != NULL) {
            explorer_fail("when nothing happens any more, %s", wrong);
        }
        csched_completion_release(counter);
        csched_scheduler_destroy(scheduler);
    }
}

void world_end(int count)
{
    wait_for_all();
    expect_ran(count);
    world_close();
}

void give_way(void)
{
    for (int turn = 0; turn < 3; turn++) {
        csched_yield();
    }
}

csched_operation operation_with(int number, csched_function body)
{
    return (csched_operation){.run = body, .context = (void *)(intptr_t)(number + 1), .counter = counter};
}

int number_of(void *context) { return (int)(intptr_t)context - 1; }

void ran(int number, csched_disposition disposition)
{
    explorer_plain_write(csched_site("ran"), &runs[number]);
    if (disposition == CSCHED_RUN) {
        runs[number]++;
    } else {
        cancels[number]++;
    }
}

static void body(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
}

void begins_in_turn(int number)
{
    has_begun[number] = true;
    int older = 0;
    for (int other = 0; other < number; other++) {
        older += !has_begun[other];
    }
    if (older > 2 * CSCHED_BATCH) {
        explorer_fail("operation %d begins before %d older ones (S11)", number, older);
    }
}

csched_operation operation(int number) { return operation_with(number, body); }

void submit(csched_operation what)
{
    csched_check(csched_submit(scheduler, &what) == CSCHED_OK, "a submission was not accepted");
}

void submit_job(csched_operation what)
{
    csched_check(csched_submit_job(scheduler, &what, CSCHED_PRIORITY_DEFAULT) == CSCHED_OK,
                 "a job was not accepted");
}

void does_nothing(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra, (void)disposition;
}

void take_long(void)
{
    uint64_t end = explorer_now_ns() + CSCHED_FAIR_NS;
    while (explorer_now_ns() < end) {
    }
}

void wait_for_all(void)
{
    csched_check(csched_completion_wait(counter, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
}

void expect_ran(int count)
{
    for (int number = 0; number < count; number++) {
        explorer_plain_read(csched_site("ran"), &runs[number]);
        if (runs[number] != 1 || cancels[number] != 0) {
            explorer_fail("operation %d was run %d times and cancelled %d times (S1)", number, runs[number],
                          cancels[number]);
        }
    }
}

void expect_settled(int count)
{
    for (int number = 0; number < count; number++) {
        explorer_plain_read(csched_site("ran"), &runs[number]);
        if (runs[number] + cancels[number] != 1) {
            explorer_fail("operation %d was run %d times and cancelled %d times (S13)", number, runs[number],
                          cancels[number]);
        }
    }
}

int times_run(int number) { return runs[number]; }
int times_cancelled(int number) { return cancels[number]; }

void gate_open(gate *which)
{
    csched_store(&which->open, 1, seq_cst);
    csched_futex_wake(&which->open, INT32_MAX);
}

void gate_pass(gate *which)
{
    while (csched_load(&which->open, seq_cst) == 0) {
        (void)csched_futex_wait(&which->open, 0, UINT64_MAX);
    }
}

bool gate_is_open(gate *which) { return csched_load(&which->open, seq_cst) != 0; }

void port_warn(const char *name, const char *sentence)
{
    (void)name, (void)sentence;
    warnings++;
}

int times_warned(void) { return warnings; }

void port_fatal(const char *function, const char *sentence)
{
    if (expected != NULL && strcmp(sentence, expected) == 0) {
        longjmp(stopped, 1);
    }
    explorer_fail("stopped: %s: %s", function, sentence);
}

bool stops(const char *sentence, void (*call)(void))
{
    bool happened = true;
    if (setjmp(stopped) == 0) {
        expected = sentence;
        call();
        happened = false;
    }
    expected = NULL;
    return happened;
}

static void run_thread(void *argument)
{
    void (*body_of_thread)(void) = *(void (**)(void))argument;
    body_of_thread();
    pthread_model_thread_ends();
}

int thread_start(const char *name, void (*body_of_thread)(void))
{
    static void (*bodies[EXPLORER_THREADS])(void);
    int place = explorer_threads();
    bodies[place] = body_of_thread;
    return explorer_spawn(name, run_thread, &bodies[place]);
}

void thread_join(int thread) { explorer_join(csched_site("join"), thread); }

void world_setup(void (*main_body)(void))
{
    world_begin();
    explorer_calm(true);
    (void)thread_start("main", main_body);
}
