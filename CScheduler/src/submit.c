// submit.c - the path of an operation from its submitter into a queue.
//
//   U1  The counter is entered before the publication; the enter is undone if nothing is published.
//   U2  A worker pushes onto its own deque; any other thread appends to its own inbox. So submissions of
//       different threads write no common cache line, except that of a counter they share.
//   U3  The first submission of a thread lists its inbox, then reads `closing`; a close sets `closing`, then
//       closes the listed inboxes (P16). So an inbox that the sweep missed is closed by its own thread before
//       anything is appended.
//   U4  Jobs of tasks take two paths. The first CSCHED_BURST that a body submits go to its worker's deque: a
//       task that hands off to another one, or awaits its child, finds it in the cache, and a tree of tasks
//       is processed depth first. The rest go to the thread's inbox: first in, first out, for thieves too. A
//       body that creates many tasks expects them to begin in that order. (The runtime walks the children of
//       a group from the oldest whenever one ends: newest first would be quadratic there.) X4 bounds how long
//       they wait for newer ones.
//   U5  A worker whose body has announced that it blocks, or that has lost its seat after that (Z2), submits
//       as from outside: no other worker looks after its deque. Every body may submit until it has returned,
//       so no close closes the inbox of a worker; X6 waits for the body, because its worker is busy. When the
//       worker's thread ends, the inbox becomes an ordinary one: the thread clears `stays_open`, then reads
//       `closing` (P16).

#include "recorder.h"
#include "scheduler_internal.h"

static bool is_closing(const csched_scheduler *scheduler)
{
    return (csched_load(&scheduler->control, seq_cst) & CSCHED_CLOSING) != 0;
}

static csched_submitter *inbox_of_this_thread(csched_scheduler *scheduler, csched_priority priority)
{
    csched_submitter *submitter = csched_registry_find(scheduler->id + priority);
    if (csched_unlikely(submitter == NULL)) {
        const csched_worker *worker = csched_worker_self();
        bool own = worker != NULL && worker->scheduler == scheduler;
        submitter = csched_registry_add(&scheduler->registry[priority], scheduler->id + priority, own);
        if (submitter != NULL && !own && is_closing(scheduler)) { // U3
            csched_inbox_close(&submitter->inbox);
        }
    }
    return submitter;
}

bool csched_submit_wake_if_any_waits(csched_scheduler *scheduler)
{
    csched_reclaim_enter();
    bool waits = !csched_registry_is_empty(&scheduler->registry[CSCHED_PRIORITY_DEFAULT]) ||
                 csched_priority_any_waits(scheduler, false);
    csched_reclaim_exit();
    if (waits) {
        csched_idle_wake_one(&scheduler->idle);
    }
    return waits;
}

// U5
void csched_submit_close_own(csched_scheduler *scheduler)
{
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        csched_submitter *submitter = csched_registry_find(scheduler->id + priority);
        if (submitter != NULL) {
            csched_store(&submitter->stays_open, false, seq_cst); // P16
            if (is_closing(scheduler)) {
                csched_inbox_close(&submitter->inbox);
            }
        }
    }
}

static csched_status append(csched_scheduler *scheduler, const csched_operation *operations, size_t count,
                            csched_priority priority)
{
    csched_submitter *submitter = inbox_of_this_thread(scheduler, priority);
    if (csched_unlikely(submitter == NULL)) {
        return CSCHED_OUT_OF_MEMORY;
    }
    if (csched_unlikely(priority != CSCHED_PRIORITY_DEFAULT)) {
        csched_priority_use(scheduler, priority);
    }
    switch (csched_inbox_append(&submitter->inbox, operations, count)) {
    case CSCHED_APPENDED:
        break;
    case CSCHED_APPEND_CLOSED:
        return CSCHED_CLOSED;
    case CSCHED_APPEND_NO_MEMORY:
        return CSCHED_OUT_OF_MEMORY;
    }
    if (csched_unlikely(priority != CSCHED_PRIORITY_DEFAULT)) {
        csched_priority_raise(scheduler, priority);
    }
    if (csched_likely(
            !csched_is_suspended(csched_load(&scheduler->control, seq_cst)))) { // resume wakes everybody
        csched_idle_after_submit(&scheduler->idle);
    }
    return CSCHED_OK;
}

static void run_here(csched_scheduler *scheduler, const csched_operation *operations, size_t count)
{
    csched_fetch_add(&scheduler->ran_in_callers, count, relaxed);
    for (size_t index = 0; index < count; index++) {
        csched_note_operations(CSCHED_RECORDED_BEGIN, &operations[index], 1);
        operations[index].run(operations[index].context, operations[index].extra, CSCHED_RUN);
        csched_note_operations(CSCHED_RECORDED_END, &operations[index], 1);
        if (operations[index].counter != NULL) {
            (void)csched_completion_leave(operations[index].counter, 1);
        }
    }
}

