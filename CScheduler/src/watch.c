// watch.c - seats, and the replacement of workers that block.
//
// A scheduler has as many seats as configured workers. A worker needs a seat to search for work. When a body
// blocks, the watch gives the seat of its worker to another one, from the reserve or newly hired. The blocked
// worker finishes its body without a seat, and then goes into the reserve.
//
//   Z1  A seat is one word of its worker. While the worker searches or sleeps (LOOKING), other threads change
//       the word only to add LEAVING. While it is inside a body, the watch may take the seat by a
//       compare-exchange. A worker enters a search by a compare-exchange, too, so it knows whether it has a
//       seat, and keeps it. No two workers have the same seat.
//   Z2  A body announces that it blocks by ANNOUNCED, in the same word. Only then does the worker's place
//       among the awake ones pass to the new worker: when the blocked worker continues, it knows that it has
//       no seat, and no longer uses its deque (submit.c, U5). A worker found blocked without an announcement
//       does not know. It stays counted as awake, and the sentry looks after its deque meanwhile.
//   Z3  A worker is considered blocked, usually correctly, if it has executed nothing between two looks of
//       the watch, and either has announced that it blocks, or sleeps in the kernel and has slept for most of
//       the time since the previous look. (A long body that waits for a page at the moment of the look is not
//       blocked. The worker of a task that created a million others used to be replaced in every second run;
//       when the spare thread ended, the allocator returned its memory, and all of it had to be faulted in
//       again.) A mistake costs one running thread too many until the end of that body.
//   Z4  Seats are given and taken under `lifecycle`, by the watch and by resizes only. The exception is a
//       worker that leaves for good: it returns its own seat, as the last step before its thread ends.
//   Z5  The reserve consists of the workers whose `recall` is IN_RESERVE. They rest in the sense of X6. The
//       watch dismisses and joins them when none was needed for CSCHED_RESERVE_NS.
//   W7  While no worker searches and none sleeps, the watch is armed: it looks again within
//       CSCHED_WATCH_LAST_NS. The last worker to search arms it, before it runs what it found. The watch
//       disarms itself when a worker sleeps that a submission would wake. (P28) So an idle scheduler is
//       silent: no timer, no poll. A worker that falls asleep in a crowd arms the watch, too (W9), for two
//       looks if no other operation follows.
//
// Orderings:
//   P28  found: sleepers, then state <-> disarm: state, then sleepers and searching; all seq_cst.
//   P29  announce: seat, and, if operations are left, the fence of P31 <-> the new worker: its bit, then the
//        depth. Publishes what the blocked body has pushed. The end of an announcement reads the seat with
//        acquire.
//   P31  a push by a worker that is away: bottom, a fence, then searching and sleepers <-> a worker that
//        falls asleep: its bit, then the depth and the owner's seat; all seq_cst. As W1: no other worker
//        looks after such a deque.
//   P30  give: seat, then recall (release) -> the new worker: recall (acquire).
//   P45  reserve: recall, then state <-> disarm, and the end: state, then recall; all seq_cst. So a worker
//        that goes into reserve late, because its seat was taken when it was about to leave, either sees the
//        end, or is seen and dismissed.
//
// Sources: Go's sysmon, which passes the processor of a blocked thread to another thread; the managed blocker
// of Java's ForkJoinPool; tokio's block_in_place.

#include "watch.h"

#include "recorder.h"
#include <stdio.h>

#include "scheduler_internal.h"
#include "tuning.h"

// DROWSY: armed, but asleep with so long a timeout that a body that blocks should wake it.
enum { NONE, DORMANT, ARMED, DROWSY, ENDING };

void csched_watch_init(csched_watch *watch, uint32_t limit)
{
    watch->limit = limit;
    watch->hired = 0;
    csched_init(&watch->state, NONE);
    csched_init(&watch->replaced, 0);
    csched_init(&watch->exhausted, 0);
    watch->is_exhausted = false;
    watch->replaced_at_ns = 0;
}

// relaxed: the arming thread has already read the state with the order of P28 and P45, and an exchange reads
// the newest value. It publishes nothing; it only makes the watch look.
static void change(csched_watch *watch, uint32_t from, uint32_t to)
{
    if (csched_cas(&watch->state, &from, to, relaxed, relaxed)) {
        csched_futex_wake(&watch->state, 1);
    }
}

