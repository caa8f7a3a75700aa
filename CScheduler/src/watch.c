// watch.c - seats, and who replaces a worker that blocks.
//
// A scheduler has as many seats as it was given workers. A worker needs one to look for work. When a body
// blocks, the watch gives the seat of its worker to another one, out of the reserve or hired for that; the
// one that blocked goes on with its body without a seat, and into the reserve when that has returned.
//
//   Z1  A seat is one word of its worker. While the worker looks or sleeps (LOOKING) nobody else changes it
//       but to add LEAVING; while it is inside a body, the watch may take it by a compare-exchange. So a
//       worker that enters a search by one knows whether it has a seat, and keeps it; no two have the same.
//   Z2  A body says that it blocks by ANNOUNCED, in the same word. Only then the worker's place among those
//       that are awake goes to the new one: it knows that it has no seat when it goes on, and does not use
//       its deque any more (submit.c, U5). A worker that is found blocked and has not said so does not know;
//       it stays counted as awake, and the sentry looks after its deque as long as that lasts.
//   Z3  What is taken for blocked is so only probably: a worker that has executed nothing between two looks
//       of the watch, and has announced that it blocks, or sleeps in the kernel and has slept for most of the
//       time since the look before. (A long body that waits for a page as the watch looks is not blocked. So
//       it was with a task that made a million others: it was replaced in every second run, and as the spare
//       thread ended, the allocator gave its memory back, and all of it was faulted in anew.) A mistake costs
//       a thread that runs too many until the end of that body.
//   Z4  Seats are given and taken under `lifecycle`, by the watch and by resizes alone; only a worker that
//       leaves for good gives its own back, as the last step before its thread ends.
//   Z5  The reserve is the workers whose `recall` says so. They rest in the sense of X6. The watch lets them
//       go, and joins them, when none was needed for CSCHED_RESERVE_NS.
//   W7  While nobody looks and nobody sleeps, the watch is armed, which is to look again within
//       CSCHED_WATCH_LAST_NS. The worker that was the last to look arms it, before it runs what it found. The
//       watch disarms itself when a worker sleeps, whom a submission would wake. (P28) So an idle scheduler
//       is silent: no timer, no poll. A worker that falls asleep in a crowd arms it, too (W9), for two of its
//       looks where no other operation follows.
//
// Orderings:
//   P28  found: sleepers, then state <-> disarm: state, then sleepers and searching; all seq_cst.
//   P29  announce: seat, and where anything is left the fence of P31 <-> the new worker: its bit, then the
//        depth. What the blocked body has pushed. An end of the announcement: seat (acquire).
//   P31  a push of a worker that is away: bottom, a fence, then searching and sleepers <-> a worker that
//        falls asleep: its bit, then the depth and whose it is; all seq_cst. As W1: such a deque has nobody
//        else who looks after it.
//   P30  give: seat, then recall (release) -> the new worker: recall (acquire).
//   P45  reserve: recall, then state <-> disarm, and the end: state, then recall; all seq_cst. So a worker
//        that comes late, as its seat was taken when it was about to leave, sees the end, or is seen and let
//        go.
//
// Sources: Go's sysmon, which hands the processor of a blocked thread to another thread; the managed blocker
// of Java's ForkJoinPool; tokio's block_in_place.

#include "watch.h"

#include "recorder.h"
#include <stdio.h>

#include "scheduler_internal.h"
#include "tuning.h"

// DROWSY: armed, and asleep for so long that a body that blocks had better wake it.
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

// relaxed: whoever arms has looked at the state before, with the order of P28 and P45, and an exchange reads
// the newest. Nothing is told by it but to look.
static void change(csched_watch *watch, uint32_t from, uint32_t to)
{
    if (csched_cas(&watch->state, &from, to, relaxed, relaxed)) {
        csched_futex_wake(&watch->state, 1);
    }
}

// Returns the state as it was before.
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

// A watch that sleeps without a limit has to see to it that the reserve goes in time. If its end comes after
// this look, it looks at the reserve after that (P45).
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
        return; // still
    }
    watch->is_exhausted = true;
    if (csched_fetch_add(&watch->exhausted, 1, relaxed) == 0) {
        csched_warn(scheduler->name,
                    "as many workers are blocked as the limit of spare workers allows; what waits "
                    "begins when one of them goes on");
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

// One that has no seat; NULL: the limit, or the system, has no more.
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
    scheduler->watch.replaced_at_ns = csched_now_ns(); // in a while, the next ones
    pthread_mutex_lock(&scheduler->lifecycle);
    csched_worker *spare;
    while ((spare = find_in_reserve(csched_load(&scheduler->crew, relaxed))) != NULL) {
        recall(spare, CSCHED_DISMISSED);
    }
    csched_scheduler_remove_ended(scheduler);
    pthread_mutex_unlock(&scheduler->lifecycle);
}

// Whether there is a worker to let go, or to join.
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

// Z3. Looks again, in any case: the next look asks what came after this one.
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
        return false; // it goes on: the spare stays in reserve
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

// Looks at all who are inside a body. `patient`: for long, so that even a seat for which nothing waits is
// given away, and its new holder sleeps where submissions find it. Returns whether somebody was replaced.
static bool look(csched_scheduler *scheduler, bool patient)
{
    pthread_mutex_lock(&scheduler->lifecycle); // Z4
    csched_reclaim_enter();
    bool waits = anything_waits(scheduler, csched_load(&scheduler->crew, relaxed));
    csched_reclaim_exit();
    bool replaced = false;
    uint32_t count = csched_load(&scheduler->crew, relaxed)->count;
    for (uint32_t position = 0; position < count; position++) { // those that are hired come behind them
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

// Whether a submission would find somebody to wake, or somebody looks.
static bool is_attended(const csched_idle *idle)
{
    return csched_idle_has_sleepers_now(idle) || csched_load(&idle->searching, seq_cst) != 0; // P28
}

// W9. Returns whether it owes another look: it has come on guard, or something waits, and the worker that was
// woken for that may stop. Operations that a suspension keeps back count for nothing.
static bool stand_guard(csched_scheduler *scheduler, bool on, bool owes)
{
    bool was_on = csched_idle_guard(&scheduler->idle, on);
    if (!was_on && !owes) {
        return on;
    }
    return !csched_is_suspended(csched_load(&scheduler->control, seq_cst)) && // behind P54
           csched_submit_wake_if_any_waits(scheduler);
}

// False: nobody would find what waits, so it goes on.
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

// Looks, less and less often, until a worker sleeps. W7
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
        // In a crowd it is armed for each operation that comes alone, and need not stay for that.
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
