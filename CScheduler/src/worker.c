// worker.c - what a worker's thread does: take, run, count, search, sleep, and help inside a wait.
//
//   X1  An operation is run by the thread that took it out of an inbox or a deque, at once, or after it has
//       been in that thread's own deque: between a take and a push it is in nobody else's reach and in no
//       second place.
//   X2  Leaves are paid in instalments: a worker that runs operations of one counter in a row keeps them back
//       as a debt. What its bodies submit to the same counter is set against the debt, and without one it
//       enters many in advance, which are a debt until they are used. The debt is paid before the worker runs
//       an operation of another counter, searches, or waits, and then names no counter. While it runs an
//       operation of that counter, the counter could not have reached zero anyway; so a debt never delays a
//       completion.
//   X3  running goes from 0 to 1 before control is read for the first body, and stays there until no body
//       follows. suspend changes control, then its caller reads running. So after suspend returned, a worker
//       that does not show as running starts nothing. (P19)
//   X4  Fairness: every fair_interval operations (about CSCHED_FAIR_NS, at most CSCHED_FAIR_MOST) a worker
//       first takes the oldest it can find: from the inboxes, and every other time from the top of its own
//       deque. So neither endless local work nor an operation that submits itself starves anything older.
//   X5  Bodies run outside read sections, locks and state changes; what a body sees of its worker is
//       consistent.
//   X6  The last worker that falls asleep in a sealed scheduler ends it. After its announcement it sees
//       SEALED, then all inboxes empty, then that all workers rest: they sleep, or are about to, outside of
//       all bodies and callbacks, and with nothing in their deques. So all inboxes were closed and empty,
//       every deque is empty, and no body runs that could submit. A worker that took the last operation in
//       between does not rest (P8), and will be the last one later. One that falls asleep under a suspension,
//       with what it put back, does not rest either: the end of the suspension wakes it.
//
// Orderings:
//   P19  show_running: running, a fence, then control <-> suspend: control, then running (statistics), both
//        seq_cst. One fence is enough for a whole row of bodies: either it comes before the suspension, and
//        running is seen, or control is. Back to 0 with release: who sees it sees what the bodies wrote.

#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "completion.h"
#include "join.h"
#include "scheduler_internal.h"
#include "tuning.h"

// A wait on a worker may nest as long as this much stack is left; a join only if a wait in it may nest then.
enum { STACK_RESERVE = 256 * 1024, STACK_OF_A_JOIN = 16 * 1024 };

typedef enum { FOUND, NOTHING, ENDED, INTERRUPTED } outcome;

// A condition that ends a search early; NULL in the main loop.
typedef struct {
    bool (*done)(const void *context);
    const void *context;
    uint64_t deadline_ns;
    bool interruptible;
} reason;

csched_thread_local csched_worker *self;

csched_worker *csched_worker_self(void) { return self; }

void csched_worker_forget(void) { self = NULL; }

csched_worker *csched_worker_create(csched_scheduler *scheduler, uint32_t index)
{
    csched_worker *worker = csched_allocate(sizeof *worker, CSCHED_LINE);
    uint64_t *seen = csched_allocate(CSCHED_WORKERS_MAX * sizeof *seen, 0);
    if (worker == NULL || seen == NULL || !csched_deque_init(&worker->deque, scheduler->domain)) {
        csched_free(worker);
        csched_free(seen);
        return NULL;
    }
    csched_init(&worker->executed, 0);
    csched_init(&worker->cancelled, 0);
    csched_init(&worker->submitted, 0);
    csched_init(&worker->stolen, 0);
    csched_init(&worker->parked, 0);
    csched_init(&worker->running, 0);
    csched_init(&worker->stuck, 0);
    csched_init(&worker->leaving, false);
    worker->scheduler = scheduler;
    worker->index = index;
    worker->until_fair = worker->fair_interval = CSCHED_FAIR_MOST;
    worker->fair_since_ns = csched_now_ns();
    worker->cursor = 0;
    worker->random = index * UINT64_C(0x9E3779B97F4A7C15) + 1;
    worker->fair_turn = false;
    worker->sentry_ns = CSCHED_SENTRY_FIRST_NS;
    worker->executed_seen = seen;
    worker->debt_counter = NULL;
    worker->debt = 0;
    worker->places = 0;
    worker->burst = 0;
    worker->nesting = 0;
    worker->stack_limit = NULL;
    return worker;
}

