// idle.c - sleeping and waking without a lost wake-up, without a thundering herd, and without trusting a
// thread that may be stopped.
//
//   W1  No lost wake-up from outside. A submitter publishes, then reads searching, sentry and sleepers. A
//       worker takes itself out of searching and sets its bit in sleepers, then checks every inbox. All these
//       accesses are seq_cst. In the one total order either the publication comes before the worker's look,
//       which finds it, or the worker's steps come before the submitter's reads, which find the sleeper.
//   W2  A submitter relies on lookers only if there are two (searching workers, the sentry; W9: the watch):
//       so nothing ever depends on a single thread, which may be stopped.
//   W3  Any thread may finish a wake-up. A sleeper's state goes AWAKE, SLEEPING, NOTIFIED (it is to wake),
//       KICKED (the futex call is done), each step by a compare-exchange that identifies the sleep by its
//       epoch. A submitter that finds NOTIFIED repeats the futex call, because the notifying thread may be
//       stopped before it; a sleeper that is NOTIFIED or KICKED counts as a looker.
//   W4  A worker is counted as a looker once or not at all, never twice: it leaves searching before it sets
//       its bit; later it clears its bit, then resets its state, then counts itself as searching. Counting
//       too few costs a needless wake-up; counting too many would lose one. The bit is cleared before the
//       state is reset, so that a worker stopped in between is not chosen again. So a stopped worker absorbs
//       at most one wake-up, and the next submission wakes another worker.
//   W5  A busy worker is looked after. A lone operation in a busy worker's deque is its own next step: waking
//       a thief for it would only move it to another CPU. So a push of one operation wakes no worker while
//       there is a looker. Instead one sleeper, the sentry, sleeps with a timeout while any worker is awake,
//       and takes a lone operation whose owner has not come back for it. The last looker, when it stops
//       looking while other workers are awake, wakes the next one (csched_idle_found). So "a looker exists",
//       once read by a pusher, stays true until one has looked. If there is a sentry, or no other worker is
//       awake, it instead checks whether the inboxes hold more operations, which may have counted on it, and
//       wakes a worker if they do.
//   W6  The sentry sleeps without a timeout only when no other worker is awake: an idle scheduler never
//       causes a wake-up.
//   W8  While CPUs are free, the lowest sleeper is woken: a few workers stay warm, and the others stay
//       asleep. When threads outnumber CPUs, and a worker's runs are short or its operations long (pace.c),
//       the two lowest of a word take turns: a thread stays on the CPU where it ran last, and the kernel
//       counts its time against it, so a worker that did all the work would wait behind other threads on its
//       CPU while the other CPU idles (measured with R4). Slow operations always count as a crowd. The flag
//       affects only the choice among sleepers, and W9, which holds without a crowd as well.
//   W9  In a crowd (W8) one looker is enough while the watch is on guard: the watch looks again until nothing
//       waits, and is the second looker. The first one must be a worker that searches, or was woken to
//       search: the sentry and the watch look only when their timeouts expire. (When threads wait for CPUs, a
//       second worker takes a CPU from the submitter, and finds nothing: with R4, that cost a third of all
//       wake-ups and 6 % of the requests.)
//
// Orderings:
//   P13  unpark: state (release) -> sleep: state (acquire). Publishes the waker's earlier writes.
//   P14  announce: searching, sleepers <-> after_submit: searching, sentry, sleepers. W1, seq_cst; partner
//        P7.
//   P15  found: searching, then sentry, awake, sleepers. W5; the pusher needs no fence, because this wakes a
//        worker regardless of the pusher.
//   P54  guard: off, then the inboxes <-> after_submit: the publication, then guarded. W9, seq_cst.
//
// Sources: the Go scheduler's spinning workers and tokio's idle set, both of which trust one searcher;
// eventcounts.

#include "idle.h"

#include "cscheduler/completion.h"
#include "recorder.h"

// state = epoch * 4 + one of these; the epoch grows by one with every rise.
enum { AWAKE, SLEEPING, NOTIFIED, KICKED, CODES };

// In `busy`: one more busy worker, and one more start. The upper half may overflow.
static const uint64_t busy_anew = (UINT64_C(1) << 32) + 1;

void csched_idle_init(csched_idle *idle)
{
    for (uint32_t word = 0; word < CSCHED_SLEEPER_WORDS; word++) {
        csched_init(&idle->sleepers[word], 0);
    }
    csched_init(&idle->searching, 0);
    csched_init(&idle->awake, 0);
    csched_init(&idle->busy, 0);
    csched_init(&idle->sentry, 0);
    csched_init(&idle->crowded, false);
    csched_init(&idle->guarded, false);
    csched_init(&idle->woken, 0);
    csched_init(&idle->last, 0);
    for (uint32_t worker = 0; worker < CSCHED_WORKERS_MAX; worker++) {
        csched_init(&idle->parkers[worker].state, AWAKE);
    }
}

static uint64_t bit(uint32_t worker) { return UINT64_C(1) << (worker % 64); }

