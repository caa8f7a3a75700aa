// pace.c - the price of a yield.
//
// A worker that has run dry yields before it looks, unless its last look may have left operations, and a few
// times before it sleeps. Its submitter continues meanwhile, so the worker finds many operations at once
// instead of one after the other, and needs no wake-up. On a CPU without other threads such a yield costs a
// system call.
//
// When threads outnumber CPUs, a yield has a delayed cost: the kernel takes the slice of a thread that yields
// (EEVDF: its deadline moves by a slice, since Linux 6.18 its virtual run time, too). When the thread is
// woken next, it runs after threads that slept instead. If many operations follow a search, the cost of each
// is small. If one or two follow, as when event loops submit requests, one of every few requests waits for
// milliseconds. So a worker measures its yields. After a slow one, unless its runs between searches are long,
// it looks once and sleeps, for CSCHED_HASTY_FIRST searches that end in sleep; then for four times as many,
// CSCHED_HASTY_MOST at most. Each search whose first yield is quick halves that number. Work found at the
// single look belongs to the same run: a long run ends the haste.
//
// When operations take long, as request handlers do, no search yields. At best, a yield saves a sleep and a
// wake-up, which is little compared with one such operation, and next to nothing compared with several; and a
// crowd of requests waits for the lost slice. The time of a run occasionally includes slices of other
// threads, so most of the last runs have to be slow (CSCHED_SLOW_RUNS).
//
// If every system call takes as long as a slow yield, workers with short runs sleep at once. Only speed
// depends on any of this: the announcement before a sleep, and the checks after it, are in idle.c.

#include "pace.h"

#include "port.h"
#include "tuning.h"

enum { WEIGHT = 4, PARTS = 16 }; // of the latest run in the average; of an operation

void csched_pace_init(csched_pace *pace) { *pace = (csched_pace){0}; }

static bool is_worthwhile(const csched_pace *pace) { return pace->average >= CSCHED_WORTHWHILE * PARTS; }

static void note_run(csched_pace *pace, uint64_t done)
{
    const uint64_t most = UINT64_C(16) * CSCHED_WORTHWHILE;
    uint64_t run = done - pace->done < most ? done - pace->done : most;
    pace->done = done;
    pace->average = (pace->average * (WEIGHT - 1) + run * PARTS + WEIGHT - 1) / WEIGHT; // rounded up
}

static bool takes_long(const csched_pace *pace) { return pace->slow > CSCHED_SLOW_RUNS / 2; }

static void note_time(csched_pace *pace, uint64_t done, uint64_t now_ns)
{
    uint64_t run = done - pace->found;
    if (now_ns - pace->found_ns < run * CSCHED_SLOW_OPERATION_NS) {
        pace->slow -= pace->slow > 0;
    } else if (run != 0) {
        pace->slow += pace->slow < CSCHED_SLOW_RUNS;
    }
    pace->found = done;
    pace->found_ns = now_ns;
}

bool csched_pace_begin(csched_pace *pace, uint64_t done)
{
    note_time(pace, done, csched_now_ns());
    if (pace->hasty != 0 && done - pace->done < CSCHED_WORTHWHILE * WEIGHT) {
        return false;
    }
    pace->hasty = 0;
    note_run(pace, done);
    return !takes_long(pace);
}

void csched_pace_sleep(csched_pace *pace, uint64_t done)
{
    if (pace->hasty != 0) {
        note_run(pace, done);
        pace->hasty = is_worthwhile(pace) ? 0 : pace->hasty - 1;
    }
}

bool csched_pace_yield(csched_pace *pace, bool first)
{
    uint64_t start_ns = csched_now_ns();
    csched_yield();
    pace->found_ns = csched_now_ns();
    bool slow = pace->found_ns - start_ns >= CSCHED_SLOW_YIELD_NS;
    if (slow && !is_worthwhile(pace)) {
        uint32_t more = pace->more * 4 < CSCHED_HASTY_MOST ? pace->more * 4 : CSCHED_HASTY_MOST;
        pace->more = more > CSCHED_HASTY_FIRST ? more : CSCHED_HASTY_FIRST;
        pace->hasty = pace->more + 1; // this one ends in sleep, too
        return false;
    }
    if (first && !slow) {
        pace->more /= 2;
    }
    return true;
}

void csched_pace_wake(csched_pace *pace, uint64_t now_ns) { pace->found_ns = now_ns; }