void csched_worker_destroy(csched_worker *worker)
{
    csched_deque_destroy(&worker->deque);
    csched_free(worker->executed_seen);
    csched_free(worker);
}

// Counters with one writer need no read-modify-write.
static void count(csched_atomic(uint64_t) *counter, uint64_t more)
{
    csched_store(counter, csched_load(counter, relaxed) + more, relaxed);
}

static bool is_stuck(const csched_worker *worker)
{
    return csched_load(&worker->stuck, relaxed) == csched_load(&worker->executed, relaxed) + 1;
}

static bool push(csched_worker *worker, const csched_operation *operations, size_t number)
{
    if (!csched_deque_push(&worker->deque, operations, number)) {
        return false;
    }
    csched_idle *idle = &worker->scheduler->idle;
    if (csched_unlikely(csched_idle_has_sleepers(idle))) {
        int64_t depth =
            csched_load(&worker->deque.bottom, relaxed) - csched_load(&worker->deque.top, relaxed);
        csched_idle_after_push(idle, depth, is_stuck(worker));
    }
    return true;
}

bool csched_worker_submit(csched_worker *worker, const csched_operation *operations, size_t number)
{
    if (csched_unlikely(!push(worker, operations, number))) {
        return false;
    }
    count(&worker->submitted, number);
    return true;
}

// X2
static void enter(csched_worker *worker, csched_completion *counter)
{
    if (counter != worker->debt_counter) {
        csched_completion_enter(counter, 1);
        return;
    }
    if (worker->debt == 0) {
        csched_completion_enter(counter, CSCHED_ADVANCE);
        worker->debt = CSCHED_ADVANCE;
    }
    worker->debt--;
}

static void undo_enter(csched_worker *worker, csched_completion *counter)
{
    if (counter != worker->debt_counter) {
        (void)csched_completion_leave(counter, 1);
    } else {
        worker->debt++;
    }
}

bool csched_worker_spawn(csched_worker *worker, const csched_operation *operation)
{
    csched_completion *counter = operation->counter;
    if (counter != NULL) {
        enter(worker, counter); // U1
    }
    bool pushed = csched_worker_submit(worker, operation, 1);
    if (csched_unlikely(!pushed) && counter != NULL) {
        undo_enter(worker, counter);
    }
    return pushed;
}

static void put_back(csched_worker *worker, const csched_operation *operation)
{
    csched_check(push(worker, operation, 1), "out of memory for operations already accepted");
}

static bool is_second(const csched_operation *operation, const void *fork)
{
    return operation->run == csched_join_run_second && operation->context == fork;
}

// Looks for it below a few others: what the first branch submitted, or what the pop took from the other end.
static __attribute__((noinline)) bool dig_out(csched_worker *worker, const void *fork,
                                              csched_operation newest)
{
    csched_operation above[CSCHED_BATCH];
    size_t number = 0;
    bool found = false;
    above[number++] = newest;
    csched_operation below;
    while (!found && number < CSCHED_BATCH && csched_deque_pop(&worker->deque, &below)) {
        found = is_second(&below, fork);
        if (!found) {
            above[number++] = below;
        }
    }
    while (number > 0) {
        put_back(worker, &above[--number]);
    }
    return found;
}

bool csched_worker_take_back(csched_worker *worker, const void *fork)
{
    csched_operation newest;
    if (!csched_deque_pop(&worker->deque, &newest) ||
        (csched_unlikely(!is_second(&newest, fork)) && !dig_out(worker, fork, newest))) {
        return false;
    }
    count(&worker->executed, 1); // the caller runs it at once
    return true;
}

