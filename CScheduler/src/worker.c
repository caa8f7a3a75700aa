// worker.c - what a worker's thread does: take, run, count, search, sleep, wait, and be replaced.
//
//   X1  An operation is run by the thread that took it out of an inbox or a deque: either at once, or after
//       it has been in that thread's own deque. Between a take and a push no other thread can reach it, and
//       it is stored nowhere else.
//   X2  Leaves are paid in instalments: a worker that runs operations of one counter in a row accumulates
//       their leaves as a debt. Enters for what its bodies submit to the same counter are offset against the
//       debt. When the debt is 0, the worker enters many in advance; the unused ones are its debt. The debt
//       is paid before the worker runs an operation of another counter, searches, or waits; after that it
//       belongs to no counter. While the worker runs an operation of that counter, the counter could not
//       reach zero anyway, so a debt never delays a completion.
//   X3  running goes from 0 to 1 before control is read for the first body, and stays 1 until no body
//       follows. suspend changes control, then its caller reads running. So after suspend has returned, a
//       worker whose running is 0 starts nothing. (P19)
//   X4  Fairness: every fair_interval operations (about CSCHED_FAIR_NS, at most CSCHED_FAIR_MOST) a worker
//       has a fair turn: it takes from the inboxes first, or from its own deque first if the last fair turn
//       found something in the inboxes. From its own deque it takes the oldest in one of CSCHED_OWN_TURNS
//       such turns, else the newest: otherwise a tree of long-running nodes would fill the memory. So neither
//       endless local work nor an operation that resubmits itself starves older operations. A new worker, and
//       one that has slept, begins with short intervals, which may double each time. In a fair turn it takes
//       no more from the inboxes than it has run since the last one; otherwise earlier takes would pile up in
//       its deque below newer operations. (That happened with operations of 12 us and more: the 100,000
//       children of a task group, 15 us each, took 103 us each instead of 17: U4.)
//   X5  Bodies run outside read sections, locks and state changes; a body sees a consistent state of its
//       worker.
//   X6  The last worker that falls asleep in a sealed scheduler stops it. It reads SEALED, then checks that
//       all workers rest. A worker rests when it sleeps, or is about to, outside any body or callback and
//       with empty deques; or when it has exited, is in reserve, or is on its way there, past its last
//       operation and after handing off its deques. Then it checks that all inboxes are empty, and finally
//       that the same rest still holds: no worker has stirred meanwhile. So all inboxes were closed and
//       empty, every deque is empty, and no body runs that could submit. Checking the inboxes before the rest
//       would not be enough: a worker on its way into the reserve hands off its operations, and rests at once
//       (P59). If an inbox is not empty after all, the append has woken a worker, which will later be the
//       last one to fall asleep. The same holds for a worker that took the last operation in between, since
//       it does not rest (P8). A worker that falls asleep under a suspension, with operations it put back,
//       does not rest either: the end of the suspension wakes it. The other workers are woken to exit; before
//       that, each runs what its observer submits.
//   X7  A waiting body runs on its stack only what belongs to its wait: operations of the counter, or
//       branches of the branch that was taken. The wait could not end without these, so if one of them needs
//       a lock that the body holds, it needs that lock in every order. When none of them is in reach, the
//       thread announces that it blocks, and sleeps (Z2).
//   X8  A composite body (the steps of a cascade, or the children of a range) continues with its next part
//       directly, as long as its worker would take that part next anyway: until the next fair turn (X4), and
//       only if it is not suspended (X3), is still seated, nothing of high priority waits, and no waiting
//       body is below it on the stack. The part it holds in hand while user code runs counts as a lone
//       operation in its deque (W5): the sentry takes it from a worker that does not come back for it, and
//       the worker itself pushes it before it waits.
//
// Orderings:
//   P59  hand over: the append, then busy (leave) -> end: busy, then the inboxes. All seq_cst.
//   P19  show_running: running, a fence, then control <-> suspend: control, then running (statistics), both
//        seq_cst. One fence is enough for a whole row of bodies: either the fence comes before the
//        suspension, and the caller of suspend sees running, or the worker sees control. Back to 0 with
//        release: a thread that reads the 0 sees the bodies' writes.

#include "worker.h"

#include <stdio.h>
#include <string.h>

#include "bodies.h"
#include "children.h"
#include "completion.h"
#include "cscheduler/internals/fairness.h"
#include "join.h"
#include "recorder.h"
#include "scheduler_internal.h"
#include "tuning.h"
#include "watch.h"

// A wait runs nested operations only while this much of the stack is left.
enum { STACK_RESERVE = 256 * 1024 };

// ENDED: the worker is to leave, or the scheduler has stopped. UNSEATED: another worker has its seat.
typedef enum { FOUND, ENDED, UNSEATED } outcome;

csched_thread_local csched_worker *self;

// Written before the first worker exists.
static uint64_t fair_ns = CSCHED_FAIR_NS;

void csched_fair_by_count(void) { fair_ns = UINT64_MAX; }

csched_worker *csched_worker_self(void) { return self; }

void csched_worker_forget(void) { self = NULL; }

static bool make_deques(csched_worker *worker, csched_reclaim *domain)
{
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        int64_t capacity =
            priority == CSCHED_PRIORITY_DEFAULT ? CSCHED_DEQUE_CAPACITY : CSCHED_RANKED_DEQUE_CAPACITY;
        if (!csched_deque_init(&worker->deque[priority], domain, capacity)) {
            while (priority-- > 0) {
                csched_deque_destroy(&worker->deque[priority]);
            }
            return false;
        }
    }
    return true;
}

// X4. Nothing is known about the cost of its next operations.
static void restart_fair_interval(csched_worker *worker)
{
    worker->until_fair = worker->fair_interval = CSCHED_FAIR_FIRST;
    worker->fair_since_ns = csched_now_ns();
    worker->from_inboxes = false;
}

csched_worker *csched_worker_create(csched_scheduler *scheduler, uint32_t index, uint32_t seat)
{
    csched_worker *worker = csched_allocate(sizeof *worker, CSCHED_LINE);
    if (worker == NULL || !make_deques(worker, scheduler->domain)) {
        csched_free(worker);
        return NULL;
    }
    csched_init(&worker->executed, 0);
    csched_init(&worker->cancelled, 0);
    csched_init(&worker->submitted, 0);
    csched_init(&worker->stolen, 0);
    csched_init(&worker->parked, 0);
    csched_init(&worker->running, 0);
    csched_init(&worker->stuck, 0);
    csched_init(&worker->seen, 0);
    csched_init(&worker->seat, seat);
    csched_init(&worker->recall, csched_is_seated(seat) ? CSCHED_OUT : CSCHED_IN_RESERVE);
    csched_init(&worker->kernel_id, 0);
    csched_init(&worker->ended, false);
    worker->last_look = (csched_last_look){.body = 0};
    worker->scheduler = scheduler;
    worker->index = index;
    restart_fair_interval(worker);
    worker->own_turns = 0;
    memset(worker->cursor, 0, sizeof worker->cursor);
    worker->priority = CSCHED_PRIORITY_DEFAULT;
    worker->high_row = 0;
    worker->background_at = 0;
    worker->ranked_turn = 0;
    worker->random = index * UINT64_C(0x9E3779B97F4A7C15) + 1;
    worker->sentry_ns = CSCHED_SENTRY_FIRST_NS;
    worker->backlog = false;
    csched_pace_init(&worker->pace);
    worker->debt_counter = NULL;
    worker->debt = 0;
    worker->places = 0;
    worker->burst = 0;
    worker->nesting = 0;
    worker->blocking = 0;
    worker->enclosing = NULL;
    worker->innermost = NULL;
    csched_init(&worker->in_hand, 0);
    worker->stack_limit = NULL;
    return worker;
}

