// main.c - CScheduler in a program without Swift.
//
// Two threads submit operations that square numbers and add them up. A completion counter signals when all of
// them have run. Then the sum and the scheduler's statistics are printed, and the scheduler is shut down.

#include <CScheduler.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SUBMITTERS = 2, PER_SUBMITTER = 5000 };

/// The state that the operations share. Several of them write only `sum`.
typedef struct {
    csched_scheduler *scheduler;
    csched_completion *counter;
    _Atomic uint64_t sum;
} program;

/// The argument of one submitting thread.
typedef struct {
    program *shared;
    uint64_t first;
    csched_status status;
} submitter;

/// The body of an operation. Its two words carry all that it needs, so nothing is allocated for it: the first
/// points to the shared state, the second is the number itself.
static void add_square(void *context, void *extra, csched_disposition disposition)
{
    if (disposition == CSCHED_CANCEL) {
        return; // the scheduler was shut down first; there is nothing to release
    }
    program *shared = context;
    uint64_t number = (uint64_t)(uintptr_t)extra;
    // Relaxed suffices: main reads the sum after the counter's wait, which orders it after every operation.
    atomic_fetch_add_explicit(&shared->sum, number * number, memory_order_relaxed);
}

static void *submit_numbers(void *argument)
{
    submitter *self = argument;
    program *shared = self->shared;
    for (uint64_t i = 0; i < PER_SUBMITTER && self->status == CSCHED_OK; i++) {
        self->status = csched_submit(shared->scheduler, &(csched_operation){
                                                            .run = add_square,
                                                            .context = shared,
                                                            .extra = (void *)(uintptr_t)(self->first + i),
                                                            .counter = shared->counter,
                                                        });
    }
    return NULL;
}

static void require(csched_status status, const char *what)
{
    if (status != CSCHED_OK) {
        fprintf(stderr, "embed-c: %s: %s\n", what, csched_status_message(status));
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    program shared = {0};
    csched_configuration configuration = csched_configuration_default();
    configuration.name = "embed-c";
    require(csched_scheduler_create(&configuration, &shared.scheduler), "creating the scheduler");
    shared.counter = csched_completion_create();
    require(shared.counter == NULL ? CSCHED_OUT_OF_MEMORY : CSCHED_OK, "creating the counter");

    pthread_t threads[SUBMITTERS];
    submitter submitters[SUBMITTERS];
    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (submitter){.shared = &shared, .first = 1 + (uint64_t)i * PER_SUBMITTER};
        if (pthread_create(&threads[i], NULL, submit_numbers, &submitters[i]) != 0) {
            fprintf(stderr, "embed-c: a submitting thread could not be created\n");
            return EXIT_FAILURE;
        }
    }
    // A submitter may end before its operations have run: once submitted, they belong to the scheduler.
    for (int i = 0; i < SUBMITTERS; i++) {
        pthread_join(threads[i], NULL);
        require(submitters[i].status, "submitting");
    }
    if (csched_completion_wait(shared.counter, CSCHED_FOREVER) != CSCHED_WAIT_COMPLETED) {
        fprintf(stderr, "embed-c: a wait without a limit ended early\n");
        return EXIT_FAILURE;
    }
    printf("sum of the squares of 1 ... %d: %" PRIu64 "\n", SUBMITTERS * PER_SUBMITTER, shared.sum);

    // Joins the workers, so that the statistics are exact.
    require(csched_scheduler_shutdown(shared.scheduler, CSCHED_FOREVER), "shutting down");
    csched_statistics statistics = csched_scheduler_statistics(shared.scheduler);
    printf("submitted %" PRIu64 ", executed %" PRIu64 ", cancelled %" PRIu64 "\n", statistics.submitted,
           statistics.executed, statistics.cancelled);
    printf("stolen %" PRIu64 ", parked %" PRIu64 ", woken %" PRIu64 "\n", statistics.stolen,
           statistics.parked, statistics.woken);

    csched_completion_release(shared.counter);
    csched_scheduler_destroy(shared.scheduler);
    return EXIT_SUCCESS;
}