bool csched_worker_may_nest(const csched_worker *worker)
{
    return (char *)__builtin_frame_address(0) > worker->stack_limit + STACK_OF_A_JOIN;
}

// X2. Only the leave: the caller has to conclude it.
static csched_conclusion pay_only(csched_worker *worker)
{
    csched_completion *counter = worker->debt_counter;
    uint32_t debt = worker->debt;
    worker->debt_counter = NULL; // its notifications may submit
    worker->debt = 0;
    return debt != 0 ? csched_completion_leave_only(counter, debt) : (csched_conclusion){.last = false};
}

static void pay(csched_worker *worker) { csched_completion_conclude(pay_only(worker)); }

// Runs an operation, or puts it back because notifications come first: they may wait for it.
static void run(csched_worker *worker, const csched_operation *operation, uint32_t control)
{
    if (worker->debt_counter != operation->counter || worker->debt >= CSCHED_DEBT_MOST) {
        csched_conclusion conclusion = pay_only(worker);
        if (csched_unlikely(conclusion.notifications != NULL)) { // X1
            put_back(worker, operation);
            csched_completion_conclude(conclusion);
            return;
        }
        csched_completion_conclude(conclusion);
        worker->debt_counter = operation->counter;
    }
    if (csched_unlikely((control & CSCHED_CANCELLING) != 0) &&
        operation->run != csched_join_run_second) { // J2
        operation->run(operation->context, operation->extra, CSCHED_CANCEL);
        count(&worker->cancelled, 1);
    } else {
        worker->burst = 0;
        operation->run(operation->context, operation->extra, CSCHED_RUN); // X5
        count(&worker->executed, 1);
    }
    if (operation->counter != NULL) {
        worker->debt_counter = operation->counter; // a wait inside the body has paid, and names none
        worker->debt++;
    }
}

// Keeps the first of a batch in hand and the rest in the deque, so that they are popped in their order.
static void keep(csched_worker *worker, csched_operation *batch, size_t number, csched_operation *operation)
{
    *operation = batch[0];
    if (number < 2) {
        return;
    }
    for (size_t low = 1, high = number - 1; low < high; low++, high--) {
        csched_operation swapped = batch[low];
        batch[low] = batch[high];
        batch[high] = swapped;
    }
    csched_check(push(worker, batch + 1, number - 1), "out of memory for operations already accepted");
}

static size_t take_from_inboxes(csched_worker *worker, csched_operation *batch)
{
    csched_scheduler *scheduler = worker->scheduler;
    bool bounded = csched_capacity_is_bounded(&scheduler->capacity);
    size_t number =
        csched_registry_take(&scheduler->registry, &worker->cursor, batch, bounded ? 1 : CSCHED_BATCH);
    worker->places += bounded ? number : 0;
    return number;
}

// What was taken waits no more. Outside the read section: it may wake threads.
static void give_places_back(csched_worker *worker)
{
    if (worker->places != 0) {
        csched_capacity_leave(&worker->scheduler->capacity, worker->places);
        worker->places = 0;
    }
}

// Thieves begin at a random worker, so that they do not all ask the same one. `patient`: the sentry slept
// since it noted what everybody had executed, and takes lone operations of those who have executed nothing
// more (W5).
static size_t take_from_workers(csched_worker *worker, csched_operation *batch, bool patient)
{
    const csched_crew *crew = csched_load(&worker->scheduler->crew, acquire);
    worker->random = worker->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint32_t first = (uint32_t)(worker->random >> 33);
    for (uint32_t offset = 0; offset < crew->count; offset++) {
        csched_worker *victim = crew->workers[(first + offset) % crew->count];
        if (victim == worker) {
            continue;
        }
        int64_t depth = csched_deque_depth(&victim->deque);
        if (depth == 0) {
            continue;
        }
        uint64_t executed = csched_load(&victim->executed, relaxed);
        if (depth == 1 && csched_load(&victim->running, relaxed) != 0 && !is_stuck(victim)) {
            if (!patient || executed != worker->executed_seen[victim->index]) {
                continue;
            }
            csched_store(&victim->stuck, executed + 1, relaxed);
        }
        size_t number = csched_deque_steal(&victim->deque, batch, CSCHED_BATCH);
        if (number != 0) {
            count(&worker->stolen, number);
            return number;
        }
    }
    return 0;
}

