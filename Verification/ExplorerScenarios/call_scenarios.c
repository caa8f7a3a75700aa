// call_scenarios.c - the guarantees of the scheduler's calls without a race: limits, results, counts, misuse.

#include "world.h"

#include <limits.h>
#include <string.h>

#include "scenarios.h"

static void expect(bool holds, const char *otherwise)
{
    if (!holds) {
        explorer_fail("%s (A1)", otherwise);
    }
}

static csched_configuration with_workers(uint32_t workers)
{
    csched_configuration configuration = world_configuration();
    configuration.workers = workers;
    return configuration;
}

static csched_configuration with_capacity(uint64_t capacity, csched_when_full when_full)
{
    csched_configuration configuration = with_workers(1);
    configuration.capacity = capacity;
    configuration.when_full = when_full;
    return configuration;
}

static csched_status status_of(csched_configuration configuration)
{
    csched_scheduler *created = NULL;
    csched_status status = csched_scheduler_create(&configuration, &created);
    if (status == CSCHED_OK) {
        csched_scheduler_destroy(created);
    }
    return status;
}

// MARK: How many workers

static void blocks(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    ran(number_of(context), disposition);
}

static int begun;   // bodies
static int stopped; // workers that have ended

static void blocks_as_one_of_three(void *context, void *extra, csched_disposition disposition)
{
    if (++begun == 3) {
        gate_open(&gates[1]);
    }
    blocks(context, extra, disposition);
}

static void counts_stopped(void *unused, csched_event event, uint32_t worker)
{
    (void)unused, (void)worker;
    stopped += event == CSCHED_WORKER_STOPPED;
}

static void workers_main(void)
{
    begun = stopped = 0;
    expect(status_of(with_workers(0)) == CSCHED_INVALID_WORKERS, "0 workers are accepted");
    expect(status_of(with_workers(CSCHED_WORKERS_MAX + 1)) == CSCHED_INVALID_WORKERS,
           "257 workers are accepted");
    expect(status_of(with_capacity(0, CSCHED_WHEN_FULL_REJECT)) == CSCHED_INVALID_CAPACITY,
           "a capacity of 0 is accepted");
    world_open_workers(3);
    csched_observer observer = {.notify = counts_stopped};
    csched_check(csched_scheduler_observe(scheduler, &observer) == CSCHED_OK, "observe");
    expect(csched_scheduler_workers(scheduler) == 3, "it has other than the 3 workers that were wanted");
    expect(csched_scheduler_resize(scheduler, 0) == CSCHED_INVALID_WORKERS, "it is resized to 0 workers");
    expect(csched_scheduler_resize(scheduler, CSCHED_WORKERS_MAX + 1) == CSCHED_INVALID_WORKERS,
           "it is resized to 257 workers");
    explorer_memory_ends(true);
    expect(csched_scheduler_resize(scheduler, CSCHED_WORKERS_MAX) == CSCHED_OUT_OF_MEMORY,
           "256 workers are refused, and not for want of memory");
    expect(status_of(with_workers(CSCHED_WORKERS_MAX)) == CSCHED_OUT_OF_MEMORY,
           "256 workers are refused, and not for want of memory");
    explorer_memory_ends(false);
    expect(csched_scheduler_statistics(scheduler).workers == 3,
           "the statistics know another number of workers");
    for (int number = 0; number < 3; number++) {
        submit(operation_with(number, blocks_as_one_of_three));
    }
    gate_pass(&gates[1]);
    expect(csched_scheduler_statistics(scheduler).running == 3, "not all three run");
    stopped = 0;
    expect(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "it is not resized to 2");
    expect(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "it is not resized to 1");
    gate_open(&gates[0]);
    wait_for_all();
    explorer_settle(csched_site("settle"));
    expect(stopped == 2 && csched_scheduler_workers(scheduler) == 1, "other than two of three workers went");
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    expect(csched_scheduler_workers(scheduler) == 0, "workers are left after the shutdown");
    expect(csched_scheduler_resize(scheduler, 2) == CSCHED_CLOSED, "it is resized after its end");
    expect(csched_scheduler_current() == NULL, "a scheduler is current outside");
    world_close();
}
MAIN(workers)