static uint32_t with_code(uint32_t state, uint32_t code) { return state - state % CODES + code; }

// W3. False: another thread wakes the worker, or has woken it, in this sleep.
static bool unpark(csched_idle *idle, uint32_t worker)
{
    csched_atomic(uint32_t) *parker = &idle->parkers[worker].state;
    uint32_t state = csched_load(parker, seq_cst); // P14
    uint32_t notified;
    do {
        if (state % CODES == KICKED) {
            return false;
        }
        notified = with_code(state, NOTIFIED);
        // relaxed on failure: the value is no older than the one read above.
    } while (state != notified && !csched_cas_weak(parker, &state, notified, seq_cst, relaxed)); // P13
    bool first = state != notified;
    csched_store(&idle->last, worker + 1, relaxed); // W8
    if (state % CODES != AWAKE) {                   // still awake: it sees the state before it sleeps
        csched_futex_wake(parker, 1);
    }
    uint32_t expected = notified;
    if (csched_cas(parker, &expected, with_code(notified, KICKED), seq_cst, relaxed)) {
        csched_note(CSCHED_RECORDED_WAKE, worker);
        csched_fetch_add(&idle->woken, 1, relaxed);
    }
    // The worker is counted as kicked now (W4). It may be the sentry of a later sleep already: no harm (W5).
    uint32_t sentry = worker + 1;
    (void)csched_cas(&idle->sentry, &sentry, 0, seq_cst, relaxed);
    return first;
}

// W8: the lowest sleeper of the word. In a crowd, first the worker woken last while it has not risen yet, so
// that it is counted; if that worker is the lowest, and sleeps again, the second lowest.
static uint32_t choose(const csched_idle *idle, uint32_t word, uint64_t bits)
{
    uint32_t lowest = word * 64 + (uint32_t)__builtin_ctzll(bits);
    if (!csched_load(&idle->crowded, relaxed)) {
        return lowest;
    }
    uint32_t last = csched_load(&idle->last, relaxed) - 1;
    if (last / 64 == word && (bits & bit(last)) != 0 &&
        csched_load(&idle->parkers[last].state, relaxed) % CODES > SLEEPING) {
        return last;
    }
    uint64_t others = bits & (bits - 1);
    return last == lowest && others != 0 ? word * 64 + (uint32_t)__builtin_ctzll(others) : lowest;
}

// Wakes one sleeper unless `lookers`, plus the sleepers that other threads are waking, reach `enough`.
// `sentry`: 1 + the index of a sleeper that is already counted in `lookers`.
static void wake(csched_idle *idle, uint32_t lookers, uint32_t sentry, uint32_t enough)
{
    for (uint32_t word = 0; word < CSCHED_SLEEPER_WORDS; word++) {
        uint64_t bits = csched_load(&idle->sleepers[word], seq_cst); // P14
        uint32_t worker;
        for (; bits != 0; bits &= ~bit(worker)) {
            worker = choose(idle, word, bits);
            if (lookers >= enough || unpark(idle, worker)) {
                return;
            }
            lookers += worker + 1 != sentry; // W4
        }
    }
}

void csched_idle_wake_one(csched_idle *idle) { wake(idle, 0, 0, UINT32_MAX); }

void csched_idle_wake(csched_idle *idle, uint32_t worker) { (void)unpark(idle, worker); }

void csched_idle_wake_all(csched_idle *idle)
{
    for (uint32_t word = 0; word < CSCHED_SLEEPER_WORDS; word++) {
        for (uint64_t bits = csched_load(&idle->sleepers[word], seq_cst); bits != 0; bits &= bits - 1) {
            (void)unpark(idle, word * 64 + (uint32_t)__builtin_ctzll(bits));
        }
    }
}

void csched_idle_after_submit(csched_idle *idle)
{
    uint32_t lookers = csched_load(&idle->searching, seq_cst); // P14
    if (csched_load(&idle->guarded, seq_cst)) {                // P54
        wake(idle, lookers, 0, 1);                             // W9
        return;
    }
    uint32_t sentry = lookers < 2 ? csched_load(&idle->sentry, seq_cst) : 0;
    wake(idle, lookers + (sentry != 0), sentry, 2); // W2
}

void csched_idle_after_push(csched_idle *idle, int64_t depth, bool stuck)
{
    if (csched_load(&idle->searching, relaxed) > 0) {
        return; // W5
    }
    if (depth > 1 || stuck || csched_load(&idle->sentry, relaxed) == 0) {
        csched_idle_wake_one(idle);
    }
}

void csched_idle_join(csched_idle *idle)
{
    csched_fetch_add(&idle->busy, busy_anew, seq_cst);
    csched_fetch_add(&idle->awake, 1, seq_cst);
}

void csched_idle_leave(csched_idle *idle, bool awake)
{
    if (awake) {
        csched_fetch_sub(&idle->awake, 1, seq_cst);
    }
    csched_fetch_sub(&idle->busy, 1, seq_cst);
}