// W5. What is left in the inboxes may have counted on this worker alone.
static void stop_searching(csched_worker *worker)
{
    csched_scheduler *scheduler = worker->scheduler;
    if (csched_idle_found(&scheduler->idle)) {
        csched_reclaim_enter();
        bool left = !csched_registry_is_empty(&scheduler->registry);
        csched_reclaim_exit();
        if (left) {
            csched_idle_wake_one(&scheduler->idle);
        }
    }
}

static bool take_elsewhere(csched_worker *worker, csched_operation *operation, bool patient)
{
    csched_operation batch[CSCHED_BATCH];
    csched_reclaim_enter();
    size_t number = take_from_inboxes(worker, batch);
    if (number == 0) {
        number = take_from_workers(worker, batch, patient);
    }
    csched_reclaim_exit();
    give_places_back(worker);
    if (number == 0) {
        return false;
    }
    stop_searching(worker); // before the push, which wakes others only if nobody searches
    keep(worker, batch, number, operation);
    return true;
}

// X4
static bool take_fairly(csched_worker *worker, csched_operation *operation)
{
    uint64_t now = csched_now_ns();
    uint64_t each_ns = (now - worker->fair_since_ns) / worker->fair_interval + 1;
    uint64_t interval = CSCHED_FAIR_NS / each_ns;
    worker->fair_interval = interval < 1                  ? 1
                            : interval > CSCHED_FAIR_MOST ? CSCHED_FAIR_MOST
                                                          : (uint32_t)interval;
    worker->until_fair = worker->fair_interval;
    worker->fair_since_ns = now;
    worker->fair_turn = !worker->fair_turn;
    csched_operation batch[CSCHED_BATCH];
    size_t number = 0;
    csched_reclaim_enter();
    for (int attempt = 0; attempt < 2 && number == 0; attempt++) {
        bool from_inboxes = worker->fair_turn == (attempt == 0);
        number =
            from_inboxes ? take_from_inboxes(worker, batch) : csched_deque_steal(&worker->deque, batch, 1);
    }
    csched_reclaim_exit();
    give_places_back(worker);
    if (number == 0) {
        return false;
    }
    keep(worker, batch, number, operation);
    return true;
}

// What bodies of this worker have submitted in order (U4). It lies in the worker's own inbox: no look at the
// others', and no pause for whoever fills it.
static bool take_in_order(csched_worker *worker, csched_operation *operation)
{
    csched_submitter *mine = csched_registry_find(worker->scheduler->id);
    if (csched_likely(mine == NULL)) {
        return false;
    }
    csched_operation batch[CSCHED_BATCH];
    csched_reclaim_enter();
    size_t number = csched_inbox_take(&mine->inbox, batch, CSCHED_BATCH);
    csched_reclaim_exit();
    if (number == 0) {
        return false;
    }
    worker->places += csched_capacity_is_bounded(&worker->scheduler->capacity) ? number : 0;
    give_places_back(worker);
    keep(worker, batch, number, operation);
    return true;
}

static bool take_own(csched_worker *worker, csched_operation *operation)
{
    return (csched_unlikely(--worker->until_fair == 0) && take_fairly(worker, operation)) ||
           csched_deque_pop(&worker->deque, operation) || take_in_order(worker, operation);
}