// Fewer threads can be created than workers were requested: the threads that have begun are used, or the call
// fails and leaves nothing behind.
static void most_workers_main(void)
{
    world_open_workers(1);
    expect(csched_scheduler_resize(scheduler, EXPLORER_THREADS + 1) == CSCHED_THREAD_CREATION_FAILED,
           "there are threads for 9 workers");
    expect(csched_scheduler_statistics(scheduler).workers == csched_scheduler_workers(scheduler),
           "the statistics know another number of workers");
    submit(operation(0));
    wait_for_all();
    expect(status_of(with_workers(EXPLORER_THREADS)) == CSCHED_THREAD_CREATION_FAILED,
           "8 more are refused for another reason");
    world_close();
}
MAIN(most_workers)

// Whichever of the first allocations fails, up to that of a worker: the call fails, and leaves nothing
// behind.
static void creation_main(void)
{
    enum { REFUSED = 8 };
    for (uint32_t number = 1; number <= REFUSED; number++) {
        size_t before = explorer_allocated();
        explorer_refuse_memory(number);
        expect(status_of(with_workers(1)) == CSCHED_OUT_OF_MEMORY, "it is created, or fails otherwise");
        expect(explorer_allocated() == before, "a scheduler is not created, and leaves memory behind");
    }
    world_open_workers(1);
    submit(operation(0));
    world_end(1);
}
MAIN(creation)

// MARK: Statistics

static void statistics_main(void)
{
    world_open_workers(1);
    csched_statistics before = csched_scheduler_statistics(scheduler);
    submit(operation(0));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    csched_statistics after = csched_scheduler_statistics(scheduler);
    expect(after.submitted == before.submitted + 1 && after.executed == before.executed + 1,
           "an operation is not counted once");
    expect(after.woken == before.woken + 1, "a wake-up is not counted once");
    expect(after.parked == before.parked + 1, "a sleep is not counted once");
    expect(after.cancelled == 0 && after.stolen == 0 && after.running == 0, "what did not happen is counted");
    csched_scheduler_suspend(scheduler);
    submit(operation(1));
    csched_check(csched_scheduler_shutdown(scheduler, 0) == CSCHED_OK, "shutdown");
    expect(csched_scheduler_statistics(scheduler).cancelled == 1, "a cancellation is not counted once");
    expect(csched_scheduler_statistics(scheduler).executed == 1, "a cancellation is counted as executed");
    world_close();
}
MAIN(statistics)

// MARK: Names and owners

static int given_up; // owners

static void gives_up_owner(void *owner) { given_up += owner == &given_up; }

static void owner_main(void)
{
    given_up = 0;
    csched_configuration configuration = with_workers(1);
    configuration.name = "a name that is longer than any";
    world_open(configuration);
    expect(strcmp(scheduler_model_name(scheduler), "a name tha") == 0, "its name was cut elsewhere");
    expect(csched_scheduler_owner(scheduler) == NULL, "it has an owner from the beginning");
    csched_scheduler_set_owner(scheduler, &given_up, gives_up_owner);
    expect(csched_scheduler_owner(scheduler) == &given_up, "its owner is another one");
    world_close();
    expect(given_up == 1, "its owner was not told of the end once");
}
MAIN(owner)

// MARK: Full