void csched_worker_destroy(csched_worker *worker)
{
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        csched_deque_destroy(&worker->deque[priority]);
    }
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

bool csched_worker_is_away(const csched_worker *worker)
{
    uint32_t seat = csched_load(&worker->seat, seq_cst); // P31
    return !csched_is_seated(seat) || (seat & CSCHED_SEAT_ANNOUNCED) != 0;
}

// W5
static csched_always_inline void wake_after_push(csched_worker *worker, const csched_deque *deque)
{
    csched_idle *idle = &worker->scheduler->idle;
    bool away = csched_unlikely((csched_load(&worker->seat, relaxed) & CSCHED_SEAT_FLAGS) != 0) &&
                csched_worker_is_away(worker);
    if (csched_unlikely(away)) {
        csched_fence(seq_cst); // P31
    }
    if (csched_unlikely(csched_idle_has_sleepers(idle))) {
        int64_t depth = csched_load(&deque->bottom, relaxed) - csched_load(&deque->top, relaxed);
        csched_idle_after_push(idle, depth, away || is_stuck(worker));
    }
}

// N6
static bool push_ranked(csched_worker *worker, const csched_operation *operations, size_t number,
                        csched_priority priority)
{
    csched_scheduler *scheduler = worker->scheduler;
    csched_deque *deque = &worker->deque[priority];
    csched_priority_use(scheduler, priority);
    if (!csched_deque_push(deque, operations, number)) {
        return false;
    }
    csched_fence(seq_cst); // P46, P47
    csched_priority_raise(scheduler, priority);
    if (priority == CSCHED_PRIORITY_HIGH) {
        wake_after_push(worker, deque);
    } else if (!csched_is_suspended(csched_load(&scheduler->control, relaxed))) {
        csched_idle_after_submit(&scheduler->idle); // a resume after the fence wakes all workers
    }
    return true;
}

// Pushes operations of the default priority.
static csched_always_inline bool push_in_turn(csched_worker *worker, const csched_operation *operations,
                                              size_t number)
{
    csched_deque *deque = &worker->deque[CSCHED_PRIORITY_DEFAULT];
    if (!csched_deque_push(deque, operations, number)) {
        return false;
    }
    wake_after_push(worker, deque);
    return true;
}

static bool push(csched_worker *worker, const csched_operation *operations, size_t number,
                 csched_priority priority)
{
    return priority == CSCHED_PRIORITY_DEFAULT ? push_in_turn(worker, operations, number)
                                               : push_ranked(worker, operations, number, priority);
}

static csched_always_inline bool submit(csched_worker *worker, const csched_operation *operations,
                                        size_t number, csched_priority priority)
{
    bool pushed = csched_likely(priority == CSCHED_PRIORITY_DEFAULT)
                      ? push_in_turn(worker, operations, number)
                      : push_ranked(worker, operations, number, priority);
    if (csched_unlikely(!pushed)) {
        return false;
    }
    count(&worker->submitted, number);
    return true;
}

