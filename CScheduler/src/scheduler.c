// scheduler.c - a scheduler's life: create, resize, suspend, shut down, fork, destroy. Nothing here is on the
// path of an operation.
//
//   S1  Each bit of the shutdown in control is set once, by fetch_or, and stays set: closing, then sealed,
//       then stopped. The count of suspensions above them changes by compare-exchange; a shutdown clears it
//       by fetch_and.
//   S2  closing stops new inboxes, the sweep closes the listed ones, sealed informs the workers that the
//       sweep is done. So when the last worker falls asleep in a sealed scheduler, nothing is left and
//       nothing can arrive (X6).
//   S3  The crew is replaced as a whole under `lifecycle`, and the old one retired: a thief that reads it
//       finds only workers whose memory outlives its read section. A worker that is to leave remains a victim
//       until its thread has ended; then the thread is joined, the worker removed, and its memory retired.
//   S4  An operation is accepted or refused by one compare-exchange on its inbox (B1), so a shutdown cannot
//       intervene.

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cscheduler/inspection.h"
#include "scheduler_internal.h"
#include "timer.h"

static csched_atomic(uint64_t) ids;

// All schedulers, so that a forked child can close them. Only create, destroy, visit and fork take the mutex.
static pthread_mutex_t alive_mutex = PTHREAD_MUTEX_INITIALIZER;
static csched_scheduler *alive;
static csched_atomic(uint32_t) forks;

const char *csched_status_message(csched_status status)
{
    switch (status) {
    case CSCHED_OK:
        return "done";
    case CSCHED_OUT_OF_MEMORY:
        return "memory is exhausted";
    case CSCHED_INVALID_WORKERS:
        return "the number of workers must be between 1 and 256";
    case CSCHED_INVALID_CAPACITY:
        return "the capacity must be at least 1";
    case CSCHED_INVALID_ENVIRONMENT:
        return "CSCHED_WORKERS in the environment is not a number between 1 and 256";
    case CSCHED_THREAD_CREATION_FAILED:
        return "a worker thread could not be created";
    case CSCHED_CLOSED:
        return "the scheduler is shut down";
    case CSCHED_FULL:
        return "the scheduler's capacity is reached";
    case CSCHED_WOULD_DEADLOCK:
        return "the call would wait for the calling thread itself";
    }
    return "unknown status";
}

csched_configuration csched_configuration_default(void)
{
    return (csched_configuration){
        .workers = CSCHED_WORKERS_AUTOMATIC,
        .when_full = CSCHED_WHEN_FULL_SUSPEND,
        .capacity = CSCHED_CAPACITY_UNBOUNDED,
        .name = "csched",
        .spares = CSCHED_SPARES_DEFAULT,
    };
}

static void close_registries(csched_scheduler *scheduler)
{
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        csched_registry_close(&scheduler->registry[priority]);
    }
}

static void before_fork(void) { pthread_mutex_lock(&alive_mutex); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&alive_mutex); }

// The child has only this thread and no worker: from now on submissions are refused instead of waiting
// forever.
static void after_fork_in_child(void)
{
    csched_fetch_add(&forks, 1, relaxed);
    csched_worker_forget();
    for (csched_scheduler *scheduler = alive; scheduler != NULL; scheduler = scheduler->next_alive) {
        csched_fetch_or(&scheduler->control, CSCHED_CLOSING | CSCHED_SEALED | CSCHED_STOPPED, seq_cst);
        close_registries(scheduler); // no read section needed: there is no other thread
        csched_timers_forget(csched_load(&scheduler->timers, relaxed));
        pthread_mutex_init(&scheduler->lifecycle, NULL); // its holder does not exist here
        pthread_mutex_init(&scheduler->ending, NULL);
        scheduler->joined = true;
    }
    pthread_mutex_unlock(&alive_mutex);
}