void csched_idle_count_awake(csched_idle *idle) { csched_fetch_add(&idle->awake, 1, seq_cst); }

void csched_idle_note_crowd(csched_idle *idle, bool crowded)
{
    if (csched_load(&idle->crowded, relaxed) != crowded) {
        csched_store(&idle->crowded, crowded, relaxed);
    }
}

bool csched_idle_is_crowded(const csched_idle *idle) { return csched_load(&idle->crowded, relaxed); }

bool csched_idle_guard(csched_idle *idle, bool on)
{
    bool was_on = csched_load(&idle->guarded, relaxed); // only the watch writes it
    csched_store(&idle->guarded, on, seq_cst);          // P54
    return was_on;
}

bool csched_idle_has_sleepers_now(const csched_idle *idle)
{
    uint64_t bits = 0;
    for (uint32_t word = 0; word < CSCHED_SLEEPER_WORDS; word++) {
        bits |= csched_load(&idle->sleepers[word], seq_cst); // P28
    }
    return bits != 0;
}

void csched_idle_search(csched_idle *idle) { csched_fetch_add(&idle->searching, 1, seq_cst); }

csched_after_search csched_idle_found(csched_idle *idle)
{
    uint32_t others = csched_fetch_sub(&idle->searching, 1, seq_cst) - 1; // P15
    if (others != 0) {
        return CSCHED_OTHERS_LOOK;
    }
    if (!csched_idle_has_sleepers_now(idle)) { // P28
        return CSCHED_ALL_AWAKE;
    }
    if (csched_load(&idle->sentry, seq_cst) != 0 || csched_load(&idle->awake, seq_cst) == 1) {
        return CSCHED_LAST_TO_LOOK;
    }
    csched_idle_wake_one(idle); // W5
    return CSCHED_OTHERS_LOOK;
}

uint32_t csched_idle_announce(csched_idle *idle, uint32_t worker)
{
    csched_fetch_sub(&idle->searching, 1, seq_cst); // W4: before its bit, which may be kicked
    csched_fetch_or(&idle->sleepers[worker / 64], bit(worker), seq_cst); // P14
    return csched_fetch_sub(&idle->awake, 1, seq_cst) - 1;
}

void csched_idle_rest(csched_idle *idle) { csched_fetch_sub(&idle->busy, 1, seq_cst); }

void csched_idle_stir(csched_idle *idle) { csched_fetch_add(&idle->busy, busy_anew, seq_cst); }

// A single word: if there were two, read one after the other, each could be zero when read, while a worker
// moves from one to the other.
bool csched_idle_is_quiet(const csched_idle *idle, uint64_t *rest)
{
    *rest = csched_load(&idle->busy, seq_cst); // P59
    return (uint32_t)*rest == 0;
}

bool csched_idle_still_rests(const csched_idle *idle, uint64_t rest)
{
    return csched_load(&idle->busy, seq_cst) == rest;
}

bool csched_idle_become_sentry(csched_idle *idle, uint32_t worker)
{
    uint32_t none = 0;
    return csched_cas(&idle->sentry, &none, worker + 1, seq_cst, relaxed);
}

void csched_idle_sleep(csched_idle *idle, uint32_t worker, uint64_t timeout_ns)
{
    csched_atomic(uint32_t) *parker = &idle->parkers[worker].state;
    uint32_t state = csched_load(parker, relaxed); // only wakers change it; the exchange detects that
    uint32_t sleeping = with_code(state, SLEEPING);
    if (state % CODES != AWAKE || !csched_cas(parker, &state, sleeping, seq_cst, relaxed)) {
        return;
    }
    // A signal ends a wait early; restarting the wait must not extend it.
    uint64_t deadline_ns = timeout_ns == CSCHED_FOREVER ? timeout_ns : csched_now_ns() + timeout_ns;
    while (csched_futex_wait(parker, sleeping, timeout_ns) && csched_load(parker, relaxed) == sleeping) {
        if (deadline_ns != CSCHED_FOREVER) {
            uint64_t now = csched_now_ns();
            timeout_ns = now < deadline_ns ? deadline_ns - now : 0;
        }
    }
}

bool csched_idle_rise(csched_idle *idle, uint32_t worker)
{
    csched_fetch_and(&idle->sleepers[worker / 64], ~bit(worker), seq_cst); // W4
    csched_atomic(uint32_t) *parker = &idle->parkers[worker].state;
    uint32_t state = csched_load(parker, relaxed);
    uint32_t next;
    do {
        next = with_code(state + CODES, AWAKE);
    } while (!csched_cas_weak(parker, &state, next, seq_cst, relaxed)); // P13
    uint32_t sentry = worker + 1;
    (void)csched_cas(&idle->sentry, &sentry, 0, seq_cst, relaxed);
    csched_fetch_add(&idle->searching, 1, seq_cst); // W4
    csched_fetch_add(&idle->awake, 1, seq_cst);
    return state % CODES == NOTIFIED || state % CODES == KICKED;
}
