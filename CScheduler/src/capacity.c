// capacity.c - a bounded count; submitters that find it full may sleep.
//
//   K1  Operations subject to the limit never raise pending above it: the compare-exchange checks. Exempt
//       ones are counted as well, so that the worker that takes an operation need not know its kind.
//   K2  No lost wake-up: a sleeper reads room, announces itself in waiting, tries once more, then sleeps on
//       the value of room it read. A thread that lowers pending reads waiting afterwards, and, if a submitter
//       waits, changes room before it wakes. A close changes room as well.
//
// Orderings:
//   P18  enter: waiting, then pending <-> leave: pending, then waiting; all seq_cst. Either the second try
//        sees the room, or the thread that made it sees the sleeper.
//   P27  interrupt: room (release) -> enter: room (acquire). A submitter that sleeps on the new value has
//        seen why it changed: the scheduler is closed. A leave needs no release: a submitter that reads the
//        leave's new value before it counts itself in waiting is not the one that the leave saw waiting, and
//        then P18 shows it the free place.

#include "capacity.h"

void csched_capacity_init(csched_capacity *capacity, uint64_t limit, csched_when_full when_full)
{
    capacity->limit = limit;
    capacity->when_full = when_full;
    csched_init(&capacity->pending, 0);
    csched_init(&capacity->waiting, 0);
    csched_init(&capacity->room, 0);
}

bool csched_capacity_try_enter(csched_capacity *capacity, uint64_t count)
{
    uint64_t pending = csched_load(&capacity->pending, seq_cst); // P18
    do {
        if (count > capacity->limit || pending > capacity->limit - count) {
            return false;
        }
        // relaxed: being counted publishes nothing, and P18 is about the load above.
    } while (!csched_cas_weak(&capacity->pending, &pending, pending + count, relaxed, relaxed)); // K1
    return true;
}

void csched_capacity_enter_exempt(csched_capacity *capacity, uint64_t count)
{
    csched_fetch_add(&capacity->pending, count, relaxed);
}

bool csched_capacity_enter(csched_capacity *capacity, uint64_t count, const csched_atomic(uint32_t) *control,
                           uint32_t closed)
{
    for (;;) {
        uint32_t room = csched_load(&capacity->room, acquire); // P27
        csched_fetch_add(&capacity->waiting, 1, seq_cst);      // K2
        bool entered = csched_capacity_try_enter(capacity, count);
        bool refused = !entered && (csched_load(control, relaxed) & closed) != 0; // P27
        if (!entered && !refused) {
            (void)csched_futex_wait(&capacity->room, room, UINT64_MAX);
        }
        csched_fetch_sub(&capacity->waiting, 1, relaxed);
        if (entered || refused) {
            return entered;
        }
    }
}

void csched_capacity_leave(csched_capacity *capacity, uint64_t count)
{
    csched_fetch_sub(&capacity->pending, count, seq_cst);
    if (csched_load(&capacity->waiting, seq_cst) != 0) { // K2
        csched_fetch_add(&capacity->room, 1, relaxed);   // P18 has already shown the sleeper the place
        // One more than there are places: a woken thread may be stopped. A submitter that wants more places
        // than there are sleeps again, and is woken again, at the latest when nothing waits.
        csched_futex_wake(&capacity->room, count < INT32_MAX ? (int)count + 1 : INT32_MAX);
    }
}

void csched_capacity_interrupt(csched_capacity *capacity)
{
    csched_fetch_add(&capacity->room, 1, release); // P27
    csched_futex_wake(&capacity->room, INT32_MAX);
}