void csched_visit_schedulers(void (*visit)(void *context, csched_scheduler *scheduler), void *context)
{
    pthread_mutex_lock(&alive_mutex);
    for (csched_scheduler *scheduler = alive; scheduler != NULL; scheduler = scheduler->next_alive) {
        visit(context, scheduler);
    }
    pthread_mutex_unlock(&alive_mutex);
}

static void handle_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void enlist(csched_scheduler *scheduler)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_forks);
    pthread_mutex_lock(&alive_mutex);
    scheduler->previous_alive = NULL;
    scheduler->next_alive = alive;
    if (alive != NULL) {
        alive->previous_alive = scheduler;
    }
    alive = scheduler;
    pthread_mutex_unlock(&alive_mutex);
}

static void delist(csched_scheduler *scheduler)
{
    pthread_mutex_lock(&alive_mutex);
    if (scheduler->next_alive != NULL) {
        scheduler->next_alive->previous_alive = scheduler->previous_alive;
    }
    if (scheduler->previous_alive != NULL) {
        scheduler->previous_alive->next_alive = scheduler->next_alive;
    } else {
        alive = scheduler->next_alive;
    }
    pthread_mutex_unlock(&alive_mutex);
}

static csched_crew *allocate_crew(uint32_t count)
{
    csched_crew *crew = csched_allocate(sizeof *crew + count * sizeof(csched_worker *), 0);
    if (crew != NULL) {
        crew->count = 0;
    }
    return crew;
}

static void free_crew(csched_retired *object) { csched_free(object); }

static void free_worker(csched_retired *object)
{
    csched_worker_destroy((csched_worker *)(void *)((char *)object - offsetof(csched_worker, retired)));
}

static void publish_crew(csched_scheduler *scheduler, csched_crew *crew)
{
    csched_crew *old = csched_exchange(&scheduler->crew, crew, acq_rel); // S3
    csched_reclaim_retire(scheduler->domain, &old->retired, free_crew);
}

static bool is_index_used(const csched_crew *crew, uint32_t index)
{
    for (uint32_t position = 0; position < crew->count; position++) {
        if (crew->workers[position]->index == index) {
            return true;
        }
    }
    return false;
}

// Z1. A worker that leaves keeps its seat until its thread is about to end.
static bool is_seat_used(const csched_crew *crew, uint32_t number)
{
    for (uint32_t position = 0; position < crew->count; position++) {
        uint32_t seat = csched_load(&crew->workers[position]->seat, acquire);
        if (csched_is_seated(seat) && seat >> CSCHED_SEAT_SHIFT == number) {
            return true;
        }
    }
    return false;
}

static uint32_t first_unused(const csched_crew *crew,
                             bool (*is_used)(const csched_crew *crew, uint32_t number))
{
    uint32_t number = 0;
    while (is_used(crew, number)) {
        number++;
    }
    return number;
}

static void add_statistics(csched_statistics *sum, const csched_worker *worker)
{
    sum->submitted += csched_load(&worker->submitted, relaxed);
    sum->executed += csched_load(&worker->executed, relaxed);
    sum->cancelled += csched_load(&worker->cancelled, relaxed);
    sum->stolen += csched_load(&worker->stolen, relaxed);
    sum->parked += csched_load(&worker->parked, relaxed);
    sum->running += csched_load(&worker->running, seq_cst); // P19
}

// Replaces the crew with one that omits the workers from position `from` on for which `gone` returns true;
// their memory is retired (S3).
static csched_status remove_workers(csched_scheduler *scheduler, uint32_t from,
                                    bool (*gone)(csched_worker *worker))
{
    csched_crew *old = csched_load(&scheduler->crew, relaxed);
    csched_crew *crew = allocate_crew(old->count);
    csched_crew *removed = allocate_crew(old->count);
    if (crew == NULL || removed == NULL) {
        csched_free(crew);
        csched_free(removed);
        return CSCHED_OUT_OF_MEMORY;
    }
    for (uint32_t position = 0; position < old->count; position++) {
        csched_worker *worker = old->workers[position];
        csched_crew *to = position >= from && gone(worker) ? removed : crew;
        to->workers[to->count++] = worker;
    }
    publish_crew(scheduler, crew);
    for (uint32_t position = 0; position < removed->count; position++) {
        add_statistics(&scheduler->of_gone, removed->workers[position]);
        csched_reclaim_retire(scheduler->domain, &removed->workers[position]->retired, free_worker);
    }
    csched_free(removed);
    return CSCHED_OK;
}