// Returns the previous state.
static uint32_t arm(csched_watch *watch)
{
    uint32_t state = csched_load(&watch->state, seq_cst); // P28, P45
    if (state == DORMANT) {
        change(watch, DORMANT, ARMED);
    }
    return state;
}

void csched_watch_arm(csched_watch *watch) { (void)arm(watch); }

void csched_watch_hurry(csched_watch *watch)
{
    if (csched_load(&watch->state, relaxed) == DROWSY) {
        change(watch, DROWSY, ARMED);
    }
}

// A watch that sleeps without a timeout is woken, so that it dismisses the reserve in time. If its end comes
// after this read, csched_watch_end looks at the reserve after that (P45).
bool csched_watch_note_reserve(csched_watch *watch) { return arm(watch) != ENDING; }

// MARK: The reserve

static csched_worker *find_in_reserve(const csched_crew *crew)
{
    for (uint32_t position = 0; position < crew->count; position++) {
        csched_worker *worker = crew->workers[position];
        if (csched_load(&worker->recall, seq_cst) == CSCHED_IN_RESERVE) { // P45
            return worker;
        }
    }
    return NULL;
}

static void recall(csched_worker *worker, csched_recall why)
{
    csched_store(&worker->recall, why, release); // P30
    csched_futex_wake(&worker->recall, 1);
}

static void warn_of_limit(csched_scheduler *scheduler)
{
    csched_watch *watch = &scheduler->watch;
    if (watch->is_exhausted) {
        return; // already reported
    }
    watch->is_exhausted = true;
    if (csched_fetch_add(&watch->exhausted, 1, relaxed) == 0) {
        csched_warn(scheduler->name,
                    "as many workers are blocked as the limit of spare workers allows; waiting operations "
                    "begin when one of them continues");
    }
}

// Counts the workers without a seat: a leaving worker has a seat until its thread is about to end.
static bool is_limit_reached(const csched_scheduler *scheduler)
{
    const csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    uint32_t unseated = 0;
    for (uint32_t position = 0; position < crew->count; position++) {
        const csched_worker *worker = crew->workers[position];
        unseated += !csched_is_seated(csched_load(&worker->seat, relaxed)) &&
                    csched_load(&worker->recall, relaxed) != CSCHED_DISMISSED &&
                    !csched_load(&worker->ended, relaxed);
    }
    return unseated >= scheduler->watch.limit;
}

// A worker without a seat. NULL: the limit is reached, or memory or threads are exhausted.
static csched_worker *find_spare(csched_scheduler *scheduler)
{
    csched_worker *spare = find_in_reserve(csched_load(&scheduler->crew, relaxed));
    if (spare == NULL && is_limit_reached(scheduler)) {
        warn_of_limit(scheduler);
        return NULL;
    }
    scheduler->watch.is_exhausted = false;
    if (spare != NULL) {
        return spare;
    }
    return csched_scheduler_hire(scheduler, CSCHED_WORKERS_MAX + (uint32_t)scheduler->watch.hired++);
}

static void dismiss_reserve(csched_scheduler *scheduler)
{
    scheduler->watch.replaced_at_ns = csched_now_ns(); // the next dismissal: an interval later
    pthread_mutex_lock(&scheduler->lifecycle);
    csched_worker *spare;
    while ((spare = find_in_reserve(csched_load(&scheduler->crew, relaxed))) != NULL) {
        recall(spare, CSCHED_DISMISSED);
    }
    csched_scheduler_remove_ended(scheduler);
    pthread_mutex_unlock(&scheduler->lifecycle);
}

// Whether there is a worker to dismiss, or to join.
static bool has_reserve(csched_scheduler *scheduler)
{
    bool found = false;
    pthread_mutex_lock(&scheduler->lifecycle);
    const csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    for (uint32_t position = 0; !found && position < crew->count; position++) {
        uint32_t recalled = csched_load(&crew->workers[position]->recall, seq_cst); // P45
        found = recalled == CSCHED_IN_RESERVE || recalled == CSCHED_DISMISSED;
    }
    pthread_mutex_unlock(&scheduler->lifecycle);
    return found;
}

// MARK: Looks