static void capacity_main(void)
{
    world_open(with_capacity(2, CSCHED_WHEN_FULL_REJECT));
    csched_scheduler_suspend(scheduler);
    const csched_operation three[] = {operation(0), operation(1), operation(2)};
    expect(csched_submit_bulk(scheduler, three, 3) == CSCHED_FULL, "three went into two places");
    expect(csched_completion_outstanding(counter) == 0, "what was refused is outstanding");
    submit(three[0]);
    expect(csched_submit_bulk(scheduler, three + 1, 2) == CSCHED_FULL, "three went into two places");
    submit(three[1]);
    expect(csched_submit(scheduler, &three[2]) == CSCHED_FULL, "three went into two places");
    expect(csched_completion_outstanding(counter) == 2, "other than the two are outstanding");
    csched_check(csched_submit_exempt(scheduler, &three[2]) == CSCHED_OK, "exempt");
    csched_scheduler_resume(scheduler);
    wait_for_all();
    expect_ran(3);
    csched_scheduler_suspend(scheduler);
    csched_check(csched_submit_bulk(scheduler, three, 2) == CSCHED_OK, "two places for two");
    csched_scheduler_close(scheduler);
    expect(csched_submit(scheduler, &three[0]) == CSCHED_CLOSED, "full is answered where it is closed");
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    expect(csched_submit_bulk(scheduler, three, 3) == CSCHED_CLOSED, "full is answered where it is closed");
    world_close();
}
MAIN(capacity)

static void in_caller_main(void)
{
    world_open(with_capacity(1, CSCHED_WHEN_FULL_RUN_IN_CALLER));
    csched_scheduler_suspend(scheduler);
    csched_operation operations[] = {operation(0), operation(1), operation(2)};
    submit(operations[0]);
    expect(csched_submit(scheduler, &operations[1]) == CSCHED_FULL, "a body started while suspended");
    csched_scheduler_resume(scheduler);
    wait_for_all();
    submit(operation_with(3, blocks));
    explorer_settle(csched_site("settle"));
    submit(operation_with(4, blocks));
    expect(csched_submit_bulk(scheduler, operations + 1, 2) == CSCHED_OK, "the caller did not run it");
    expect(times_run(1) == 1 && times_run(2) == 1, "the caller did not run it");
    csched_statistics sum = csched_scheduler_statistics(scheduler);
    expect(sum.submitted == 5 && sum.executed == 3, "what the caller ran is not counted");
    gate_open(&gates[0]);
    wait_for_all();
    expect_ran(5);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    expect(csched_submit(scheduler, &operations[0]) == CSCHED_CLOSED, "the caller runs it after the end");
    world_close();
}
MAIN(in_caller)

static void too_many_main(void)
{
    world_open(with_capacity(2, CSCHED_WHEN_FULL_SUSPEND));
    const csched_operation three[] = {operation(0), operation(1), operation(2)};
    expect(csched_submit_bulk(scheduler, three, 3) == CSCHED_FULL, "it waits for room that never comes");
    csched_check(csched_submit_bulk(scheduler, three, 2) == CSCHED_OK, "two places for two");
    wait_for_all();
    expect_ran(2);
    world_close();
}
MAIN(too_many)

// MARK: Many at once

