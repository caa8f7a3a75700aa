// timer.c - timers: set by any thread, kept in a wheel by one thread, which submits what is due.
//
//   T1  A timer has one reference held by the caller, if wanted, and one held by the stage it is in: the
//       inbox, the wheel, the operation in the scheduler's queues, or its run. Dropping the last reference
//       frees the timer.
//   T2  Compare-exchanges of state decide which thread calls the operation, and with what. The timers' thread
//       moves PENDING to FIRED or QUEUED; the run moves QUEUED to RUNNING, and back to PENDING. Any thread
//       may move PENDING or QUEUED to CANCELLED, and then calls the operation with CSCHED_CANCEL; or RUNNING
//       to STOPPING, and then the run makes that call at its end. So CSCHED_CANCEL is delivered once, never
//       concurrently with a run, and a timer that does not repeat is called once, with CSCHED_RUN or
//       CSCHED_CANCEL.
//   T3  No timer is missed. A setter pushes, then reads `wake_at`, until which the thread sleeps, and signals
//       if that is too late. The thread writes `wake_at`, then checks the inbox. While the thread is awake,
//       `wake_at` is 0, and no setter signals. Every setter that finds `wake_at` too late signals by itself:
//       none relies on another setter, which may be stopped. (P40)
//   T4  Without timers the thread sleeps without a timeout: an idle scheduler causes no wake-ups.
//   T5  A cancelled timer is dropped when the thread encounters it; all of them are swept when they are half
//       of what the thread keeps. Cancelling threads signal it for that, once in a while. So memory is
//       bounded by twice the pending timers plus a constant, and a cancel costs amortised O(1).
//   T6  The end: the close sets `closing`. The thread takes the inbox's contents and leaves REFUSING there,
//       by one exchange, and cancels all its timers. A push finds REFUSING, and the timer is refused; or the
//       push precedes the exchange, and the timer is cancelled. The first timer publishes the thread, then
//       checks whether the scheduler is closing; the close sets that, then looks for the thread (P43).
//   T7  A burst is taken in pieces, newest first, and what is due is submitted in between: a new timer does
//       not wait behind a million of them.
//
// Orderings:
//   P40  set: inbox, then wake_at <-> sleep: wake_at, then inbox; all seq_cst. T3.
//   P41  push (release) -> take (acquire): the timer's fields, and what its setter or its last run wrote.
//   P42  signal: signal (release) -> thread: signal (acquire). Publishes the reason: closing, or cancelled
//        timers. If the signal precedes the thread's read, the thread sees the reason; else it does not
//        sleep.
//   P43  start: timers, then control <-> close: control, then timers; all seq_cst. T6.
//   P44  a run ends: state (release) -> cancel: state (acquire). The run's writes are visible to the call
//        with CSCHED_CANCEL. The thread's compare-exchanges in between continue the release sequence.
//
// Source: Varghese, Lauck for the wheel (wheel.c); eventcounts for the sleep.

#include "timer.h"

#include "recorder.h"
#include <pthread.h>
#include <stdio.h>

#include "scheduler_internal.h"
#include "wheel.h"

typedef enum { PENDING, QUEUED, RUNNING, FIRED, STOPPING, CANCELLED } timer_state;

typedef enum { ONCE, AT_ONCE, REPEATING } kind;

struct csched_timer {
    csched_wheel_entry entry; // the first member
    csched_operation operation;
    csched_timers *timers;
    csched_atomic(uint32_t) references; // T1
    csched_atomic(uint16_t) state;      // T2: a timer_state
    uint16_t kind;
};

// A timer that repeats.
typedef struct {
    csched_timer timer; // the first member
    uint64_t deadline_ns;
    uint64_t interval_ns;
} repeating_timer;

struct csched_timers {
    csched_scheduler *scheduler;
    pthread_t thread;
    // Written by setters, which push at the front. Emptied only as a whole, so there is no ABA.
    csched_aligned_to_line csched_atomic(csched_wheel_entry *) inbox;
    // Written by the thread.
    csched_aligned_to_line csched_atomic(uint64_t) wake_at; // T3: until when it sleeps; 0: it is awake
    csched_atomic(int64_t) sweep_at;                        // T5
    csched_atomic(uint32_t) signal;                         // what it sleeps on
    csched_atomic(bool) closing;
    // Written by cancelling threads.
    csched_aligned_to_line csched_atomic(int64_t) cancelled; // cancelled timers that are still kept
    // Owned by the thread.
    csched_aligned_to_line csched_wheel_entry *backlog; // T7
    int64_t kept;                                       // in the wheel
    int64_t dropped;                                    // dropped timers, not yet subtracted from `cancelled`
    csched_wheel wheel;
};

