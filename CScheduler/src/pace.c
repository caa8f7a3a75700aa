// pace.c - the price of a yield.
//
// A worker that has run dry yields before it looks, and a few times before it sleeps. Whoever feeds it gets
// on meanwhile: the worker finds many operations at once instead of one after the other, and nobody has to
// wake it. On a CPU of its own such a yield takes the time of a system call.
//
// Where threads outnumber CPUs a yield has a price that comes later: the kernel takes the slice of a thread
// that yields (EEVDF: its deadline moves by a slice, since Linux 6.18 its virtual run time, too), and a
// wake-up is served after those who slept instead. Where a search is followed by many operations, that is
// little for each. Where it is followed by one or two, as when event loops hand over requests, every few of
// them wait for milliseconds (measured with R4: 1.6 ms at p99 instead of 0.4). So a worker measures its
// yields. After a slow one, and few operations between searches, it looks once and sleeps: for
// CSCHED_HASTY_FIRST searches, then four times as many. Yields that are quick again halve that.
//
// Nothing but speed depends on it: what is announced before a sleep, and looked at after that, is in idle.c.

#include "pace.h"

#include "port.h"
#include "tuning.h"

enum { WEIGHT = 4, PARTS = 16 }; // of the latest in the average; of an operation

void csched_pace_init(csched_pace *pace) { *pace = (csched_pace){0}; }

static bool is_worthwhile(const csched_pace *pace) { return pace->average >= CSCHED_WORTHWHILE * PARTS; }

bool csched_pace_begin(csched_pace *pace, uint64_t executed)
{
    const uint64_t most = UINT64_C(16) * CSCHED_WORTHWHILE;
    uint64_t latest = executed - pace->executed < most ? executed - pace->executed : most;
    pace->executed = executed;
    pace->average = (pace->average * (WEIGHT - 1) + latest * PARTS) / WEIGHT;
    if (pace->hasty == 0 || is_worthwhile(pace)) {
        return true;
    }
    pace->hasty--;
    return false;
}

bool csched_pace_yield(csched_pace *pace, bool first)
{
    uint64_t start_ns = csched_now_ns();
    csched_yield();
    bool slow = csched_now_ns() - start_ns >= CSCHED_SLOW_YIELD_NS;
    if (slow && !is_worthwhile(pace)) {
        uint32_t more = pace->more * 4 < CSCHED_HASTY_MOST ? pace->more * 4 : CSCHED_HASTY_MOST;
        pace->hasty = pace->more = more > CSCHED_HASTY_FIRST ? more : CSCHED_HASTY_FIRST;
        return false;
    }
    if (first && !slow) {
        pace->more /= 2;
    }
    return true;
}
