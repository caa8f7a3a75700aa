// idle.h - which workers sleep, which search for work, and which one a submission has to wake.
//
// Contracts are stated here, the argument (W1.., P13..) in idle.c.

#ifndef CSCHEDULER_IDLE_H
#define CSCHEDULER_IDLE_H

#include "cscheduler/scheduler.h"
#include "port.h"

typedef struct {
    csched_aligned_to_line csched_atomic(uint32_t) state;
} csched_parker;

#define CSCHED_SLEEPER_WORDS (CSCHED_WORKERS_MAX / 64)

typedef struct {
    // A bit for every worker: it sleeps, or is about to.
    csched_aligned_to_line csched_atomic(uint64_t) sleepers[CSCHED_SLEEPER_WORDS];
    csched_atomic(uint32_t) searching; // workers that search for work
    csched_atomic(uint32_t) awake;     // workers that do not sleep
    csched_atomic(uint64_t) busy;      // workers that do not rest (X6); upper half: joins and stirs so far
    csched_atomic(uint32_t) sentry;    // 1 + the index of the sleeper with a timeout; 0: none
    csched_atomic(bool) crowded;       // threads outnumber CPUs, as far as workers can tell (W8)
    csched_atomic(bool) guarded;       // the watch is on guard (W9)
    csched_aligned_to_line csched_atomic(uint64_t) woken; // wake-ups sent, for the statistics
    csched_atomic(uint32_t) last; // 1 + the index of the worker that was woken last; 0: none
    csched_parker parkers[CSCHED_WORKERS_MAX];
} csched_idle;

void csched_idle_init(csched_idle *idle);

/// After operations were published to an inbox (seq_cst): wakes a sleeper unless there are already two
/// lookers, one of which may be the watch.
void csched_idle_after_submit(csched_idle *idle);

/// Whether any worker sleeps. Relaxed: a hint for csched_idle_after_push, which needs no more (W5).
static inline bool csched_idle_has_sleepers(const csched_idle *idle)
{
    uint64_t bits = 0;
    for (uint32_t word = 0; word < CSCHED_SLEEPER_WORDS; word++) {
        bits |= csched_load(&idle->sleepers[word], relaxed);
    }
    return bits != 0;
}

/// Called if there are sleepers, after a worker pushed onto its own deque, where `depth` operations now wait.
/// `stuck`: the worker has been in the same body for long, so it will not come back for them soon.
void csched_idle_after_push(csched_idle *idle, int64_t depth, bool stuck);

/// Wakes one sleeper, if any. Finishes the wake-up of another thread that has not completed it.
void csched_idle_wake_one(csched_idle *idle);
/// Wakes the worker, asleep or not yet.
void csched_idle_wake(csched_idle *idle, uint32_t worker);
void csched_idle_wake_all(csched_idle *idle);

/// Records, before a sleep, whether threads outnumber CPUs (W8).
void csched_idle_note_crowd(csched_idle *idle, bool crowded);

/// The value that csched_idle_note_crowd recorded last.
bool csched_idle_is_crowded(const csched_idle *idle);
/// The watch goes on guard, or off guard. True: it was on guard, so it must now check the inboxes, and wake a
/// sleeper for what waits there.
bool csched_idle_guard(csched_idle *idle, bool on);

/// Whether any worker sleeps. seq_cst.
bool csched_idle_has_sleepers_now(const csched_idle *idle);

/// A worker is counted as awake and busy from join to leave. `awake`: it is still counted as awake.
void csched_idle_join(csched_idle *idle);
void csched_idle_leave(csched_idle *idle, bool awake);
/// Counts one more worker as awake, in addition to one that has lost its seat, and does not know.
void csched_idle_count_awake(csched_idle *idle);

typedef enum {
    CSCHED_OTHERS_LOOK,  // or a worker was woken that will
    CSCHED_LAST_TO_LOOK, // except perhaps the sentry: the caller wakes a worker if the inboxes hold more
    CSCHED_ALL_AWAKE,    // no worker searches, and none sleeps: the caller arms the watch
} csched_after_search;

/// A worker begins to search for work; it has found some, or stops searching.
void csched_idle_search(csched_idle *idle);
csched_after_search csched_idle_found(csched_idle *idle);

/// A searching worker announces that it will sleep, and must check everything once more (seq_cst) before it
/// does. Returns how many other workers are awake.
uint32_t csched_idle_announce(csched_idle *idle, uint32_t worker);
/// The worker begins to rest: it sleeps outside any body, with nothing in its deque. stir ends that.
void csched_idle_rest(csched_idle *idle);
void csched_idle_stir(csched_idle *idle);
/// Whether all workers rest. `rest` identifies this period of rest.
bool csched_idle_is_quiet(const csched_idle *idle, uint64_t *rest);
/// Whether it is still the same period: no worker has stirred or joined since.
bool csched_idle_still_rests(const csched_idle *idle, uint64_t rest);
/// Becomes the sentry, if there is none.
bool csched_idle_become_sentry(csched_idle *idle, uint32_t worker);
/// Sleeps until woken, `timeout_ns` nanoseconds at most.
void csched_idle_sleep(csched_idle *idle, uint32_t worker, uint64_t timeout_ns);
/// The worker is awake again, and searching: after sleep, or instead of it. Returns whether it was woken.
bool csched_idle_rise(csched_idle *idle, uint32_t worker);

#endif