bool csched_worker_submit(csched_worker *worker, const csched_operation *operations, size_t number,
                          csched_priority priority)
{
    return submit(worker, operations, number, priority);
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

bool csched_worker_spawn(csched_worker *worker, const csched_operation *operation, csched_priority priority)
{
    csched_completion *counter = operation->counter;
    if (counter != NULL) {
        enter(worker, counter); // U1
    }
    bool pushed = submit(worker, operation, 1, priority);
    if (csched_unlikely(!pushed) && counter != NULL) {
        undo_enter(worker, counter);
    }
    return pushed;
}

static uint32_t seat_number(const csched_worker *worker)
{
    return csched_load(&worker->seat, relaxed) >> CSCHED_SEAT_SHIFT;
}

static void put_back(csched_worker *worker, const csched_operation *operation, csched_priority priority)
{
    csched_check(push(worker, operation, 1, priority), "out of memory for operations already accepted");
}

static bool is_fork(const csched_operation *operation) { return operation->run == csched_join_run_second; }

// Makes room in `above`: moves its operations to the thread's inbox, oldest first, except forks, which belong
// to joins on this stack. False: nothing was moved.
static bool send_away(csched_worker *worker, csched_operation *above, size_t *number,
                      csched_priority priority)
{
    csched_operation away[CSCHED_BATCH];
    size_t going = 0;
    size_t staying = 0;
    for (size_t index = *number; index > 0; index--) {
        if (!is_fork(&above[index - 1])) {
            away[going++] = above[index - 1];
        }
    }
    if (going == 0 || csched_submit_again(worker->scheduler, away, going, priority) != CSCHED_OK) {
        return false;
    }
    count(&worker->submitted, -(uint64_t)going); // they were counted when they were submitted
    for (size_t index = 0; index < *number; index++) {
        if (is_fork(&above[index])) {
            above[staying++] = above[index];
        }
    }
    *number = staying;
    return true;
}

// `operation` was popped, and is not wanted.
static bool dig_below(csched_worker *worker, csched_priority priority,
                      bool (*wanted)(const void *context, const csched_operation *operation),
                      const void *context, csched_operation *operation)
{
    csched_operation above[CSCHED_BATCH];
    above[0] = *operation;
    size_t number = 1;
    bool found = false;
    while (number < CSCHED_BATCH && csched_deque_pop(&worker->deque[priority], operation)) {
        found = wanted(context, operation);
        if (found) {
            break;
        }
        above[number++] = *operation;
        if (number == CSCHED_BATCH) {
            (void)send_away(worker, above, &number, priority);
        }
    }
    while (number > 0) {
        put_back(worker, &above[--number], priority);
    }
    return found;
}

// Takes the newest operation that is `wanted` from the worker's own deque of a priority, even from below a
// few others: operations that a branch has submitted, or one that a pop took from the other end (D4). If
// there are more than a few, they go to the inbox.
static csched_always_inline bool dig(csched_worker *worker, csched_priority priority,
                                     bool (*wanted)(const void *context, const csched_operation *operation),
                                     const void *context, csched_operation *operation)
{
    return csched_deque_pop(&worker->deque[priority], operation) &&
           (csched_likely(wanted(context, operation)) ||
            dig_below(worker, priority, wanted, context, operation));
}

static bool is_second(const void *fork, const csched_operation *operation)
{
    return is_fork(operation) && operation->context == fork;
}

bool csched_worker_take_back(csched_worker *worker, const void *fork)
{
    csched_operation second;
    // N5. The fork is usually the newest operation. So the priority is not kept for the other case, but read
    // again.
    if (!csched_deque_pop(&worker->deque[worker->priority], &second) ||
        (csched_unlikely(!is_second(fork, &second)) &&
         !dig_below(worker, worker->priority, is_second, fork, &second))) {
        return false;
    }
    count(&worker->executed, 1); // the caller runs it at once
    return true;
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

static csched_aside void call_recorded(const csched_operation *operation)
{
    csched_note_operations(CSCHED_RECORDED_BEGIN, operation, 1);
    operation->run(operation->context, operation->extra, CSCHED_RUN); // X5
    csched_note_operations(CSCHED_RECORDED_END, operation, 1);
}

static csched_always_inline void call(const csched_operation *operation)
{
    if (csched_unlikely(csched_is_recording())) {
        call_recorded(operation);
    } else {
        operation->run(operation->context, operation->extra, CSCHED_RUN); // X5
    }
}

// Runs an operation, or puts it back when notifications have to run first: these may wait for that operation.
static void run(csched_worker *worker, const csched_operation *operation, uint32_t control)
{
    if (worker->debt_counter != operation->counter || worker->debt >= CSCHED_DEBT_MOST) {
        csched_conclusion conclusion = pay_only(worker);
        if (csched_unlikely(conclusion.notifications != NULL)) { // X1
            put_back(worker, operation, worker->priority);
            csched_completion_conclude(conclusion);
            return;
        }
        csched_completion_conclude(conclusion);
        worker->debt_counter = operation->counter;
    }
    if (csched_unlikely((control & CSCHED_CANCELLING) != 0) &&
        operation->run != csched_join_run_second) { // J2
        csched_note_operations(CSCHED_RECORDED_CANCEL, operation, 1);
        operation->run(operation->context, operation->extra, CSCHED_CANCEL);
        count(&worker->cancelled, 1);
    } else {
        csched_body body;
        csched_body_begins(worker, &body, operation->counter);
        worker->burst = 0;
        call(operation);
        csched_body_ends(worker, &body);
        count(&worker->executed, 1);
    }
    if (operation->counter != NULL) {
        worker->debt_counter = operation->counter; // a wait inside the body has paid, and cleared it
        worker->debt++;
    }
}

// Returns the first of a batch, and pushes the rest so that they are popped in order.
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
    csched_check(push(worker, batch + 1, number - 1, CSCHED_PRIORITY_DEFAULT),
                 "out of memory for operations already accepted");
}

static size_t take_from_inboxes(csched_worker *worker, csched_priority priority, csched_operation *batch,
                                size_t room)
{
    csched_scheduler *scheduler = worker->scheduler;
    bool bounded = csched_capacity_is_bounded(&scheduler->capacity);
    size_t number = csched_registry_take(&scheduler->registry[priority], &worker->cursor[priority], batch,
                                         bounded ? 1 : room);
    worker->places += bounded ? number : 0;
    return number;
}

// Returns the places of taken operations to the capacity. Called outside the read section: it may wake
// threads.
static void give_places_back(csched_worker *worker)
{
    if (worker->places != 0) {
        csched_capacity_leave(&worker->scheduler->capacity, worker->places);
        worker->places = 0;
    }
}

// X8
static size_t take_in_hand(csched_worker *worker, csched_worker *victim, csched_operation *operation)
{
    uintptr_t in_hand = csched_worker_take_in_hand(victim);
    if (in_hand == 0) {
        return 0;
    }
    *operation = csched_children_in_hand(in_hand);
    count(&worker->submitted, 1); // as an operation of its own
    return 1;
}

// Thieves begin at a random worker, so that they do not all try the same victim. `patient`: the sentry has
// slept since it noted how much each worker had executed, and takes lone operations of workers that have
// executed nothing since (W5).
static size_t take_from_workers(csched_worker *worker, csched_priority priority, csched_operation *batch,
                                size_t room, bool patient)
{
    const csched_crew *crew = csched_load(&worker->scheduler->crew, acquire);
    worker->random = worker->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint32_t first = (uint32_t)(worker->random >> 33);
    for (uint32_t offset = 0; offset < crew->count; offset++) {
        csched_worker *victim = crew->workers[(first + offset) % crew->count];
        if (victim == worker) {
            continue;
        }
        int64_t depth = csched_deque_depth(&victim->deque[priority]);
        bool in_hand =
            depth == 0 && priority == CSCHED_PRIORITY_DEFAULT && csched_load(&victim->in_hand, relaxed) != 0;
        if (depth == 0 && !in_hand) {
            continue;
        }
        uint64_t executed = csched_load(&victim->executed, relaxed);
        // W5, N6
        if (depth <= 1 && priority != CSCHED_PRIORITY_BACKGROUND &&
            csched_load(&victim->running, relaxed) != 0 && !is_stuck(victim) &&
            !csched_worker_is_away(victim)) {
            if (!patient || executed != csched_load(&victim->seen, relaxed)) {
                continue;
            }
            csched_store(&victim->stuck, executed + 1, relaxed);
        }
        size_t number = in_hand ? take_in_hand(worker, victim, batch)
                                : csched_deque_steal(&victim->deque[priority], batch, room);
        if (number != 0) {
            csched_note(CSCHED_RECORDED_STEAL, number);
            count(&worker->stolen, number);
            return number;
        }
    }
    return 0;
}

// W5. A submission left in the inboxes may have relied on this worker alone. W7: perhaps no worker is left to
// come for what this one leaves.
static void stop_searching(csched_worker *worker)
{
    csched_scheduler *scheduler = worker->scheduler;
    switch (csched_idle_found(&scheduler->idle)) {
    case CSCHED_OTHERS_LOOK:
        break;
    case CSCHED_LAST_TO_LOOK:
        (void)csched_submit_wake_if_any_waits(scheduler);
        break;
    case CSCHED_ALL_AWAKE:
        csched_watch_arm(&scheduler->watch);
        break;
    }
}

static size_t take_batch_elsewhere(csched_worker *worker, csched_operation *batch, bool patient)
{
    bool one_at_a_time = csched_capacity_is_bounded(&worker->scheduler->capacity);
    csched_reclaim_enter();
    size_t number = take_from_inboxes(worker, CSCHED_PRIORITY_DEFAULT, batch, CSCHED_BATCH);
    worker->backlog = number == (one_at_a_time ? 1 : CSCHED_BATCH);
    if (number == 0) {
        number = take_from_workers(worker, CSCHED_PRIORITY_DEFAULT, batch, CSCHED_BATCH, patient);
    }
    csched_reclaim_exit();
    give_places_back(worker);
    return number;
}

static bool take_elsewhere(csched_worker *worker, csched_operation *operation, bool patient)
{
    csched_operation batch[CSCHED_BATCH];
    size_t number = take_batch_elsewhere(worker, batch, patient);
    if (number == 0) {
        return false;
    }
    stop_searching(worker); // before the push, which wakes a worker only if none searches
    keep(worker, batch, number, operation);
    return true;
}

// Takes one operation: by turns its own newest, one of an inbox, and its own oldest, so that newer operations
// do not starve older ones (X4); else one of another worker.
static bool look_for_ranked(csched_worker *worker, csched_priority priority, bool patient,
                            csched_operation *operation)
{
    enum { NEWEST, INBOXES, OLDEST, PLACES };
    csched_deque *own = &worker->deque[priority];
    uint32_t turn = worker->ranked_turn++ % CSCHED_RANKED_TURNS;
    uint32_t first = turn == 0 ? INBOXES : turn == 1 ? OLDEST : NEWEST;
    if (csched_likely(first == NEWEST) && csched_deque_pop(own, operation)) {
        return true;
    }
    bool taken = false;
    csched_reclaim_enter();
    for (uint32_t attempt = 0; attempt < PLACES && !taken; attempt++) {
        switch ((first + attempt) % PLACES) {
        case NEWEST:
            taken = csched_deque_pop(own, operation);
            break;
        case INBOXES:
            taken = take_from_inboxes(worker, priority, operation, 1) != 0;
            break;
        default:
            taken = csched_deque_steal(own, operation, 1) != 0;
            break;
        }
    }
    if (!taken) {
        taken = take_from_workers(worker, priority, operation, 1, patient) != 0;
    }
    csched_reclaim_exit();
    give_places_back(worker);
    return taken;
}

// N3. Called with `running` set.
static bool take_ranked(csched_worker *worker, csched_priority priority, bool patient,
                        csched_operation *operation)
{
    pay(worker);
    csched_scheduler *scheduler = worker->scheduler;
    if (csched_is_suspended(csched_load(&scheduler->control, relaxed))) { // P19; `next` looks again
        return false;
    }
    if (!look_for_ranked(worker, priority, patient, operation)) {
        csched_priority_lower(scheduler, priority);
        return false;
    }
    worker->priority = priority;
    return true;
}

static bool may_wait(const csched_worker *worker, csched_priority priority)
{
    uint32_t flags = csched_load(&worker->scheduler->priorities, relaxed); // a hint: N2
    return (flags & CSCHED_WAITS(priority)) != 0;
}

// The interval ends early.
static void make_next_fair(csched_worker *worker)
{
    worker->fair_interval -= worker->until_fair - 1;
    worker->until_fair = 1;
}

// N4. The row ends when a look finds no operation.
static bool take_high(csched_worker *worker, csched_operation *operation)
{
    if (worker->high_row == CSCHED_HIGH_MOST) {
        worker->high_row = 0;
        make_next_fair(worker);
        return false;
    }
    bool taken = take_ranked(worker, CSCHED_PRIORITY_HIGH, false, operation);
    worker->high_row = taken ? worker->high_row + 1 : 0;
    return taken;
}

static uint64_t operations_done(const csched_worker *worker)
{
    return csched_load(&worker->executed, relaxed) + csched_load(&worker->cancelled, relaxed);
}

// N4. The next fair turn comes after a fair interval, or after a row of high priority.
static bool take_share_of_background(csched_worker *worker, csched_operation *operation)
{
    uint32_t interval = may_wait(worker, CSCHED_PRIORITY_HIGH) ? CSCHED_HIGH_MOST + 1 : worker->fair_interval;
    uint64_t done = operations_done(worker);
    if (done + interval <= worker->background_at + CSCHED_FAIR_MOST) {
        return false;
    }
    worker->background_at = done;
    return take_ranked(worker, CSCHED_PRIORITY_BACKGROUND, false, operation);
}

void csched_turn_was_void(void)
{
    csched_worker *worker = csched_worker_self();
    if (worker == NULL || worker->priority == CSCHED_PRIORITY_HIGH) {
        return;
    }
    worker->high_row = CSCHED_HIGH_MOST;
    make_next_fair(worker);
    if (worker->priority == CSCHED_PRIORITY_BACKGROUND) {
        worker->background_at = operations_done(worker) - CSCHED_FAIR_MOST; // as if its share were long ago
    }
}

// X4. As many operations as take fair_ns, but at most twice the last interval: the next ones may take longer.
static void begin_fair_interval(csched_worker *worker, bool background)
{
    uint64_t now_ns = csched_now_ns();
    uint64_t most = background ? CSCHED_FAIR_MOST / 2 : CSCHED_FAIR_MOST; // N4: every other turn is left
    uint32_t run = worker->fair_interval;
    uint64_t each_ns = (now_ns - worker->fair_since_ns) / run + 1;
    uint64_t interval = fair_ns / each_ns;
    most = most < UINT64_C(2) * run ? most : UINT64_C(2) * run;
    worker->fair_interval = (uint32_t)(interval < 1 ? 1 : interval > most ? most : interval);
    worker->until_fair = worker->fair_interval;
    worker->fair_since_ns = now_ns;
}

// X4. Its newest, or in one of CSCHED_OWN_TURNS its oldest.
static size_t take_of_own(csched_worker *worker, csched_operation *operation)
{
    csched_deque *deque = &worker->deque[CSCHED_PRIORITY_DEFAULT];
    if (++worker->own_turns < CSCHED_OWN_TURNS) {
        return csched_deque_pop(deque, operation) ? 1 : 0;
    }
    worker->own_turns = 0;
    return csched_deque_steal(deque, operation, 1);
}

// X4
static bool take_fairly(csched_worker *worker, csched_operation *operation)
{
    bool background = may_wait(worker, CSCHED_PRIORITY_BACKGROUND);
    uint32_t run = worker->fair_interval; // since the last fair turn
    begin_fair_interval(worker, background);
    if (csched_unlikely(background) && take_share_of_background(worker, operation)) {
        return true;
    }
    csched_operation batch[CSCHED_BATCH];
    size_t room = run < CSCHED_BATCH ? run : CSCHED_BATCH;
    size_t number = 0;
    bool from_inboxes = worker->from_inboxes;
    csched_reclaim_enter();
    for (int attempt = 0; attempt < 2 && number == 0; attempt++) {
        from_inboxes = !from_inboxes;
        number = from_inboxes ? take_from_inboxes(worker, CSCHED_PRIORITY_DEFAULT, batch, room)
                              : take_of_own(worker, batch);
    }
    csched_reclaim_exit();
    worker->from_inboxes = from_inboxes && number != 0;
    give_places_back(worker);
    if (number == 0) {
        return false;
    }
    keep(worker, batch, number, operation);
    return true;
}

// Takes operations that this worker's bodies have submitted in order (U4), from the worker's own inbox. Reads
// no other inbox, and needs no pause for submitters.
static size_t take_in_order(csched_worker *worker, csched_priority priority, csched_operation *batch,
                            size_t room)
{
    csched_submitter *mine = csched_registry_find(worker->scheduler->id + priority);
    if (csched_likely(mine == NULL)) {
        return 0;
    }
    csched_reclaim_enter();
    size_t number = csched_inbox_take(&mine->inbox, batch, room);
    csched_reclaim_exit();
    worker->places += csched_capacity_is_bounded(&worker->scheduler->capacity) ? number : 0;
    give_places_back(worker);
    return number;
}

static bool take_in_order_and_keep(csched_worker *worker, csched_operation *operation)
{
    csched_operation batch[CSCHED_BATCH];
    size_t number = take_in_order(worker, CSCHED_PRIORITY_DEFAULT, batch, CSCHED_BATCH);
    if (number == 0) {
        return false;
    }
    keep(worker, batch, number, operation);
    return true;
}

static bool take_own(csched_worker *worker, csched_operation *operation)
{
    return (csched_unlikely(--worker->until_fair == 0) && take_fairly(worker, operation)) ||
           csched_deque_pop(&worker->deque[CSCHED_PRIORITY_DEFAULT], operation) ||
           take_in_order_and_keep(worker, operation);
}

// Whether a worker that is about to sleep has to stay awake. `control` was read after its announcement,
// seq_cst like all reads here: W1. LEAVING is not checked: the thread that sets it then wakes this very
// worker, asleep or not yet, so the worker does not sleep, and checks the flag again.
static bool anything_to_do(csched_worker *worker, uint32_t control)
{
    csched_scheduler *scheduler = worker->scheduler;
    if ((control & CSCHED_STOPPED) != 0) {
        return true;
    }
    if (csched_is_suspended(control)) {
        return false; // resume wakes all workers
    }
    bool found = !csched_registry_is_empty(&scheduler->registry[CSCHED_PRIORITY_DEFAULT]) ||
                 csched_priority_any_waits(scheduler, false);
    const csched_crew *crew = csched_load(&scheduler->crew, acquire);
    for (uint32_t index = 0; !found && index < crew->count; index++) {
        const csched_worker *other = crew->workers[index];
        int64_t depth = csched_deque_depth(&other->deque[CSCHED_PRIORITY_DEFAULT]);
        found = depth > 1 || (depth == 1 && csched_worker_is_away(other));
    }
    return found;
}

static void note_executed(csched_worker *worker)
{
    csched_reclaim_enter();
    const csched_crew *crew = csched_load(&worker->scheduler->crew, acquire);
    for (uint32_t index = 0; index < crew->count; index++) {
        csched_worker *other = crew->workers[index];
        csched_store(&other->seen, csched_load(&other->executed, relaxed), relaxed);
    }
    csched_reclaim_exit();
}

// X6. Of a sealed scheduler.
static bool is_drained(csched_scheduler *scheduler)
{
    uint64_t rest;
    bool drained = csched_idle_is_quiet(&scheduler->idle, &rest); // P59
    csched_reclaim_enter();
    for (uint32_t priority = 0; drained && priority < CSCHED_PRIORITIES; priority++) {
        drained = csched_registry_is_empty(&scheduler->registry[priority]); // P59
    }
    csched_reclaim_exit();
    return drained && csched_idle_still_rests(&scheduler->idle, rest);
}

// X6. `control` was read earlier: if it were read afterwards, an operation could arrive in between.
static void end_if_drained(csched_worker *worker, uint32_t control)
{
    csched_scheduler *scheduler = worker->scheduler;
    if ((control & CSCHED_SEALED) != 0 && (control & CSCHED_STOPPED) == 0 && !csched_is_suspended(control) &&
        is_drained(scheduler)) {
        csched_fetch_or(&scheduler->control, CSCHED_STOPPED, seq_cst);
        csched_futex_wake(&scheduler->control, INT32_MAX);
        csched_idle_wake_all(&scheduler->idle);
    }
}

static bool has_nothing(const csched_worker *worker)
{
    bool nothing = true;
    for (uint32_t priority = 0; nothing && priority < CSCHED_PRIORITIES; priority++) {
        nothing = csched_deque_depth(&worker->deque[priority]) == 0;
    }
    return nothing;
}

// Sleeps, unless there is something to do after all. Returns whether it was the sentry and timed out.
static bool sleep_until_woken(csched_worker *worker)
{
    csched_scheduler *scheduler = worker->scheduler;
    csched_idle *idle = &scheduler->idle;
    const uint32_t seat = seat_number(worker);
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        csched_deque_trim(&worker->deque[priority]);
    }
    bool sentry = false;
    uint32_t awake = csched_idle_announce(idle, seat);
    uint32_t control = csched_load(&scheduler->control, seq_cst);
    csched_reclaim_enter();
    bool stay = anything_to_do(worker, control);
    csched_reclaim_exit();
    if (!stay) {
        bool suspended = csched_is_suspended(control);
        sentry = awake > 0 && !suspended && csched_idle_become_sentry(idle, seat);
        if (sentry) {
            note_executed(worker);
        }
        count(&worker->parked, 1);
        csched_note(CSCHED_RECORDED_PARK, 0);
        csched_observer_notify(scheduler, CSCHED_WORKER_PARKED, worker->index);
        // The observer may have submitted something, or a suspension that had work put back may have ended.
        bool empty = has_nothing(worker);
        if (empty) {
            csched_idle_rest(idle);
            end_if_drained(worker, control);
        }
        if (empty || suspended) {
            csched_idle_sleep(idle, seat, sentry ? worker->sentry_ns : CSCHED_FOREVER);
        }
        if (empty) {
            csched_idle_stir(idle); // before anything is taken (P8), and before the observer's code
        }
        csched_note(CSCHED_RECORDED_UNPARK, 0);
        csched_observer_notify(scheduler, CSCHED_WORKER_UNPARKED, worker->index);
    }
    bool woken = csched_idle_rise(idle, seat);
    if (!sentry || woken) {
        return false;
    }
    worker->sentry_ns =
        worker->sentry_ns * 2 < CSCHED_SENTRY_LAST_NS ? worker->sentry_ns * 2 : CSCHED_SENTRY_LAST_NS;
    return true;
}