static csched_wheel_entry refusing;
#define REFUSING (&refusing)

static csched_timer *timer_of(csched_wheel_entry *entry) { return (csched_timer *)(void *)entry; }

csched_thread_local const csched_scheduler *own;

bool csched_timer_is_own_thread(void) { return own != NULL; }

bool csched_timers_is_thread_of(const csched_scheduler *scheduler) { return own == scheduler; }

static void unreference(csched_timer *timer)
{
    if (csched_fetch_sub(&timer->references, 1, acq_rel) == 1) {
        csched_free(timer);
    }
}

static void tell(const csched_operation *operation, csched_disposition disposition)
{
    operation->run(operation->context, operation->extra, disposition);
    if (operation->counter != NULL) {
        (void)csched_completion_leave(operation->counter, 1);
    }
}

// MARK: Setting

static void signal_thread(csched_timers *timers)
{
    csched_fetch_add(&timers->signal, 1, release); // P42
    csched_futex_wake(&timers->signal, 1);
}

static uint64_t tick_of(uint64_t deadline_ns)
{
    uint64_t before = deadline_ns >> CSCHED_TICK_SHIFT;
    bool is_exact = before << CSCHED_TICK_SHIFT == deadline_ns;
    return is_exact || before == CSCHED_TICK_LAST ? before : before + 1;
}

static uint64_t later(uint64_t time_ns, uint64_t more_ns)
{
    return more_ns < UINT64_MAX - time_ns ? time_ns + more_ns : UINT64_MAX;
}

// Passes a reference to the timer to the inbox (T1). False: refused; the caller keeps it.
static bool push(csched_timers *timers, csched_timer *timer, uint64_t deadline_ns)
{
    uint64_t tick = timer->entry.tick = tick_of(deadline_ns);
    csched_wheel_entry *head = csched_load(&timers->inbox, relaxed);
    do {
        if (head == REFUSING) { // T6
            return false;
        }
        timer->entry.next = head;
    } while (!csched_cas_weak(&timers->inbox, &head, &timer->entry, seq_cst, relaxed)); // P40, P41
    if (tick << CSCHED_TICK_SHIFT < csched_load(&timers->wake_at, seq_cst)) { // T3
        signal_thread(timers);
    }
    return true;
}

static void *thread_main(void *argument);