// Whether a worker that is about to sleep has to stay awake. `control` was read after its announcement,
// seq_cst as all the looks here: W1. Not whether it is to leave, or what it waits for is done: whoever says
// so wakes this very worker, asleep or not yet, and it does not sleep then, but looks for that again (P26).
static bool anything_to_do(csched_worker *worker, uint32_t control, const reason *why)
{
    csched_scheduler *scheduler = worker->scheduler;
    if (why == NULL && (control & CSCHED_STOPPED) != 0) {
        return true;
    }
    if (csched_is_suspended(control)) {
        return false; // resume wakes everybody
    }
    bool found = !csched_registry_is_empty(&scheduler->registry);
    const csched_crew *crew = csched_load(&scheduler->crew, acquire);
    for (uint32_t index = 0; !found && index < crew->count; index++) {
        found = csched_deque_depth(&crew->workers[index]->deque) > 1;
    }
    return found;
}

static void note_executed(csched_worker *worker)
{
    csched_reclaim_enter();
    const csched_crew *crew = csched_load(&worker->scheduler->crew, acquire);
    for (uint32_t index = 0; index < crew->count; index++) {
        const csched_worker *other = crew->workers[index];
        worker->executed_seen[other->index] = csched_load(&other->executed, relaxed);
    }
    csched_reclaim_exit();
}

// X6. `control` was read before the look at the inboxes: were it read after, an operation could come in
// between.
static void end_if_drained(csched_worker *worker, uint32_t control)
{
    csched_scheduler *scheduler = worker->scheduler;
    if ((control & CSCHED_SEALED) != 0 && (control & CSCHED_STOPPED) == 0 && !csched_is_suspended(control) &&
        csched_idle_is_quiet(&scheduler->idle)) {
        csched_fetch_or(&scheduler->control, CSCHED_STOPPED, seq_cst);
        csched_futex_wake(&scheduler->control, INT32_MAX);
        csched_idle_wake_all(&scheduler->idle);
    }
}

static uint64_t sooner(uint64_t timeout_ns, const reason *why)
{
    if (why == NULL || why->deadline_ns == CSCHED_FOREVER) {
        return timeout_ns;
    }
    uint64_t now = csched_now_ns();
    uint64_t left = why->deadline_ns > now ? why->deadline_ns - now : 0;
    return left < timeout_ns ? left : timeout_ns;
}

// Sleeps, unless there is something to do after all. Returns whether it was the sentry and its time passed.
static bool sleep_until_woken(csched_worker *worker, const reason *why)
{
    csched_scheduler *scheduler = worker->scheduler;
    csched_idle *idle = &scheduler->idle;
    csched_deque_trim(&worker->deque);
    bool sentry = false;
    uint32_t awake = csched_idle_announce(idle, worker->index);
    uint32_t control = csched_load(&scheduler->control, seq_cst);
    csched_reclaim_enter();
    bool stay = anything_to_do(worker, control, why);
    csched_reclaim_exit();
    if (!stay) {
        bool suspended = csched_is_suspended(control);
        sentry = awake > 0 && !suspended && csched_idle_become_sentry(idle, worker->index);
        if (sentry) {
            note_executed(worker);
        }
        count(&worker->parked, 1);
        csched_observer_notify(scheduler, CSCHED_WORKER_PARKED, worker->index);
        uint64_t timeout_ns = sentry ? worker->sentry_ns : CSCHED_FOREVER;
        // What the observer submitted, or what was put back under a suspension that has ended meanwhile.
        bool empty = csched_deque_depth(&worker->deque) == 0;
        bool rests = empty && why == NULL;
        if (rests) {
            csched_idle_rest(idle);
            end_if_drained(worker, control);
        }
        if (empty || suspended) {
            csched_idle_sleep(idle, worker->index, sooner(timeout_ns, why));
        }
        if (rests) {
            csched_idle_stir(idle); // before anything is taken (P8), and before the observer's code
        }
        csched_observer_notify(scheduler, CSCHED_WORKER_UNPARKED, worker->index);
    }
    bool woken = csched_idle_rise(idle, worker->index);
    if (!sentry || woken) {
        return false;
    }
    worker->sentry_ns =
        worker->sentry_ns * 2 < CSCHED_SENTRY_LAST_NS ? worker->sentry_ns * 2 : CSCHED_SENTRY_LAST_NS;
    return true;
}