// Z1. From here on its seat cannot be taken. False: another worker already has it.
static bool keep_seat(csched_worker *worker)
{
    uint32_t seat = csched_load(&worker->seat, relaxed);
    do {
        if (!csched_is_seated(seat)) {
            return false;
        }
    } while (!csched_cas_weak(&worker->seat, &seat, seat | CSCHED_SEAT_LOOKING, relaxed, relaxed));
    return true;
}

static void release_seat(csched_worker *worker)
{
    csched_fetch_and(&worker->seat, ~(uint32_t)CSCHED_SEAT_LOOKING, relaxed);
}

static void show_running(csched_worker *worker)
{
    if (csched_unlikely(csched_load(&worker->running, relaxed) == 0)) {
        csched_store(&worker->running, 1, relaxed);
        csched_fence(seq_cst); // P19
    }
}

// N3. `running` stays set only if it finds one.
static bool search_ranked(csched_worker *worker, csched_priority priority, bool patient,
                          csched_operation *operation)
{
    if (csched_likely(!may_wait(worker, priority))) {
        return false;
    }
    show_running(worker);
    if (take_ranked(worker, priority, patient, operation)) {
        stop_searching(worker);
        return true;
    }
    csched_store(&worker->running, 0, release);
    return false;
}

// Searches everywhere for an operation; sleeps when there is none.
static outcome search_seated(csched_worker *worker, csched_operation *operation)
{
    csched_scheduler *scheduler = worker->scheduler;
    bool patient = false;
    // A worker that has just run dry is faster than its submitter. Without a pause it would fetch operations
    // one by one, and the cache line of the submitter's index with each (measured: 110 ns per operation
    // without, 68 with). If its last look may have left some, it looks again at once: with a pause after each
    // batch, a flood among more threads than CPUs took 16 us per operation instead of 0.1.
    bool first = worker->backlog; // whether the next yield is the first one
    bool calm = csched_pace_begin(&worker->pace, operations_done(worker)) &&
                (first || csched_pace_yield(&worker->pace, true));
    csched_idle_search(&scheduler->idle);
    csched_note(CSCHED_RECORDED_SEARCH, 0);
    for (;;) {
        for (int look = 0; look < (calm ? CSCHED_LOOKS : 1); look++) {
            uint32_t control = csched_load(&scheduler->control, relaxed); // `next` looks again
            // seq_cst: the thread that set LEAVING may have found this worker already woken, by an earlier
            // waker.
            if ((control & CSCHED_STOPPED) != 0 ||
                (csched_load(&worker->seat, seq_cst) & CSCHED_SEAT_LEAVING) != 0) {
                stop_searching(worker);
                return ENDED;
            }
            if (csched_is_suspended(control)) {
                break;
            }
            if (search_ranked(worker, CSCHED_PRIORITY_HIGH, patient, operation)) {
                worker->sentry_ns = CSCHED_SENTRY_FIRST_NS;
                return FOUND;
            }
            // Kept back by a suspension, or pushed by a notification.
            if (csched_deque_pop(&worker->deque[CSCHED_PRIORITY_DEFAULT], operation)) {
                stop_searching(worker);
                worker->sentry_ns = CSCHED_SENTRY_FIRST_NS;
                return FOUND;
            }
            if (take_elsewhere(worker, operation, patient) ||
                search_ranked(worker, CSCHED_PRIORITY_BACKGROUND, false, operation)) {
                worker->sentry_ns = CSCHED_SENTRY_FIRST_NS;
                return FOUND;
            }
            calm = calm && csched_pace_yield(&worker->pace, first);
            first = false;
        }
        csched_pace_sleep(&worker->pace, operations_done(worker));
        if (!patient) { // else it has not looked at the crowd since
            csched_idle_note_crowd(&scheduler->idle, !calm);
            if (!calm) {
                csched_watch_arm(&scheduler->watch); // W9
            }
        }
        patient = sleep_until_woken(worker);
        restart_fair_interval(worker);
        csched_pace_wake(&worker->pace, worker->fair_since_ns);
    }
}