// CSCHED_OK: room was reserved. `ran`: instead, the operations have run in the caller.
static csched_status make_room(csched_scheduler *scheduler, const csched_operation *operations, size_t count,
                               bool *ran)
{
    csched_capacity *capacity = &scheduler->capacity;
    // relaxed: if this misses a close, the append is refused, as the close also closes the inbox (U3).
    if ((csched_load(&scheduler->control, relaxed) & CSCHED_CLOSING) != 0) {
        return CSCHED_CLOSED;
    }
    if (csched_capacity_try_enter(capacity, count)) {
        return CSCHED_OK;
    }
    switch (capacity->when_full) {
    case CSCHED_WHEN_FULL_RUN_IN_CALLER:
        if (csched_is_suspended(csched_load(&scheduler->control, relaxed))) {
            return CSCHED_FULL; // no body may start, not even here
        }
        run_here(scheduler, operations, count);
        *ran = true;
        return CSCHED_OK;
    case CSCHED_WHEN_FULL_SUSPEND:
        if (count <= capacity->limit) {
            return csched_capacity_enter(capacity, count, &scheduler->control, CSCHED_CLOSING)
                       ? CSCHED_OK
                       : CSCHED_CLOSED;
        }
        return CSCHED_FULL; // more than would ever fit
    case CSCHED_WHEN_FULL_REJECT:
        break;
    }
    return CSCHED_FULL;
}

// The operations are already counted in the capacity; if they are refused, that is undone.
static csched_status append_entered(csched_scheduler *scheduler, const csched_operation *operations,
                                    size_t count, csched_priority priority)
{
    csched_status status = append(scheduler, operations, count, priority);
    if (status != CSCHED_OK) {
        csched_capacity_leave(&scheduler->capacity, count);
    }
    return status;
}

static csched_status append_bounded(csched_scheduler *scheduler, const csched_operation *operations,
                                    size_t count, csched_priority priority)
{
    bool ran = false;
    csched_status status = make_room(scheduler, operations, count, &ran);
    return status != CSCHED_OK || ran ? status : append_entered(scheduler, operations, count, priority);
}

// U1. Operations of one counter usually come in a row: one enter for each row.
static void enter_counters(const csched_operation *operations, size_t count)
{
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && operations[end].counter == operations[first].counter;) {
            end++;
        }
        if (operations[first].counter != NULL) {
            csched_completion_enter(operations[first].counter, (uint32_t)(end - first));
        }
    }
}

static void leave_counters(const csched_operation *operations, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (operations[index].counter != NULL) {
            (void)csched_completion_leave(operations[index].counter, 1);
        }
    }
}

typedef enum { COUNTED, EXEMPT } subjection;

// From a thread that is not a worker of the scheduler (U2).
static csched_status append_from_outside(csched_scheduler *scheduler, const csched_operation *operations,
                                         size_t count, subjection subject, csched_priority priority)
{
    if (csched_likely(!csched_capacity_is_bounded(&scheduler->capacity))) {
        return append(scheduler, operations, count, priority);
    }
    const csched_worker *worker = csched_worker_self();
    if (subject == COUNTED && (worker == NULL || worker->scheduler != scheduler)) {
        return append_bounded(scheduler, operations, count, priority);
    }
    csched_capacity_enter_exempt(&scheduler->capacity, count);
    return append_entered(scheduler, operations, count, priority);
}

// Whether the calling thread is a worker of the scheduler that may use its deque.
static bool has_deque(const csched_worker *worker, const csched_scheduler *scheduler)
{
    return worker != NULL && worker->scheduler == scheduler &&
           csched_likely((csched_load(&worker->seat, relaxed) & CSCHED_SEAT_ANNOUNCED) == 0); // U5
}

// N5. `worker`: that of the calling thread, or NULL.
static csched_priority resolve(csched_priority priority, const csched_worker *worker)
{
    if (priority != CSCHED_PRIORITY_INHERITED) {
        return priority;
    }
    return worker == NULL ? CSCHED_PRIORITY_DEFAULT : worker->priority;
}

csched_priority csched_priority_current(void)
{
    return resolve(CSCHED_PRIORITY_INHERITED, csched_worker_self());
}

static csched_status submit_from_outside(csched_scheduler *scheduler, const csched_operation *operation,
                                         subjection subject, csched_priority priority)
{
    if (operation->counter != NULL) {
        csched_completion_enter(operation->counter, 1); // U1
    }
    csched_status status = append_from_outside(scheduler, operation, 1, subject, priority);
    if (csched_unlikely(status != CSCHED_OK)) {
        csched_note_operations(CSCHED_RECORDED_REFUSE, operation, 1);
        if (operation->counter != NULL) {
            (void)csched_completion_leave(operation->counter, 1);
        }
    }
    return status;
}