// Looks for an operation anywhere, sleeps when there is none. Never NOTHING in the main loop.
static outcome search(csched_worker *worker, csched_operation *operation, const reason *why)
{
    csched_scheduler *scheduler = worker->scheduler;
    bool patient = false;
    // A worker that has just run dry is faster than whoever feeds it. Without a pause it would fetch every
    // operation by itself, and the cache line of the submitter's index with it (measured: 110 ns an operation
    // without, 68 with).
    csched_yield();
    csched_idle_search(&scheduler->idle);
    for (;;) {
        for (int look = 0; look < CSCHED_LOOKS; look++) {
            uint32_t control = csched_load(&scheduler->control, relaxed); // `next` looks again
            // seq_cst: P26, whoever told it to leave may have found it woken already, by one who came before.
            if (why == NULL && ((control & CSCHED_STOPPED) != 0 || csched_load(&worker->leaving, seq_cst))) {
                stop_searching(worker);
                return ENDED;
            }
            if (why != NULL && why->done(why->context)) {
                stop_searching(worker);
                return INTERRUPTED;
            }
            if (csched_is_suspended(control)) {
                break;
            }
            // Kept back by a suspension, or pushed by a notification.
            if (csched_deque_pop(&worker->deque, operation)) {
                stop_searching(worker);
                worker->sentry_ns = CSCHED_SENTRY_FIRST_NS;
                return FOUND;
            }
            if (take_elsewhere(worker, operation, patient)) {
                worker->sentry_ns = CSCHED_SENTRY_FIRST_NS;
                return FOUND;
            }
            csched_yield();
        }
        if (why != NULL && (!why->interruptible || csched_now_ns() >= why->deadline_ns)) {
            stop_searching(worker);
            return NOTHING;
        }
        patient = sleep_until_woken(worker, why);
    }
}

static void show_running(csched_worker *worker)
{
    if (csched_unlikely(csched_load(&worker->running, relaxed) == 0)) {
        csched_store(&worker->running, 1, relaxed);
        csched_fence(seq_cst); // P19
    }
}

// X3: takes an operation and passes the gate with it.
static outcome next(csched_worker *worker, csched_operation *operation, uint32_t *control, const reason *why)
{
    show_running(worker);
    bool taken = take_own(worker, operation);
    for (;;) {
        if (csched_unlikely(!taken)) {
            if (why == NULL) { // else a body is waiting
                csched_store(&worker->running, 0, release);
            }
            pay(worker); // X2
            outcome found = search(worker, operation, why);
            if (found != FOUND) {
                return found;
            }
            show_running(worker);
        }
        *control = csched_load(&worker->scheduler->control, acquire);
        if (csched_likely(!csched_is_suspended(*control))) {
            return FOUND;
        }
        csched_check(csched_deque_push(&worker->deque, operation, 1),
                     "out of memory for operations already accepted");
        taken = false;
    }
}

static void stop_running(csched_worker *worker)
{
    csched_store(&worker->running, 0, release);
    pay(worker);
}

static void work(csched_worker *worker)
{
    csched_operation operation;
    uint32_t control;
    while (next(worker, &operation, &control, NULL) == FOUND) {
        run(worker, &operation, control);
        if (csched_unlikely(csched_load(&worker->leaving, relaxed))) {
            break;
        }
    }
    stop_running(worker);
}

// What waits in the deque of a worker that leaves goes to others, by way of its thread's inbox. When the
// scheduler is closing, the inbox is closed: then the worker stays until the end, which is near. When memory
// is exhausted it runs one operation, and tries again.
static void hand_over(csched_worker *worker)
{
    csched_operation operation;
    while (csched_deque_pop(&worker->deque, &operation)) {
        csched_status status = csched_submit_again(worker->scheduler, &operation);
        if (status == CSCHED_OK) {
            count(&worker->submitted, (uint64_t)-1); // it was counted when it came
            continue;
        }
        csched_check(csched_deque_push(&worker->deque, &operation, 1),
                     "out of memory for operations already accepted");
        csched_store(&worker->leaving, false, relaxed);
        if (status == CSCHED_CLOSED) {
            work(worker);
            continue;
        }
        uint32_t control;
        if (next(worker, &operation, &control, NULL) == FOUND) {
            run(worker, &operation, control);
        }
        stop_running(worker);
        csched_store(&worker->leaving, true, relaxed);
    }
}