static bool anything_waits(csched_scheduler *scheduler, const csched_crew *crew)
{
    bool waits = !csched_registry_is_empty(&scheduler->registry[CSCHED_PRIORITY_DEFAULT]) ||
                 csched_priority_any_waits(scheduler, true);
    for (uint32_t position = 0; !waits && position < crew->count; position++) {
        const csched_worker *worker = crew->workers[position];
        waits = csched_deque_depth(&worker->deque[CSCHED_PRIORITY_DEFAULT]) != 0 ||
                csched_load(&worker->in_hand, relaxed) != 0; // X8
    }
    return waits;
}

// Z3. Records this look in any case: the next look compares with it.
static bool is_blocked(csched_worker *worker, uint32_t seat)
{
    int32_t id = csched_load(&worker->kernel_id, relaxed);
    csched_last_look former = worker->last_look;
    csched_last_look now = {.body = csched_load(&worker->executed, relaxed) + 1,
                            .at_ns = csched_now_ns(),
                            .ran_ns = csched_thread_ran_ns(id)};
    worker->last_look = now;
    if (now.body != former.body) {
        return false;
    }
    bool announced = (seat & CSCHED_SEAT_ANNOUNCED) != 0;
    bool has_slept = now.ran_ns - former.ran_ns <= (now.at_ns - former.at_ns) / CSCHED_BLOCKED_SHARE;
    return announced || (has_slept && csched_thread_sleeps(id));
}

// Z1, Z2
static bool replace(csched_scheduler *scheduler, csched_worker *worker, uint32_t seat)
{
    csched_worker *spare = find_spare(scheduler);
    bool announced = (seat & CSCHED_SEAT_ANNOUNCED) != 0;
    uint32_t none = announced ? CSCHED_UNSEATED : CSCHED_UNSEATED_AWAKE;
    if (spare == NULL || !csched_cas(&worker->seat, &seat, none, seq_cst, relaxed)) { // P29, P31
        return false; // it continues: the spare stays in reserve
    }
    csched_idle_stir(&scheduler->idle);
    if (!announced) {
        csched_idle_count_awake(&scheduler->idle);
    }
    csched_store(&spare->seat, seat >> CSCHED_SEAT_SHIFT << CSCHED_SEAT_SHIFT, relaxed); // P30
    recall(spare, CSCHED_SEATED);
    csched_note(CSCHED_RECORDED_REPLACE, worker->index);
    csched_fetch_add(&scheduler->watch.replaced, 1, relaxed);
    scheduler->watch.replaced_at_ns = csched_now_ns();
    return true;
}

// Looks at all workers inside a body. `patient`: the looks are at their slowest, so the seat of a blocked
// worker is given away even if nothing waits, and its new holder sleeps where submissions find it. Returns
// whether a worker was replaced.
static bool look(csched_scheduler *scheduler, bool patient)
{
    pthread_mutex_lock(&scheduler->lifecycle); // Z4
    csched_reclaim_enter();
    bool waits = anything_waits(scheduler, csched_load(&scheduler->crew, relaxed));
    csched_reclaim_exit();
    bool replaced = false;
    uint32_t count = csched_load(&scheduler->crew, relaxed)->count;
    for (uint32_t position = 0; position < count; position++) { // newly hired ones come after them
        csched_worker *worker = csched_load(&scheduler->crew, relaxed)->workers[position];
        uint32_t seat = csched_load(&worker->seat, relaxed);
        if (csched_is_seated(seat) && (seat & (CSCHED_SEAT_LOOKING | CSCHED_SEAT_LEAVING)) == 0 &&
            (waits || patient) && is_blocked(worker, seat)) {
            replaced |= replace(scheduler, worker, seat);
        }
    }
    pthread_mutex_unlock(&scheduler->lifecycle);
    return replaced;
}

// Whether a submission would find a worker to wake, or a worker searches.
static bool is_attended(const csched_idle *idle)
{
    return csched_idle_has_sleepers_now(idle) || csched_load(&idle->searching, seq_cst) != 0; // P28
}

// W9. Returns whether the watch owes another look: it has just come on guard, or something waits and the
// worker woken for it may be stopped. Operations held back by a suspension do not count.
static bool stand_guard(csched_scheduler *scheduler, bool on, bool owes)
{
    bool was_on = csched_idle_guard(&scheduler->idle, on);
    if (!was_on && !owes) {
        return on;
    }
    return !csched_is_suspended(csched_load(&scheduler->control, seq_cst)) && // behind P54
           csched_submit_wake_if_any_waits(scheduler);
}