static csched_always_inline csched_status submit_now(csched_scheduler *scheduler,
                                                     const csched_operation *operation, subjection subject,
                                                     csched_priority priority)
{
    csched_worker *worker = csched_worker_self();
    priority = resolve(priority, worker);
    if (has_deque(worker, scheduler)) {
        return csched_worker_spawn(worker, operation, priority) ? CSCHED_OK : CSCHED_OUT_OF_MEMORY; // U2
    }
    return submit_from_outside(scheduler, operation, subject, priority);
}

static csched_aside csched_status submit_recorded(csched_scheduler *scheduler,
                                                  const csched_operation *operation, subjection subject,
                                                  csched_priority priority)
{
    csched_note_operations(CSCHED_RECORDED_SUBMIT, operation, 1);
    return submit_now(scheduler, operation, subject, priority);
}

static csched_always_inline csched_status submit(csched_scheduler *scheduler,
                                                 const csched_operation *operation, subjection subject,
                                                 csched_priority priority)
{
    return csched_unlikely(csched_is_recording()) ? submit_recorded(scheduler, operation, subject, priority)
                                                  : submit_now(scheduler, operation, subject, priority);
}

csched_status csched_submit(csched_scheduler *scheduler, const csched_operation *operation)
{
    return submit(scheduler, operation, COUNTED, CSCHED_PRIORITY_INHERITED);
}

csched_status csched_submit_at(csched_scheduler *scheduler, const csched_operation *operation,
                               csched_priority priority)
{
    return submit(scheduler, operation, COUNTED, priority);
}

csched_status csched_submit_exempt(csched_scheduler *scheduler, const csched_operation *operation)
{
    return submit(scheduler, operation, EXEMPT, CSCHED_PRIORITY_INHERITED);
}

csched_status csched_submit_exempt_at(csched_scheduler *scheduler, const csched_operation *operation,
                                      csched_priority priority)
{
    return submit(scheduler, operation, EXEMPT, priority);
}

static csched_always_inline csched_status submit_job_now(csched_scheduler *scheduler,
                                                         const csched_operation *operation,
                                                         csched_priority priority)
{
    csched_worker *worker = csched_worker_self();
    priority = resolve(priority, worker);
    if (has_deque(worker, scheduler) && worker->burst < CSCHED_BURST) {
        worker->burst++;
        return csched_worker_spawn(worker, operation, priority) ? CSCHED_OK : CSCHED_OUT_OF_MEMORY; // U2
    }
    return submit_from_outside(scheduler, operation, EXEMPT, priority);
}

static csched_aside csched_status submit_job_recorded(csched_scheduler *scheduler,
                                                      const csched_operation *operation,
                                                      csched_priority priority)
{
    csched_note_operations(CSCHED_RECORDED_SUBMIT, operation, 1);
    return submit_job_now(scheduler, operation, priority);
}

csched_status csched_submit_job(csched_scheduler *scheduler, const csched_operation *operation,
                                csched_priority priority)
{
    return csched_unlikely(csched_is_recording()) ? submit_job_recorded(scheduler, operation, priority)
                                                  : submit_job_now(scheduler, operation, priority);
}

csched_status csched_submit_again(csched_scheduler *scheduler, const csched_operation *operations,
                                  size_t count, csched_priority priority)
{
    return append_from_outside(scheduler, operations, count, EXEMPT, priority);
}

csched_status csched_submit_bulk_at(csched_scheduler *scheduler, const csched_operation *operations,
                                    size_t count, csched_priority priority)
{
    if (count == 0) {
        return (csched_load(&scheduler->control, relaxed) & CSCHED_CLOSING) != 0 ? CSCHED_CLOSED : CSCHED_OK;
    }
    enter_counters(operations, count);
    csched_note_operations(CSCHED_RECORDED_SUBMIT, operations, count);
    csched_worker *worker = csched_worker_self();
    priority = resolve(priority, worker);
    csched_status status =
        !has_deque(worker, scheduler) ? append_from_outside(scheduler, operations, count, COUNTED, priority)
        : csched_worker_submit(worker, operations, count, priority) ? CSCHED_OK
                                                                    : CSCHED_OUT_OF_MEMORY; // U2
    if (status != CSCHED_OK) {
        csched_note_operations(CSCHED_RECORDED_REFUSE, operations, count);
        leave_counters(operations, count);
    }
    return status;
}

csched_status csched_submit_bulk(csched_scheduler *scheduler, const csched_operation *operations,
                                 size_t count)
{
    return csched_submit_bulk_at(scheduler, operations, count, CSCHED_PRIORITY_INHERITED);
}