static void bulk_main(void)
{
    world_open_workers(1);
    csched_completion *other = csched_completion_create();
    csched_operation operations[8];
    for (int number = 0; number < 8; number++) {
        operations[number] = operation(number);
        operations[number].counter = number < 2 ? counter : number < 5 ? NULL : other;
    }
    csched_scheduler_suspend(scheduler);
    csched_check(csched_submit_bulk(scheduler, operations, 0) == CSCHED_OK, "nothing");
    csched_check(csched_submit_bulk(scheduler, operations, 8) == CSCHED_OK, "bulk");
    expect(csched_completion_outstanding(counter) == 2 && csched_completion_outstanding(other) == 3,
           "the counters were entered otherwise");
    csched_scheduler_resume(scheduler);
    wait_for_all();
    csched_check(csched_completion_wait(other, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    explorer_settle(csched_site("settle"));
    expect(csched_completion_wait(counter, 0) == CSCHED_WAIT_COMPLETED, "what is complete is waited for");
    expect_ran(8);
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    expect(csched_submit_bulk(scheduler, operations, 0) == CSCHED_CLOSED,
           "nothing is accepted after the end");
    expect(csched_submit_bulk(scheduler, operations, 8) == CSCHED_CLOSED, "it is accepted after the end");
    expect(csched_completion_outstanding(counter) == 0 && csched_completion_outstanding(other) == 0,
           "what was refused is outstanding");
    csched_completion_release(other);
    world_close();
}
MAIN(bulk)

// MARK: Ranges

enum { INDICES_MOST = 100 };
static int indices[INDICES_MOST];
static int ended, completed;

static void index_body(void *context, uint64_t index)
{
    (void)context;
    indices[index]++;
}

static void finally(void *context, bool complete)
{
    (void)context;
    ended++;
    completed += complete;
}

static void range_of(uint64_t count, uint64_t grain)
{
    memset(indices, 0, sizeof indices);
    ended = completed = 0;
    csched_check(csched_submit_range(scheduler, count, grain, index_body, finally, NULL, counter) ==
                     CSCHED_OK,
                 "range");
    wait_for_all();
    for (uint64_t index = 0; index < INDICES_MOST; index++) {
        expect(indices[index] == (index < count), "an index was not called once");
    }
    expect(ended == 1 && completed == 1, "the range did not end once, complete");
}

static void ranges_main(void)
{
    world_open_workers(1);
    range_of(0, 0);
    range_of(1, 0);
    range_of(7, 3);
    range_of(6, 3);
    range_of(5, 100);
    csched_statistics before = csched_scheduler_statistics(scheduler);
    range_of(INDICES_MOST, 0);
    uint64_t pieces = csched_scheduler_statistics(scheduler).executed - before.executed;
    expect(pieces > 16 && pieces <= 32, "a range without a grain has other than about 32 pieces per worker");
    before = csched_scheduler_statistics(scheduler);
    range_of(INDICES_MOST, 50);
    expect(csched_scheduler_statistics(scheduler).executed - before.executed == 2,
           "it has other than 2 pieces");
    before = csched_scheduler_statistics(scheduler);
    range_of(6, 1);
    expect(csched_scheduler_statistics(scheduler).executed - before.executed == 6,
           "it has other than 6 pieces");
    csched_scheduler_suspend(scheduler);
    ended = completed = 0;
    csched_check(csched_submit_range(scheduler, 4, 1, index_body, finally, NULL, counter) == CSCHED_OK,
                 "range");
    csched_check(csched_scheduler_shutdown(scheduler, 0) == CSCHED_OK, "shutdown");
    expect(ended == 1 && completed == 0, "a cancelled range says that it is complete");
    expect(csched_submit_range(scheduler, 0, 1, index_body, finally, NULL, counter) == CSCHED_CLOSED &&
               csched_submit_range(scheduler, 4, 1, index_body, finally, NULL, counter) == CSCHED_CLOSED,
           "a range is accepted after the end");
    expect(ended == 1, "a refused range ended");
    world_close();
}
MAIN(ranges)

// A range that is cut short: iterations that have begun end, and the rest do not begin.
static void opens_and_waits(void *context, uint64_t index)
{
    index_body(context, index);
    if (index == 0) {
        gate_open(&gates[0]);
        gate_pass(&gates[1]);
    }
}

static void shuts_down_now(void)
{
    csched_check(csched_scheduler_shutdown(scheduler, 0) == CSCHED_OK, "shutdown");
}

static void cut_short_main(void)
{
    world_open_workers(1);
    memset(indices, 0, sizeof indices);
    ended = completed = 0;
    csched_check(csched_submit_range(scheduler, 4, 4, opens_and_waits, finally, NULL, counter) == CSCHED_OK,
                 "range");
    gate_pass(&gates[0]);
    int closer = thread_start("closer", shuts_down_now);
    explorer_settle(csched_site("settle"));
    gate_open(&gates[1]);
    thread_join(closer);
    expect(indices[0] == 1 && indices[1] == 0 && ended == 1 && completed == 0, "it was not cut short");
    world_close();
}
MAIN(cut_short)

// MARK: Time

static void endless(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (disposition == CSCHED_RUN) {
        explorer_settle(csched_site("settle")); // time passes
        submit(operation_with(number_of(context), endless));
    } else {
        ran(number_of(context), disposition);
    }
}

static void limit_main(void)
{
    world_open_workers(1);
    expect(csched_completion_wait(counter, 0) == CSCHED_WAIT_COMPLETED, "nothing is waited for");
    submit(operation_with(0, endless));
    expect(csched_completion_wait(counter, 1000) == CSCHED_WAIT_TIMED_OUT, "a limit is none");
    csched_check(csched_scheduler_shutdown(scheduler, 1000) == CSCHED_OK, "shutdown");
    expect(times_cancelled(0) == 1, "what never ends was not cancelled when the time was up");
    world_close();
}
MAIN(limit)

// MARK: Suspended as often as can be, and more

static void suspends_once_more(void) { csched_scheduler_suspend(scheduler); }
static void resumes_once_more(void) { csched_scheduler_resume(scheduler); }

static void suspensions_main(void)
{
    world_open_workers(1);
    expect(stops("not suspended", resumes_once_more), "a resume too many is accepted");
    scheduler_model_suspend_often(scheduler);
    expect(!stops("suspended too often", suspends_once_more), "it was not suspended as often as can be");
    expect(stops("suspended too often", suspends_once_more), "it was suspended too often");
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    csched_scheduler_resume(scheduler);
    csched_scheduler_suspend(scheduler);
    world_close();
}
MAIN(suspensions)

// MARK: A forked child

static void fork_main(void)
{
    world_open_workers(1);
    submit(operation(0));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    pthread_model_fork(false);
    submit(operation(1));
    wait_for_all();
    explorer_settle(csched_site("settle"));
    pthread_model_fork(true);
    csched_operation late = operation(2);
    expect(csched_submit(scheduler, &late) == CSCHED_CLOSED, "a forked child's scheduler accepts");
    expect(csched_scheduler_resize(scheduler, 2) == CSCHED_CLOSED, "a forked child's scheduler is resized");
    expect(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "a shutdown is refused");
    size_t before = explorer_allocated();
    csched_scheduler_destroy(scheduler);
    expect(explorer_allocated() == before, "a forked child takes its parent's scheduler apart");
    scheduler = NULL;
    world_open_workers(1);
    submit(operation(2));
    wait_for_all();
    expect_ran(3);
    world_close();
}
MAIN(fork)

const explorer_program call_scenarios[] = {
    SCENARIO("call", workers, "A1 S8", "how many workers there can be, and are"),
    SCENARIO("call", most_workers, "A1 S8", "more workers than there can be threads"),
    SCENARIO("call", creation, "A1 R1", "a piece of memory is refused to the creation"),
    SCENARIO("call", statistics, "A1 S6", "what is counted"),
    SCENARIO("call", owner, "A1", "a name and an owner"),
    SCENARIO("call", capacity, "A1 K1", "full: refused"),
    SCENARIO("call", in_caller, "A1 K1", "full: run in the caller"),
    SCENARIO("call", too_many, "A1 K1", "more than there is room for"),
    SCENARIO("call", bulk, "A1 S4", "many at once, of several counters"),
    SCENARIO("call", ranges, "A1", "ranges of all sizes"),
    SCENARIO("call", cut_short, "A1 C1", "a range is cut short"),
    SCENARIO("call", limit, "A1 S13", "time limits"),
    SCENARIO("call", suspensions, "A1 S7", "suspended and resumed too often"),
    SCENARIO("call", fork, "A1", "a forked child", .leaks = true),
};
const size_t call_scenario_count = sizeof call_scenarios / sizeof call_scenarios[0];