static outcome search(csched_worker *worker, csched_operation *operation)
{
    if (!keep_seat(worker)) {
        return UNSEATED;
    }
    outcome found = search_seated(worker, operation);
    release_seat(worker);
    return found;
}

// While background operations wait, a worker that runs dry need not stop running to search: N4.
static bool take_instead_of_a_search(csched_worker *worker, csched_operation *operation)
{
    if (csched_likely(!may_wait(worker, CSCHED_PRIORITY_BACKGROUND))) {
        return false;
    }
    csched_operation batch[CSCHED_BATCH];
    size_t number = take_batch_elsewhere(worker, batch, false);
    if (number == 0) {
        return take_ranked(worker, CSCHED_PRIORITY_BACKGROUND, false, operation);
    }
    keep(worker, batch, number, operation);
    return true;
}

static bool take(csched_worker *worker, csched_operation *operation)
{
    return (csched_unlikely(may_wait(worker, CSCHED_PRIORITY_HIGH)) && take_high(worker, operation)) ||
           take_own(worker, operation) ||
           (csched_unlikely(may_wait(worker, CSCHED_PRIORITY_HIGH)) && take_high(worker, operation)) ||
           take_instead_of_a_search(worker, operation);
}

// X3: takes an operation and passes the gate with it.
static outcome next(csched_worker *worker, csched_operation *operation, uint32_t *control)
{
    show_running(worker);
    bool taken = take(worker, operation);
    for (;;) {
        if (csched_unlikely(!taken)) {
            csched_store(&worker->running, 0, release);
            pay(worker); // X2
            outcome found = search(worker, operation);
            if (found != FOUND) {
                return found;
            }
            show_running(worker);
        }
        *control = csched_load(&worker->scheduler->control, acquire);
        if (csched_likely(!csched_is_suspended(*control)) ||
            worker->priority != CSCHED_PRIORITY_DEFAULT) { // N3
            return FOUND;
        }
        csched_check(csched_deque_push(&worker->deque[CSCHED_PRIORITY_DEFAULT], operation, 1),
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
    while (next(worker, &operation, &control) == FOUND) {
        run(worker, &operation, control);
        if (csched_unlikely(worker->priority != CSCHED_PRIORITY_DEFAULT)) {
            worker->priority = CSCHED_PRIORITY_DEFAULT;
        }
        if (csched_unlikely((csched_load(&worker->seat, relaxed) & CSCHED_SEAT_LEAVING) != 0)) {
            break; // or it has no seat
        }
    }
    stop_running(worker);
}

// Moves the operations in the deque of a worker that leaves, or goes into reserve, to its thread's inbox,
// oldest first, for other workers. A close leaves a worker's inbox open (U5), so this fails only when out of
// memory. False: operations may be left.
static bool hand_over_of(csched_worker *worker, csched_priority priority)
{
    csched_operation batch[CSCHED_BATCH];
    csched_deque *deque = &worker->deque[priority];
    while (csched_deque_depth(deque) != 0) {
        csched_reclaim_enter();
        size_t number = csched_deque_steal(deque, batch, CSCHED_BATCH);
        csched_reclaim_exit();
        if (number != 0 && csched_submit_again(worker->scheduler, batch, number, priority) != CSCHED_OK) {
            csched_check(csched_deque_push(deque, batch, number),
                         "out of memory for operations already accepted");
            return false;
        }
        count(&worker->submitted, -(uint64_t)number); // they were counted when they were submitted
    }
    return true;
}

static bool hand_over(csched_worker *worker)
{
    bool done = true;
    for (uint32_t priority = 0; done && priority < CSCHED_PRIORITIES; priority++) {
        done = hand_over_of(worker, priority);
    }
    return done;
}

bool csched_worker_goes_on(csched_worker *worker)
{
    uint32_t control = csched_load(&worker->scheduler->control, relaxed); // `next` looks again
    if (worker->until_fair <= 1 || worker->nesting != 0 || csched_is_suspended(control) ||
        (control & CSCHED_CANCELLING) != 0 ||
        (csched_load(&worker->seat, relaxed) & CSCHED_SEAT_FLAGS) != 0 ||
        may_wait(worker, CSCHED_PRIORITY_HIGH)) {
        return false;
    }
    worker->until_fair--;
    worker->burst = 0;
    count(&worker->submitted, 1);
    count(&worker->executed, 1);
    return true;
}

bool csched_worker_is_wanted(const csched_worker *worker)
{
    return csched_idle_has_sleepers(&worker->scheduler->idle);
}

void csched_worker_hold(csched_worker *worker, uintptr_t in_hand)
{
    csched_store(&worker->in_hand, in_hand, release); // P53
    csched_idle *idle = &worker->scheduler->idle;
    if (csched_unlikely(csched_idle_has_sleepers(idle))) {
        csched_idle_after_push(idle, 1, false); // W5
    }
}

// X8. The running code is about to wait: pushes what is in hand.
static void lay_down(csched_worker *worker)
{
    uintptr_t in_hand = csched_worker_take_in_hand(worker);
    if (csched_unlikely(in_hand != 0)) {
        csched_operation operation = csched_children_in_hand(in_hand);
        put_back(worker, &operation, CSCHED_PRIORITY_DEFAULT);
        count(&worker->submitted, 1); // as an operation of its own
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

// In reserve: sleeps until the watch has a seat for it. False: it was dismissed.
static bool wait_for_seat(csched_worker *worker)
{
    uint32_t recall;
    while ((recall = csched_load(&worker->recall, acquire)) == CSCHED_IN_RESERVE) { // P30
        (void)csched_futex_wait(&worker->recall, CSCHED_IN_RESERVE, CSCHED_FOREVER);
    }
    return recall == CSCHED_SEATED;
}

// Another worker has its seat. By the time this one rests, all its operations are in its thread's inbox (X6,
// P59).
static void go_into_reserve(csched_worker *worker)
{
    csched_idle *idle = &worker->scheduler->idle;
    bool counted = csched_load(&worker->seat, relaxed) == CSCHED_UNSEATED_AWAKE;
    csched_store(&worker->recall, CSCHED_IN_RESERVE, seq_cst); // P45
    csched_idle_leave(idle, counted);
    csched_idle_wake_one(idle); // X6, W5: the last one that did not rest may have been this one
    uint32_t recall = CSCHED_IN_RESERVE;
    if (csched_unlikely(!csched_watch_note_reserve(&worker->scheduler->watch))) {
        (void)csched_cas(&worker->recall, &recall, CSCHED_DISMISSED, relaxed, relaxed); // the watch is ending
    }
}

static bool take_any_of_its_own(csched_worker *worker, csched_operation *operation)
{
    bool taken = false;
    for (uint32_t priority = 0; !taken && priority < CSCHED_PRIORITIES; priority++) {
        taken = csched_deque_pop(&worker->deque[priority], operation) ||
                take_in_order(worker, priority, operation, 1) != 0;
        worker->priority = taken ? priority : worker->priority;
    }
    return taken;
}

// X3. False: the worker has no operation left.
static bool run_one_of_its_own(csched_worker *worker)
{
    bool taken = true;
    csched_scheduler *scheduler = worker->scheduler;
    show_running(worker);
    uint32_t control = csched_load(&scheduler->control, acquire);
    csched_operation operation;
    if (csched_is_suspended(control)) {
        csched_store(&worker->running, 0, relaxed); // no body since the fence of show_running
        (void)csched_futex_wait(&scheduler->control, control, CSCHED_FOREVER);
    } else if ((taken = take_any_of_its_own(worker, &operation))) {
        run(worker, &operation, control);
        worker->priority = CSCHED_PRIORITY_DEFAULT;
    }
    stop_running(worker);
    return taken;
}

static bool has_stopped(const csched_worker *worker)
{
    return (csched_load(&worker->scheduler->control, relaxed) & CSCHED_STOPPED) != 0;
}

static void work_for_life(csched_worker *worker)
{
    csched_idle *idle = &worker->scheduler->idle;
    csched_idle_search(idle); // W7: what the observer has submitted is taken without a search
    stop_searching(worker);
    do {
        work(worker);
        while (has_stopped(worker) && run_one_of_its_own(worker)) { // X6
        }
        while (!hand_over(worker)) {
            (void)run_one_of_its_own(worker); // out of memory: runs one, then tries again
        }
        if (csched_is_seated(csched_load(&worker->seat, relaxed))) {
            self = NULL;
            csched_submit_close_own(worker->scheduler);
            csched_store(&worker->seat, CSCHED_UNSEATED, release); // Z4
            csched_idle_leave(idle, true);
            csched_idle_wake_one(idle); // X6, W5: the last one awake may have been this one
            return;
        }
        go_into_reserve(worker);
    } while (wait_for_seat(worker));
    self = NULL;
    csched_submit_close_own(worker->scheduler);
}

static void *thread_main(void *argument)
{
    csched_worker *worker = argument;
    csched_scheduler *scheduler = worker->scheduler;
    char name[16];
    (void)snprintf(name, sizeof name, "%s-%u", scheduler->name, worker->index);
    (void)pthread_setname_np(pthread_self(), name);
    csched_store(&worker->kernel_id, csched_thread_id(), relaxed);
    find_stack_limit(worker);
    csched_reclaim_join();
    self = worker;
    // A worker hired for the reserve starts with its first seat. Only then is it busy, so that what its
    // observer submits is waited for (X6).
    if (csched_load(&worker->recall, relaxed) == CSCHED_OUT || wait_for_seat(worker)) {
        csched_observer_notify(scheduler, CSCHED_WORKER_STARTED, worker->index);
        work_for_life(worker);
        csched_observer_notify(scheduler, CSCHED_WORKER_STOPPED, worker->index);
    }
    csched_reclaim_leave();
    csched_store(&worker->ended, true, relaxed); // its memory is freed after a join
    return NULL;
}

csched_status csched_worker_start(csched_worker *worker)
{
    bool seated = csched_is_seated(csched_load(&worker->seat, relaxed));
    if (seated) {
        csched_idle_join(&worker->scheduler->idle); // before the thread starts: its crew counts it as awake
    }
    if (csched_create_thread(&worker->thread, thread_main, worker) != CSCHED_OK) {
        if (seated) {
            csched_idle_leave(&worker->scheduler->idle, true);
        }
        return CSCHED_THREAD_CREATION_FAILED;
    }
    return CSCHED_OK;
}

// MARK: Waits inside a body

// Takes a single operation: a worker that is about to block must leave nothing in its deque.
static bool take_any_of(csched_worker *worker, csched_priority priority, csched_operation *operation)
{
    if (csched_deque_pop(&worker->deque[priority], operation)) {
        return true;
    }
    csched_reclaim_enter();
    size_t number = take_from_inboxes(worker, priority, operation, 1);
    if (number == 0) {
        number = take_from_workers(worker, priority, operation, 1, false);
    }
    csched_reclaim_exit();
    give_places_back(worker);
    return number != 0;
}

// X7. The newest of its own, or the oldest of another worker's.
static bool take_belonging_of(csched_worker *worker, csched_priority priority, const csched_wait *wait,
                              csched_operation *operation)
{
    if (wait->belongs == NULL) {
        return take_any_of(worker, priority, operation);
    }
    bool taken = dig(worker, priority, wait->belongs, wait->context, operation);
    if (taken || wait->only_own) {
        return taken;
    }
    csched_reclaim_enter();
    const csched_crew *crew = csched_load(&worker->scheduler->crew, acquire);
    for (uint32_t index = 0; !taken && index < crew->count; index++) {
        taken =
            crew->workers[index] != worker && csched_deque_steal_if(&crew->workers[index]->deque[priority],
                                                                    wait->belongs, wait->context, operation);
    }
    csched_reclaim_exit();
    if (taken) {
        csched_note(CSCHED_RECORDED_STEAL, 1);
        count(&worker->stolen, 1);
    }
    return taken;
}

// A taken operation runs with its own priority. The waiting body's operations usually have the body's
// priority.
static bool take_belonging(csched_worker *worker, csched_priority first, const csched_wait *wait,
                           csched_operation *operation)
{
    uint32_t used = csched_load(&worker->scheduler->priorities, relaxed); // includes its own operations'
    for (uint32_t offset = 0; offset < CSCHED_PRIORITIES; offset++) {
        csched_priority priority = (first + offset) % CSCHED_PRIORITIES;
        if ((priority == CSCHED_PRIORITY_DEFAULT || (used & CSCHED_USED(priority)) != 0) &&
            take_belonging_of(worker, priority, wait, operation)) {
            worker->priority = priority;
            return true;
        }
    }
    return false;
}

typedef struct {
    csched_worker *worker;
    const csched_wait *wait;
    csched_priority priority; // of the body that waits
    csched_operation first;
} nest;

// X7. Runs on top of other frames of this thread as if the stack were empty; the worker's debt is paid.
static void run_nest(void *context)
{
    const nest *here = context;
    csched_worker *worker = here->worker;
    const void *enclosing = worker->enclosing;
    csched_operation operation = here->first;
    worker->nesting++;
    worker->enclosing = NULL;
    do {
        uint32_t control = csched_load(&worker->scheduler->control, acquire);
        if (csched_unlikely(csched_is_suspended(control))) { // X3
            put_back(worker, &operation, worker->priority);
            break;
        }
        run(worker, &operation, control);
        pay(worker);
    } while (!here->wait->is_over(here->wait->context) &&
             take_belonging(worker, here->priority, here->wait, &operation));
    worker->enclosing = enclosing;
    worker->nesting--;
}

static bool run_nested(csched_worker *worker, const csched_wait *wait)
{
    pay(worker); // X2
    nest here = {.worker = worker, .wait = wait, .priority = worker->priority};
    // relaxed: run_nest checks again.
    if ((char *)__builtin_frame_address(0) < worker->stack_limit ||
        csched_is_suspended(csched_load(&worker->scheduler->control, relaxed)) ||
        !take_belonging(worker, here.priority, wait, &here.first)) {
        return false;
    }
    uint32_t running = csched_load(&worker->running, relaxed); // 0 where a notification or an observer waits
    show_running(worker);
    if (worker->scheduler->isolate != NULL) {
        worker->scheduler->isolate(run_nest, &here);
    } else {
        run_nest(&here);
    }
    csched_store(&worker->running, running, release);
    worker->priority = here.priority;
    return true;
}

bool csched_worker_run_nested(csched_worker *worker, const csched_wait *wait)
{
    lay_down(worker);
    // Nested operations do not block unless they announce it themselves.
    uint32_t blocking = worker->blocking;
    if (blocking != 0) {
        worker->blocking = 1;
        csched_worker_unblock(worker);
    }
    bool ran = run_nested(worker, wait);
    if (blocking != 0) {
        csched_worker_block(worker);
        worker->blocking = blocking;
    }
    return ran;
}

void csched_worker_settle(csched_worker *worker) { pay(worker); }

// Whether the worker leaves operations that it would have come back for. Background ones have woken other
// workers (N6).
static bool leaves_any(const csched_worker *worker)
{
    bool any = false;
    for (uint32_t priority = 0; !any && priority != CSCHED_PRIORITY_BACKGROUND; priority++) {
        const csched_deque *deque = &worker->deque[priority];
        any = csched_load(&deque->top, relaxed) != csched_load(&deque->bottom, relaxed);
    }
    return any;
}

void csched_worker_block(csched_worker *worker)
{
    if (worker->blocking++ != 0) {
        return;
    }
    csched_note(CSCHED_RECORDED_BLOCK, 0);
    lay_down(worker);
    uint32_t seat = csched_load(&worker->seat, relaxed);
    do {
        if (!csched_is_seated(seat) || (seat & CSCHED_SEAT_LOOKING) != 0) {
            return;
        }
        // P29. relaxed: the operations it leaves are published by the fence below.
    } while (!csched_cas_weak(&worker->seat, &seat, seat | CSCHED_SEAT_ANNOUNCED, relaxed, relaxed));
    csched_scheduler *scheduler = worker->scheduler;
    if (leaves_any(worker)) {
        csched_fence(seq_cst);                  // P31
        csched_idle_wake_one(&scheduler->idle); // else only the sentry would come, later
    }
    csched_watch_hurry(&scheduler->watch);
}

void csched_worker_unblock(csched_worker *worker)
{
    if (--worker->blocking != 0) {
        return;
    }
    csched_note(CSCHED_RECORDED_UNBLOCK, 0);
    uint32_t seat = csched_load(&worker->seat, relaxed);
    do {
        if (!csched_is_seated(seat) || (seat & CSCHED_SEAT_ANNOUNCED) == 0) {
            return;
        }
        // P29. acquire: the worker uses its deque again only after it has seen that it kept its seat.
    } while (
        !csched_cas_weak(&worker->seat, &seat, seat & ~(uint32_t)CSCHED_SEAT_ANNOUNCED, acquire, relaxed));
}