static bool has_ended(csched_worker *worker)
{
    return csched_load(&worker->ended, relaxed) && pthread_tryjoin_np(worker->thread, NULL) == 0;
}

static bool always(csched_worker *worker)
{
    (void)worker;
    return true;
}

void csched_scheduler_remove_ended(csched_scheduler *scheduler)
{
    const csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    for (uint32_t position = 0; position < crew->count; position++) {
        if (csched_load(&crew->workers[position]->ended, relaxed)) { // else the crew stays as it is
            (void)remove_workers(scheduler, 0, has_ended);           // out of memory: retried the next time
            return;
        }
    }
}

csched_status csched_create_thread(pthread_t *thread, void *(*body)(void *argument), void *argument)
{
    // Signals for the process go to the program's own threads; a fault still hits the thread that caused it.
    sigset_t all, before;
    sigfillset(&all);
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    for (size_t index = 0; index < sizeof faults / sizeof faults[0]; index++) {
        sigdelset(&all, faults[index]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? CSCHED_OK : CSCHED_THREAD_CREATION_FAILED;
}

static csched_status add_worker(csched_scheduler *scheduler, csched_crew *crew, uint32_t index, uint32_t seat)
{
    csched_worker *worker = csched_worker_create(scheduler, index, seat);
    if (worker == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    crew->workers[crew->count++] = worker;
    return CSCHED_OK;
}

// A copy of the crew with room for `more` workers, not published.
static csched_crew *copy_crew(csched_scheduler *scheduler, uint32_t more)
{
    const csched_crew *old = csched_load(&scheduler->crew, relaxed);
    csched_crew *crew = allocate_crew(old->count + more);
    if (crew != NULL) {
        crew->count = old->count;
        memcpy(crew->workers, old->workers, old->count * sizeof(csched_worker *));
    }
    return crew;
}

static csched_status grow(csched_scheduler *scheduler, uint32_t more)
{
    csched_crew *crew = copy_crew(scheduler, more);
    if (crew == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    uint32_t before = crew->count;
    uint32_t started = before;
    csched_status status = CSCHED_OK;
    while (status == CSCHED_OK && crew->count < before + more) {
        uint32_t seat = first_unused(crew, is_seat_used);
        status =
            seat >= CSCHED_WORKERS_MAX // leaving workers still have their seats, in their last bodies
                ? CSCHED_THREAD_CREATION_FAILED
                : add_worker(scheduler, crew, first_unused(crew, is_index_used), seat << CSCHED_SEAT_SHIFT);
    }
    publish_crew(scheduler,
                 crew); // before the threads: thieves must find a deque as soon as something can be in it
    while (status == CSCHED_OK && started < crew->count &&
           (status = csched_worker_start(crew->workers[started])) == CSCHED_OK) {
        started++;
    }
    if (status != CSCHED_OK) {
        csched_check(remove_workers(scheduler, started, always) == CSCHED_OK,
                     "out of memory while undoing a resize");
    }
    csched_store(&scheduler->size, csched_load(&scheduler->size, relaxed) + started - before, relaxed);
    return status;
}

csched_worker *csched_scheduler_hire(csched_scheduler *scheduler, uint32_t index)
{
    csched_crew *crew = copy_crew(scheduler, 1);
    if (crew == NULL || add_worker(scheduler, crew, index, CSCHED_UNSEATED) != CSCHED_OK) {
        csched_free(crew);
        return NULL;
    }
    csched_worker *hired = crew->workers[crew->count - 1];
    publish_crew(scheduler, crew);
    if (csched_worker_start(hired) != CSCHED_OK) {
        csched_check(remove_workers(scheduler, crew->count - 1, always) == CSCHED_OK,
                     "out of memory while removing a spare worker that could not be started");
        return NULL;
    }
    return hired;
}

// Leaving workers stay in the crew, as victims, until their threads have ended.
static void shrink(csched_scheduler *scheduler, uint32_t fewer)
{
    csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    csched_store(&scheduler->size, csched_load(&scheduler->size, relaxed) - fewer, relaxed);
    for (uint32_t position = crew->count; fewer > 0; position--) {
        csched_worker *worker = crew->workers[position - 1];
        uint32_t seat = csched_load(&worker->seat, relaxed);
        if (csched_is_seated(seat) && (seat & CSCHED_SEAT_LEAVING) == 0) { // Z4: it cannot lose it now
            csched_fetch_or(&worker->seat, CSCHED_SEAT_LEAVING, seq_cst);
            csched_idle_wake(&scheduler->idle, seat >> CSCHED_SEAT_SHIFT);
            fewer--;
        }
    }
}

csched_status csched_scheduler_resize(csched_scheduler *scheduler, uint32_t workers)
{
    if (workers == CSCHED_WORKERS_AUTOMATIC) {
        csched_status status = csched_automatic_workers(&workers);
        if (status != CSCHED_OK) {
            return status;
        }
    }
    if (workers == 0 || workers > CSCHED_WORKERS_MAX) {
        return CSCHED_INVALID_WORKERS;
    }
    pthread_mutex_lock(&scheduler->lifecycle);
    csched_status status = CSCHED_OK;
    uint32_t size = csched_load(&scheduler->size, relaxed);
    if ((csched_load(&scheduler->control, seq_cst) & CSCHED_CLOSING) != 0) {
        status = CSCHED_CLOSED;
    } else {
        status = remove_workers(scheduler, 0, has_ended);
        if (status == CSCHED_OK && workers > size) {
            status = grow(scheduler, workers - size);
        } else if (status == CSCHED_OK && workers < size) {
            shrink(scheduler, size - workers);
        }
    }
    pthread_mutex_unlock(&scheduler->lifecycle);
    return status;
}

static void free_scheduler(csched_scheduler *scheduler)
{
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        csched_registry_destroy(&scheduler->registry[priority]);
    }
    csched_timers_destroy(csched_load(&scheduler->timers, relaxed));
    if (scheduler->release_owner != NULL) {
        scheduler->release_owner(csched_load(&scheduler->owner, relaxed));
    }
    pthread_mutex_destroy(&scheduler->lifecycle);
    pthread_mutex_destroy(&scheduler->ending);
    csched_free(scheduler);
}

static csched_status initialise(csched_scheduler *scheduler, const csched_configuration *configuration)
{
    memset(scheduler, 0, sizeof *scheduler);
    scheduler->id = csched_fetch_add(&ids, CSCHED_PRIORITIES, relaxed) + 1;
    csched_init(&scheduler->control, 0);
    csched_init(&scheduler->priorities, 0);
    csched_init(&scheduler->ran_in_callers, 0);
    csched_init(&scheduler->observer, NULL);
    csched_init(&scheduler->observed, false);
    csched_init(&scheduler->owner, NULL);
    csched_init(&scheduler->timers, NULL);
    csched_capacity_init(&scheduler->capacity, configuration->capacity, configuration->when_full);
    const char *name = configuration->name == NULL ? "csched" : configuration->name;
    (void)strncpy(scheduler->name, name, sizeof scheduler->name - 1);
    csched_idle_init(&scheduler->idle);
    csched_watch_init(&scheduler->watch, configuration->spares);
    scheduler->isolate = NULL;
    pthread_mutex_init(&scheduler->lifecycle, NULL);
    pthread_mutex_init(&scheduler->ending, NULL);
    csched_init(&scheduler->size, 0);
    scheduler->forks = csched_load(&forks, relaxed);
    if (!csched_grace_prepare()) {
        return CSCHED_THREAD_CREATION_FAILED;
    }
    scheduler->domain = csched_reclaim_create();
    csched_crew *crew = allocate_crew(0);
    if (scheduler->domain == NULL || crew == NULL) {
        csched_free(crew);
        csched_free(scheduler->domain);
        return CSCHED_OUT_OF_MEMORY;
    }
    csched_init(&scheduler->crew, crew);
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        if (!csched_registry_init(&scheduler->registry[priority], scheduler->domain)) {
            while (priority-- > 0) {
                csched_registry_destroy(&scheduler->registry[priority]);
            }
            csched_free(crew);
            csched_free(scheduler->domain);
            return CSCHED_OUT_OF_MEMORY;
        }
    }
    return CSCHED_OK;
}

csched_status csched_scheduler_create(const csched_configuration *configuration, csched_scheduler **result)
{
    uint32_t workers = configuration->workers;
    if (workers == CSCHED_WORKERS_AUTOMATIC) {
        csched_status status = csched_automatic_workers(&workers);
        if (status != CSCHED_OK) {
            return status;
        }
    }
    if (workers == 0 || workers > CSCHED_WORKERS_MAX) {
        return CSCHED_INVALID_WORKERS;
    }
    if (configuration->capacity == 0) {
        return CSCHED_INVALID_CAPACITY;
    }
    csched_scheduler *scheduler = csched_allocate(sizeof *scheduler, CSCHED_LINE);
    if (scheduler == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    csched_status status = initialise(scheduler, configuration);
    if (status != CSCHED_OK) {
        csched_free(scheduler);
        return status;
    }
    enlist(scheduler);
    status = csched_watch_start(scheduler);
    if (status == CSCHED_OK) {
        pthread_mutex_lock(&scheduler->lifecycle); // Z4
        status = grow(scheduler, workers);
        pthread_mutex_unlock(&scheduler->lifecycle);
    }
    if (status != CSCHED_OK) {
        csched_scheduler_destroy(scheduler);
        return status;
    }
    *result = scheduler;
    return CSCHED_OK;
}

void csched_scheduler_close(csched_scheduler *scheduler)
{
    uint32_t before = csched_fetch_or(&scheduler->control, CSCHED_CLOSING, seq_cst); // P16
    if ((before & CSCHED_CLOSING) != 0) {
        return;
    }
    csched_timers_close(csched_load(&scheduler->timers, seq_cst)); // P43
    bool reader = csched_worker_self() != NULL;
    if (!reader) {
        csched_reclaim_join();
    }
    csched_reclaim_enter();
    close_registries(scheduler);
    csched_reclaim_exit();
    if (!reader) {
        csched_reclaim_leave();
    }
    csched_fetch_or(&scheduler->control, CSCHED_SEALED, seq_cst); // S2
    csched_capacity_interrupt(&scheduler->capacity);
    csched_idle_wake_all(&scheduler->idle);
}

static void wake_suspended(csched_scheduler *scheduler)
{
    csched_futex_wake(&scheduler->control, INT32_MAX); // a leaving worker that still has operations
    csched_idle_wake_all(&scheduler->idle);
}

// Ends every suspension: a suspended scheduler could not be drained.
static void end_suspension(csched_scheduler *scheduler)
{
    csched_fetch_and(&scheduler->control, CSCHED_SUSPENSION - 1, seq_cst);
    wake_suspended(scheduler);
}

static void cancel_pending(csched_scheduler *scheduler)
{
    // relaxed: the end of a suspension is in the same word.
    csched_fetch_or(&scheduler->control, CSCHED_CANCELLING, relaxed);
}

static void wait_until_stopped(csched_scheduler *scheduler, uint64_t deadline_ns)
{
    for (;;) {
        uint32_t control = csched_load(&scheduler->control, seq_cst);
        uint64_t now = csched_now_ns();
        if ((control & CSCHED_STOPPED) != 0 || now >= deadline_ns) {
            return;
        }
        (void)csched_futex_wait(&scheduler->control, control, deadline_ns - now);
    }
}

// Joins without holding `lifecycle`, as the last callbacks may read statistics. The crew no longer changes:
// the scheduler is closing, and the watch has ended.
static void join_all(csched_scheduler *scheduler)
{
    const csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    for (uint32_t position = 0; position < crew->count; position++) {
        (void)pthread_join(crew->workers[position]->thread, NULL);
    }
    pthread_mutex_lock(&scheduler->lifecycle);
    csched_check(remove_workers(scheduler, 0, always) == CSCHED_OK, "out of memory while shutting down");
    csched_store(&scheduler->size, 0, relaxed);
    pthread_mutex_unlock(&scheduler->lifecycle);
}

csched_status csched_scheduler_shutdown(csched_scheduler *scheduler, uint64_t timeout_ns)
{
    csched_worker *worker = csched_worker_self();
    if ((worker != NULL && worker->scheduler == scheduler) || csched_timers_is_thread_of(scheduler)) {
        return CSCHED_WOULD_DEADLOCK;
    }
    uint64_t now = csched_now_ns();
    if (timeout_ns == 0) {
        cancel_pending(scheduler); // before suspension ends: nothing that waits may slip through
    }
    csched_scheduler_close(scheduler);
    end_suspension(scheduler);
    pthread_mutex_lock(&scheduler->lifecycle); // a resize that began before the close ends first
    // Read under the mutex: until the watch has ended, it may replace the crew and retire the old one.
    bool has_crew = csched_load(&scheduler->crew, relaxed)->count != 0; // else creating it has failed
    pthread_mutex_unlock(&scheduler->lifecycle);
    pthread_mutex_lock(&scheduler->ending);
    if (!scheduler->joined) {
        if (timeout_ns != 0 && timeout_ns < UINT64_MAX - now) {
            wait_until_stopped(scheduler, now + timeout_ns);
            if ((csched_load(&scheduler->control, seq_cst) & CSCHED_STOPPED) == 0) {
                cancel_pending(scheduler);
            }
        }
        if (has_crew) {
            wait_until_stopped(scheduler, UINT64_MAX); // draining bodies may block, and need the watch
        }
        csched_watch_end(scheduler);
        join_all(scheduler);
        csched_timers_join(csched_load(&scheduler->timers, relaxed));
        scheduler->joined = true;
    }
    pthread_mutex_unlock(&scheduler->ending);
    return CSCHED_OK;
}

void csched_scheduler_destroy(csched_scheduler *scheduler)
{
    if (scheduler->forks != csched_load(&forks, relaxed)) {
        return; // a forked child: state that the parent's threads left half-done cannot be torn down here
    }
    csched_status status = csched_scheduler_shutdown(scheduler, CSCHED_FOREVER);
    csched_check(status == CSCHED_OK, "called on one of the scheduler's workers; call destroy_later");
    delist(scheduler);
    csched_observer_dispose(scheduler);
    csched_free(csched_load(&scheduler->crew, relaxed)); // its readers have ended
    csched_reclaim_destroy(scheduler->domain);
    free_scheduler(scheduler);
}

typedef struct {
    void (*function)(void *context);
    void *context;
} thread_call;

static void *call_in_thread(void *argument)
{
    thread_call call = *(thread_call *)argument;
    csched_free(argument);
    call.function(call.context);
    return NULL;
}

csched_status csched_call_on_thread(void (*function)(void *context), void *context)
{
    thread_call *call = csched_allocate(sizeof *call, 0);
    if (call == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    *call = (thread_call){.function = function, .context = context};
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_in_thread, call) != 0) {
        csched_free(call);
        return CSCHED_THREAD_CREATION_FAILED;
    }
    (void)pthread_detach(thread);
    return CSCHED_OK;
}

static void destroy_from_thread(void *scheduler) { csched_scheduler_destroy(scheduler); }

void csched_scheduler_destroy_later(csched_scheduler *scheduler)
{
    csched_scheduler_close(scheduler);
    csched_check(csched_call_on_thread(destroy_from_thread, scheduler) == CSCHED_OK,
                 "no thread could be created to destroy a scheduler from its own worker");
}

void csched_scheduler_suspend(csched_scheduler *scheduler)
{
    uint32_t before = csched_load(&scheduler->control, relaxed);
    do {
        if ((before & CSCHED_CLOSING) != 0) {
            return; // a suspended scheduler could not be drained
        }
        csched_check(before < UINT32_MAX - CSCHED_SUSPENSION, "suspended too often");
    } while (
        !csched_cas_weak(&scheduler->control, &before, before + CSCHED_SUSPENSION, seq_cst, relaxed)); // P19
}

void csched_scheduler_resume(csched_scheduler *scheduler)
{
    uint32_t before = csched_load(&scheduler->control, relaxed);
    do {
        if (!csched_is_suspended(before) && (before & CSCHED_CLOSING) != 0) {
            return; // a shutdown has ended the suspension already
        }
        csched_check(csched_is_suspended(before), "not suspended");
    } while (!csched_cas_weak(&scheduler->control, &before, before - CSCHED_SUSPENSION, seq_cst, relaxed));
    if (!csched_is_suspended(before - CSCHED_SUSPENSION)) {
        wake_suspended(scheduler);
    }
}

uint32_t csched_scheduler_workers(const csched_scheduler *scheduler)
{
    return csched_load(&scheduler->size, relaxed);
}

csched_scheduler *csched_scheduler_current(void)
{
    csched_worker *worker = csched_worker_self();
    return worker == NULL ? NULL : worker->scheduler;
}

void csched_scheduler_set_owner(csched_scheduler *scheduler, void *owner, void (*release)(void *owner))
{
    scheduler->release_owner = release;
    csched_store(&scheduler->owner, owner, release);
}

void *csched_scheduler_owner(const csched_scheduler *scheduler)
{
    return csched_load(&scheduler->owner, acquire);
}

void csched_scheduler_isolate(csched_scheduler *scheduler, void (*isolate)(void (*body)(void *), void *))
{
    scheduler->isolate = isolate;
}

void csched_block_begin(void)
{
    csched_worker *worker = csched_worker_self();
    if (worker != NULL) {
        csched_worker_block(worker);
    }
}

void csched_block_end(void)
{
    csched_worker *worker = csched_worker_self();
    if (worker != NULL) {
        csched_worker_unblock(worker);
    }
}

csched_statistics csched_scheduler_statistics(csched_scheduler *scheduler)
{
    pthread_mutex_lock(&scheduler->lifecycle);
    csched_statistics sum = scheduler->of_gone;
    bool reader = csched_worker_self() != NULL;
    if (!reader) {
        csched_reclaim_join();
    }
    csched_reclaim_enter(); // for the registries; `lifecycle` protects the crew
    const csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    for (uint32_t position = 0; position < crew->count; position++) {
        add_statistics(&sum, crew->workers[position]);
    }
    sum.workers = csched_load(&scheduler->size, relaxed);
    sum.threads = crew->count;
    sum.replaced = csched_load(&scheduler->watch.replaced, relaxed);
    sum.exhausted = csched_load(&scheduler->watch.exhausted, relaxed);
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        sum.submitted += csched_registry_appended(&scheduler->registry[priority]);
    }
    csched_reclaim_exit();
    if (!reader) {
        csched_reclaim_leave();
    }
    sum.submitted += csched_load(&scheduler->ran_in_callers, relaxed);
    sum.executed += csched_load(&scheduler->ran_in_callers, relaxed);
    sum.woken = csched_load(&scheduler->idle.woken, relaxed);
    sum.retired = csched_reclaim_retired(scheduler->domain);
    sum.reclaimed = csched_reclaim_freed(scheduler->domain);
    pthread_mutex_unlock(&scheduler->lifecycle);
    return sum;
}