static csched_status create(csched_scheduler *scheduler, csched_timers **result)
{
    csched_timers *timers = csched_allocate(sizeof *timers, CSCHED_LINE);
    if (timers == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    timers->scheduler = scheduler;
    csched_init(&timers->inbox, NULL);
    csched_init(&timers->wake_at, 0);
    csched_init(&timers->sweep_at, CSCHED_TIMER_SWEEP_LEAST);
    csched_init(&timers->signal, 0);
    csched_init(&timers->closing, false);
    csched_init(&timers->cancelled, 0);
    timers->backlog = NULL;
    timers->kept = timers->dropped = 0;
    csched_wheel_init(&timers->wheel, csched_now_ns() >> CSCHED_TICK_SHIFT);
    if (csched_create_thread(&timers->thread, thread_main, timers) != CSCHED_OK) {
        csched_free(timers);
        return CSCHED_THREAD_CREATION_FAILED;
    }
    *result = timers;
    return CSCHED_OK;
}

// The scheduler's first timer.
static csched_status start(csched_scheduler *scheduler, csched_timers **result)
{
    pthread_mutex_lock(&scheduler->lifecycle);
    csched_status status = CSCHED_OK;
    *result = csched_load(&scheduler->timers, relaxed);
    if (*result == NULL) {
        if ((csched_load(&scheduler->control, relaxed) & CSCHED_CLOSING) != 0) {
            status = CSCHED_CLOSED;
        } else {
            status = create(scheduler, result);
        }
        if (status == CSCHED_OK) {
            csched_store(&scheduler->timers, *result, seq_cst);                      // P43
            if ((csched_load(&scheduler->control, seq_cst) & CSCHED_CLOSING) != 0) { // T6
                csched_timers_close(*result);
            }
        }
    }
    pthread_mutex_unlock(&scheduler->lifecycle);
    return status;
}

static csched_status set(csched_scheduler *scheduler, kind what, const csched_operation *operation,
                         uint64_t delay_ns, uint64_t interval_ns, csched_timer **result)
{
    csched_timers *timers = csched_load(&scheduler->timers, acquire); // P43: and what `create` wrote
    if (csched_unlikely(timers == NULL)) {
        csched_status status = start(scheduler, &timers);
        if (status != CSCHED_OK) {
            return status;
        }
    }
    csched_timer *timer = csched_allocate(what == REPEATING ? sizeof(repeating_timer) : sizeof *timer, 0);
    if (csched_unlikely(timer == NULL)) {
        return CSCHED_OUT_OF_MEMORY;
    }
    timer->operation = *operation;
    timer->timers = timers;
    timer->kind = (uint16_t)what;
    uint64_t deadline_ns = later(csched_now_ns(), delay_ns);
    if (what == REPEATING) {
        repeating_timer *repeating = (repeating_timer *)(void *)timer;
        repeating->deadline_ns = deadline_ns;
        repeating->interval_ns = interval_ns;
    }
    csched_init(&timer->state, PENDING);
    csched_init(&timer->references, result != NULL ? 2 : 1); // T1
    if (operation->counter != NULL) {
        csched_completion_enter(operation->counter, 1); // as U1
    }
    if (csched_unlikely(!push(timers, timer, deadline_ns))) {
        if (operation->counter != NULL) {
            (void)csched_completion_leave(operation->counter, 1);
        }
        csched_free(timer);
        return CSCHED_CLOSED;
    }
    if (result != NULL) {
        *result = timer;
    }
    return CSCHED_OK;
}

csched_status csched_submit_after(csched_scheduler *scheduler, const csched_operation *operation,
                                  uint64_t delay_ns, csched_timer **timer)
{
    return set(scheduler, ONCE, operation, delay_ns, 0, timer);
}

csched_status csched_call_after(csched_scheduler *scheduler, const csched_operation *operation,
                                uint64_t delay_ns, csched_timer **timer)
{
    return set(scheduler, AT_ONCE, operation, delay_ns, 0, timer);
}

csched_status csched_submit_every(csched_scheduler *scheduler, const csched_operation *operation,
                                  uint64_t delay_ns, uint64_t interval_ns, csched_timer **timer)
{
    csched_check(interval_ns > 0, "the interval is 0");
    return set(scheduler, REPEATING, operation, delay_ns, interval_ns, timer);
}

// MARK: Cancelling

void csched_timer_release(csched_timer *timer) { unreference(timer); }

// T5. Above the limit the thread is signalled again from time to time: an earlier signaller may be stopped.
// Only the count decides when, as threads may see different limits.
static void note_cancelled(csched_timers *timers)
{
    int64_t count = csched_fetch_add(&timers->cancelled, 1, relaxed) + 1;
    int64_t limit = csched_load(&timers->sweep_at, relaxed);
    if (count >= limit && count % CSCHED_TIMER_SWEEP_LEAST == 0) {
        signal_thread(timers);
    }
}

bool csched_timer_cancel(csched_timer *timer)
{
    uint16_t seen = csched_load(&timer->state, relaxed);
    uint16_t next;
    do {
        if (seen != PENDING && seen != QUEUED && seen != RUNNING) {
            return false;
        }
        next = seen == RUNNING ? STOPPING : CANCELLED;
    } while (!csched_cas_weak(&timer->state, &seen, next, acquire, relaxed)); // T2, P44
    if (seen == PENDING) {
        note_cancelled(timer->timers);
    }
    if (seen != RUNNING) {
        tell(&timer->operation, CSCHED_CANCEL);
    }
    return true;
}

// Called by the holder of the stage's reference: cancels a timer that no longer has to wait, and drops the
// reference. relaxed: the last run's writes came with the timer (P41).
static void cancel_and_drop(csched_timer *timer, uint16_t seen)
{
    if (csched_cas(&timer->state, &seen, CANCELLED, relaxed, relaxed)) { // T2
        tell(&timer->operation, CSCHED_CANCEL);
    }
    unreference(timer);
}

// MARK: Running again and again

// The first of its times that is in the future.
static uint64_t next_time(const repeating_timer *repeating)
{
    uint64_t now = csched_now_ns();
    uint64_t next = later(repeating->deadline_ns, repeating->interval_ns);
    if (next <= now) {
        uint64_t missed = (now - next) / repeating->interval_ns + 1;
        next = later(next, missed * repeating->interval_ns);
    }
    return next;
}

static void run_and_set_again(csched_timer *timer)
{
    timer->operation.run(timer->operation.context, timer->operation.extra, CSCHED_RUN);
    repeating_timer *repeating = (repeating_timer *)(void *)timer;
    uint64_t deadline_ns = repeating->deadline_ns = next_time(repeating);
    uint16_t running = RUNNING;
    if (!csched_cas(&timer->state, &running, PENDING, release, relaxed)) { // T2, P44
        tell(&timer->operation, CSCHED_CANCEL);
        unreference(timer);
    } else if (!push(timer->timers, timer, deadline_ns)) {
        cancel_and_drop(timer, PENDING);
    }
}

static void run_repeating(void *context, void *unused, csched_disposition disposition)
{
    (void)unused;
    csched_timer *timer = context;
    uint16_t queued = QUEUED;
    if (disposition == CSCHED_CANCEL) {
        cancel_and_drop(timer, QUEUED);
    } else if (csched_cas(&timer->state, &queued, RUNNING, relaxed, relaxed)) { // T2
        run_and_set_again(timer);
    } else {
        unreference(timer); // cancelled; the canceller has called the operation
    }
}

// MARK: The thread

static void keep(csched_timers *timers, csched_timer *timer)
{
    csched_wheel_insert(&timers->wheel, &timer->entry);
    timers->kept++;
}

static bool drop_if_cancelled(csched_timers *timers, csched_timer *timer)
{
    // relaxed: the timer is no longer used, only freed (T1).
    if (csched_load(&timer->state, relaxed) != CANCELLED) {
        return false;
    }
    timers->dropped++;
    unreference(timer);
    return true;
}

static void refused(csched_timers *timers, csched_timer *timer, csched_status status)
{
    if (status == CSCHED_OUT_OF_MEMORY) { // it was accepted: try again
        csched_store(&timer->state, PENDING, relaxed);
        timer->entry.tick = timers->wheel.now + CSCHED_TIMER_RETRY_TICKS;
        keep(timers, timer);
    } else if (timer->kind == REPEATING) {
        cancel_and_drop(timer, QUEUED);
    } else {
        tell(&timer->operation, CSCHED_CANCEL);
        unreference(timer);
    }
}

static void fire(csched_timers *timers, csched_timer *timer)
{
    kind what = timer->kind;
    uint16_t pending = PENDING;
    // relaxed: only the decision matters; the fields came with the list (P41).
    if (!csched_cas(&timer->state, &pending, what == REPEATING ? QUEUED : FIRED, relaxed, relaxed)) { // T2
        timers->dropped++;
        unreference(timer);
        return;
    }
    csched_note_operations(CSCHED_RECORDED_TIMER, &timer->operation, 1);
    if (what == AT_ONCE) {
        tell(&timer->operation, CSCHED_RUN);
        unreference(timer);
        return;
    }
    const csched_operation repeating = {.run = run_repeating, .context = timer};
    csched_status status = csched_submit_again(
        timers->scheduler, what == REPEATING ? &repeating : &timer->operation, 1, CSCHED_PRIORITY_DEFAULT);
    if (csched_unlikely(status != CSCHED_OK)) {
        refused(timers, timer, status);
    } else if (what == ONCE) {
        unreference(timer);
    }
}

static void fire_due(csched_timers *timers)
{
    uint64_t tick = csched_now_ns() >> CSCHED_TICK_SHIFT;
    for (csched_wheel_entry *due; (due = csched_wheel_take(&timers->wheel, tick)) != NULL;) {
        for (csched_wheel_entry *next; due != NULL; due = next) {
            next = due->next;
            __builtin_prefetch(next); // entries of one tick are scattered in memory
            timers->kept--;
            fire(timers, timer_of(due));
        }
    }
}

// Puts a piece of a list into the wheel; returns the rest.
static csched_wheel_entry *sort(csched_timers *timers, csched_wheel_entry *list, uint64_t most)
{
    for (csched_wheel_entry *next; list != NULL && most > 0; list = next, most--) {
        next = list->next;
        if (!drop_if_cancelled(timers, timer_of(list))) {
            keep(timers, timer_of(list));
        }
    }
    return list;
}

// T7. Only one backlog is kept: a second burst is taken as a whole.
static void take(csched_timers *timers)
{
    timers->backlog = sort(timers, timers->backlog, CSCHED_TIMER_PIECE);
    csched_wheel_entry *taken = csched_exchange(&timers->inbox, NULL, acquire); // P41
    if (timers->backlog == NULL) {
        timers->backlog = sort(timers, taken, CSCHED_TIMER_PIECE);
    } else {
        (void)sort(timers, taken, UINT64_MAX);
    }
}

static int64_t sweep_limit(const csched_timers *timers)
{
    return timers->kept / 2 + CSCHED_TIMER_SWEEP_LEAST;
}

static bool is_kept(csched_wheel_entry *entry, void *context)
{
    csched_timers *timers = context;
    bool dropped = drop_if_cancelled(timers, timer_of(entry));
    timers->kept -= dropped;
    return !dropped;
}

// T5
static void sweep_if_worthwhile(csched_timers *timers)
{
    if (csched_load(&timers->cancelled, relaxed) - timers->dropped >= sweep_limit(timers)) { // P42
        csched_wheel_filter(&timers->wheel, is_kept, timers);
    }
    csched_store(&timers->sweep_at, sweep_limit(timers), relaxed);
    if (timers->dropped != 0) {
        csched_fetch_sub(&timers->cancelled, timers->dropped, relaxed);
        timers->dropped = 0;
    }
}

// T3
static void sleep_until_next(csched_timers *timers, uint32_t signal)
{
    uint64_t tick = csched_wheel_next(&timers->wheel);
    uint64_t until = tick > CSCHED_TICK_LAST ? UINT64_MAX : tick << CSCHED_TICK_SHIFT; // T4
    uint64_t now = csched_now_ns();
    if (until <= now) {
        return;
    }
    csched_store(&timers->wake_at, until, seq_cst);     // P40
    if (csched_load(&timers->inbox, seq_cst) == NULL) { // P40
        (void)csched_futex_wait(&timers->signal, signal, until == UINT64_MAX ? until : until - now);
    }
    csched_store(&timers->wake_at, 0, relaxed);
}

static void cancel_all(csched_wheel_entry *list)
{
    for (csched_wheel_entry *next; list != NULL; list = next) {
        next = list->next;
        cancel_and_drop(timer_of(list), PENDING);
    }
}

// T6
static void end(csched_timers *timers)
{
    cancel_all(csched_exchange(&timers->inbox, REFUSING, acquire)); // P41
    cancel_all(timers->backlog);
    for (csched_wheel_entry *entries; (entries = csched_wheel_take(&timers->wheel, UINT64_MAX)) != NULL;) {
        cancel_all(entries);
    }
}

static void *thread_main(void *argument)
{
    csched_timers *timers = argument;
    own = timers->scheduler;
    char name[18];
    (void)snprintf(name, sizeof name, "%s-timer", timers->scheduler->name);
    name[15] = '\0';
    (void)pthread_setname_np(pthread_self(), name);
    csched_wake_on_time();
    for (;;) {
        uint32_t signal = csched_load(&timers->signal, acquire); // P42
        if (csched_load(&timers->closing, relaxed)) {            // P42
            break;
        }
        take(timers);
        fire_due(timers);
        sweep_if_worthwhile(timers);
        if (timers->backlog == NULL) {
            sleep_until_next(timers, signal);
        }
    }
    end(timers);
    return NULL;
}

// MARK: The end

void csched_timers_close(csched_timers *timers)
{
    if (timers != NULL) {
        csched_store(&timers->closing, true, relaxed); // P42
        signal_thread(timers);
    }
}

void csched_timers_join(csched_timers *timers)
{
    if (timers != NULL) {
        (void)pthread_join(timers->thread, NULL);
    }
}

void csched_timers_destroy(csched_timers *timers) { csched_free(timers); }

uint64_t csched_timers_next_wake(const csched_timers *timers)
{
    return timers == NULL ? UINT64_MAX : csched_load(&timers->wake_at, relaxed);
}

void csched_timers_forget(csched_timers *timers)
{
    own = NULL;
    if (timers != NULL) {
        csched_store(&timers->inbox, REFUSING, relaxed); // there is no other thread
    }
}