// False: no worker would find what waits, so the watch continues.
static bool fall_silent(csched_scheduler *scheduler)
{
    csched_watch *watch = &scheduler->watch;
    uint32_t state = ARMED;
    if (!csched_cas(&watch->state, &state, DORMANT, seq_cst, relaxed) || // P28
        is_attended(&scheduler->idle)) {
        return true;
    }
    csched_watch_arm(watch);
    return false;
}

// W7. Looks, less and less often, until a worker sleeps.
static void watch_until_calm(csched_scheduler *scheduler)
{
    csched_watch *watch = &scheduler->watch;
    uint64_t interval_ns = CSCHED_WATCH_FIRST_NS;
    int calm = 0;
    bool owes = false; // W9
    for (;;) {
        uint32_t state = ARMED;
        if (interval_ns > CSCHED_WATCH_FIRST_NS &&
            csched_cas(&watch->state, &state, DROWSY, relaxed, relaxed)) {
            state = DROWSY;
        }
        if (state == ENDING) {
            return;
        }
        bool passed = !csched_futex_wait(&watch->state, state, interval_ns);
        state = DROWSY;
        (void)csched_cas(&watch->state, &state, ARMED, relaxed, relaxed);
        if (state == ENDING) {
            return;
        }
        bool crowded = csched_idle_is_crowded(&scheduler->idle);
        owes = stand_guard(scheduler, crowded, owes);
        bool attended = is_attended(&scheduler->idle);
        bool last = interval_ns >= CSCHED_WATCH_LAST_NS;
        bool replaced = !attended && look(scheduler, last);
        if (replaced || !passed) {
            interval_ns = CSCHED_WATCH_FIRST_NS;
        } else if (!last) {
            interval_ns = crowded && attended ? CSCHED_WATCH_LAST_NS : interval_ns * 2;
        }
        if (csched_now_ns() - watch->replaced_at_ns >= CSCHED_RESERVE_NS) {
            dismiss_reserve(scheduler);
        }
        calm = attended && !owes ? calm + 1 : 0;
        // In a crowd each lone operation arms the watch, which need not stay awake for that.
        uint64_t rest;
        bool is_over = crowded && calm != 0 && csched_idle_is_quiet(&scheduler->idle, &rest);
        if (is_over || calm >= CSCHED_CALM_LOOKS) {
            owes = stand_guard(scheduler, false, false);
            if (!owes && fall_silent(scheduler)) {
                return;
            }
        }
    }
}

static void *thread_main(void *argument)
{
    csched_scheduler *scheduler = argument;
    csched_watch *watch = &scheduler->watch;
    char name[16];
    (void)snprintf(name, sizeof name, "%.9s-watch", scheduler->name);
    (void)pthread_setname_np(pthread_self(), name);
    csched_reclaim_join();
    uint32_t state;
    while ((state = csched_load(&watch->state, seq_cst)) != ENDING) {
        if (state != DORMANT) {
            watch_until_calm(scheduler);
        } else if (!csched_futex_wait(&watch->state, DORMANT,
                                      has_reserve(scheduler) ? CSCHED_RESERVE_NS : CSCHED_FOREVER)) {
            dismiss_reserve(scheduler);
        }
    }
    csched_reclaim_leave();
    return NULL;
}

csched_status csched_watch_start(csched_scheduler *scheduler)
{
    csched_watch *watch = &scheduler->watch;
    if (watch->limit == 0) {
        return CSCHED_OK;
    }
    csched_store(&watch->state, DORMANT, relaxed);
    if (csched_create_thread(&watch->thread, thread_main, scheduler) != CSCHED_OK) {
        csched_store(&watch->state, NONE, relaxed);
        return CSCHED_THREAD_CREATION_FAILED;
    }
    return CSCHED_OK;
}

void csched_watch_end(csched_scheduler *scheduler)
{
    csched_watch *watch = &scheduler->watch;
    if (csched_load(&watch->state, relaxed) == NONE) {
        return;
    }
    csched_store(&watch->state, ENDING, seq_cst); // P45
    csched_futex_wake(&watch->state, 1);
    (void)pthread_join(watch->thread, NULL);
    dismiss_reserve(scheduler);
}
