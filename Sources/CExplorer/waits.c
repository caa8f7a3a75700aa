// waits.c - futexes, yields, time and mutexes.

#include "execution.h"
#include "heap.h"
#include "memory.h"

enum { TIME_OF_A_LOOK_NS = 1000 };
// A thread that yields may still continue at once, so that outrunning other threads takes no departure. But
// this many yields in a row let other threads run first.
enum { YIELDS_MOST = 3 };

bool explorer_futex_wait(const explorer_site *site, const void *word, uint32_t value, uint64_t timeout_ns)
{
    if (!explorer_step(site)) {
        explorer_fail("a wait outside of all threads, at %s:%d", explorer_file_name(site->file), site->line);
    }
    if (!explorer_heap_is_live(word, sizeof value)) {
        explorer_fail_at(site, "a wait on freed memory (R3)");
    }
    if ((uint32_t)explorer_word_at(word, sizeof value) != value) {
        explorer_note(site, "the value has changed");
        return true;
    }
    if (timeout_ns == 0) {
        explorer_note(site, "no time");
        return false;
    }
    if (explorer_fails_here()) {
        explorer_note(site, "returns without a reason");
        return true;
    }
    explorer_note(site, "sleeps");
    explorer_wait_on(word, timeout_ns == UINT64_MAX ? UINT64_MAX : explorer_engine.now_ns + timeout_ns);
    bool timed_out = explorer_engine.threads[explorer_engine.self].timed_out;
    explorer_note(site, timed_out ? "timed out" : "woken");
    return !timed_out;
}

void explorer_futex_wake(const explorer_site *site, const void *word, int count)
{
    if (explorer_step(site)) {
        int woken = explorer_wake(word, count);
        explorer_note(site, "wakes %d", woken);
    }
}

void explorer_yield(const explorer_site *site)
{
    if (explorer_engine.self >= 0) {
        thread *self = &explorer_engine.threads[explorer_engine.self];
        self->yields = ++self->yielded >= YIELDS_MOST;
        (void)explorer_step(site);
        explorer_note(site, "%s", "");
    }
}

void explorer_settle(const explorer_site *site)
{
    if (explorer_engine.self >= 0) {
        explorer_engine.threads[explorer_engine.self].settles = true;
        (void)explorer_step(site);
        explorer_note(site, "%s", "");
    }
}

void explorer_calm(bool calm) { explorer_engine.calm = calm; }

void explorer_stop_time(bool stopped) { explorer_engine.timeless = stopped; }

bool explorer_freezes(void) { return explorer_engine.options->schedule.frozen != 0; }

void explorer_daemon(int number) { explorer_engine.threads[number].daemon = true; }

uint64_t explorer_now_ns(void) { return explorer_engine.now_ns += TIME_OF_A_LOOK_NS; }

// MARK: Mutexes

// The thread that owns the mutex, counted from 1; 0: it is free.
static uint64_t owner_of(const explorer_site *site, const void *word)
{
    explorer_check_address(site, word, sizeof(uint32_t));
    uint64_t owner = explorer_word_at(word, sizeof(uint32_t));
    if (owner > EXPLORER_THREADS) {
        explorer_fail_at(site, "a mutex that was not initialised (R3)");
    }
    return owner;
}

static void take_mutex(const explorer_site *site, void *word)
{
    explorer_memory_modify(explorer_engine.self, word, sizeof(uint32_t), (uint64_t)explorer_engine.self + 1,
                           explorer_acquire);
    explorer_forget_looks();
    explorer_note(site, "locked");
}

void explorer_lock(const explorer_site *site, void *word)
{
    if (!explorer_step(site)) {
        return;
    }
    if (owner_of(site, word) == (uint64_t)explorer_engine.self + 1) {
        explorer_fail_at(site, "a mutex is locked by the thread that has it (S3)");
    }
    for (uint64_t owner; (owner = owner_of(site, word)) != 0;) {
        explorer_note(site, "waits for %s", explorer_engine.threads[owner - 1].name);
        explorer_wait_on(word, UINT64_MAX);
    }
    take_mutex(site, word);
}

bool explorer_try_lock(const explorer_site *site, void *word)
{
    if (!explorer_step(site)) {
        return true;
    }
    uint64_t owner = owner_of(site, word);
    if (owner != 0) {
        explorer_note_look(site, word, owner);
        explorer_note(site, "fails, %s has it", explorer_engine.threads[owner - 1].name);
        return false;
    }
    take_mutex(site, word);
    return true;
}

void explorer_unlock(const explorer_site *site, void *word)
{
    if (!explorer_step(site)) {
        return;
    }
    uint64_t owner = owner_of(site, word);
    if (owner != (uint64_t)explorer_engine.self + 1) {
        explorer_fail_at(site, owner == 0 ? "a mutex is unlocked that nobody has (R3)"
                                          : "a mutex is unlocked that another thread has (R3)");
    }
    explorer_memory_store(explorer_engine.self, word, sizeof(uint32_t), 0, explorer_release);
    explorer_forget_looks();
    (void)explorer_wake(word, EXPLORER_THREADS);
    explorer_note(site, "unlocked");
}