static void find_stack_limit(csched_worker *worker)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &low, &size);
        (void)pthread_attr_destroy(&attributes);
    }
    size_t reserve = size / 4 < STACK_RESERVE ? size / 4 : STACK_RESERVE; // a small `ulimit -s`
    worker->stack_limit = low == NULL ? NULL : (char *)low + reserve;
}

static void *thread_main(void *argument)
{
    csched_worker *worker = argument;
    csched_scheduler *scheduler = worker->scheduler;
    char name[16];
    (void)snprintf(name, sizeof name, "%s-%u", scheduler->name, worker->index);
    (void)pthread_setname_np(pthread_self(), name);
    find_stack_limit(worker);
    csched_reclaim_join();
    self = worker;
    csched_observer_notify(scheduler, CSCHED_WORKER_STARTED, worker->index);
    work(worker);
    hand_over(worker);
    self = NULL;
    csched_idle_leave(&scheduler->idle);
    csched_idle_wake_one(&scheduler->idle); // X6, W5: the last one awake may have been this one
    csched_observer_notify(scheduler, CSCHED_WORKER_STOPPED, worker->index);
    csched_reclaim_leave();
    return NULL;
}

csched_status csched_worker_start(csched_worker *worker)
{
    // Signals for the process go to the program's own threads; a fault still hits the thread that caused it.
    sigset_t all, before;
    sigfillset(&all);
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    for (size_t index = 0; index < sizeof faults / sizeof faults[0]; index++) {
        sigdelset(&all, faults[index]);
    }
    csched_idle_join(&worker->scheduler->idle); // before the thread: the crew it belongs to counts it awake
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker->thread, NULL, thread_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        csched_idle_leave(&worker->scheduler->idle);
        return CSCHED_THREAD_CREATION_FAILED;
    }
    return CSCHED_OK;
}

static csched_help_outcome help(csched_worker *worker, const reason *why)
{
    for (;;) {
        if (why->done(why->context)) {
            return CSCHED_HELP_DONE;
        }
        if (why->deadline_ns != CSCHED_FOREVER && csched_now_ns() >= why->deadline_ns) {
            return CSCHED_HELP_TIMED_OUT;
        }
        csched_operation operation;
        uint32_t control;
        switch (next(worker, &operation, &control, why)) {
        case FOUND:
            worker->nesting++;
            run(worker, &operation, control);
            pay(worker);
            worker->nesting--;
            break;
        case NOTHING:
            if (!why->interruptible) {
                return why->done(why->context) ? CSCHED_HELP_DONE : CSCHED_HELP_SLEEPY;
            }
            break;
        case INTERRUPTED:
        case ENDED:
            break;
        }
    }
}

csched_help_outcome csched_worker_help(bool (*done)(const void *context), const void *context,
                                       uint64_t deadline_ns, bool interruptible)
{
    csched_worker *worker = self;
    const reason why = {
        .done = done, .context = context, .deadline_ns = deadline_ns, .interruptible = interruptible};
    csched_check(
        (char *)__builtin_frame_address(0) > worker->stack_limit,
        "too many waits are nested on this worker's stack; wait asynchronously, or from another thread");
    uint32_t running = csched_load(&worker->running, relaxed); // 0 where a notification or an observer waits
    csched_help_outcome outcome = help(worker, &why);
    csched_store(&worker->running, running, release);
    return outcome;
}

void csched_worker_interrupt(void *worker)
{
    csched_worker *sleeper = worker;
    csched_idle_wake(&sleeper->scheduler->idle, sleeper->index);
}
