// priority.c - operations that do not wait in turn: those of high and of background priority.
//
//   N1  Operations of such a priority have separate queues: for each priority, a deque of each worker and an
//       inbox of each thread. None of them is ever in a queue of the default priority: a worker puts back
//       there only what it took from there. So no operation carries its priority, and operations of default
//       priority pay only for a load.
//   N2  A flag says that operations of the priority may wait. The publishing thread raises it, unless it is
//       up. A worker that finds nothing lowers it, then checks all queues once more, and raises it again if
//       it finds something. So while an operation waits, the flag is up, or a thread is about to raise it: a
//       submitter before it returns, or a worker that checks. If that thread is stopped, the next worker that
//       checks before it sleeps raises the flag.
//   N3  A worker passes the gate (X3) and pays its debt (X2) before it takes such an operation: the operation
//       is then run, and never put back, which would lose its priority.
//   N4  Shares. High priority is checked before every operation; after CSCHED_HIGH_MOST of it in a row there
//       is a fair turn (X4). The background is checked when a worker finds nothing else, and at a fair turn
//       if the next one would come more than CSCHED_FAIR_MOST operations after its last share. So a worker
//       that runs n operations while some of each priority wait has run at least n / CSCHED_FAIR_MOST of the
//       background, and at least as many of the default. A turn that is reported as void does not count as a
//       share: a fair turn follows. So void operations do not delay those behind them.
//   N5  An operation that a body submits has the body's priority, unless another one is given. The second
//       branch of a join has it, too, and the join looks for that branch only in the deque of this priority.
//   N6  A lone operation of high priority in the deque of a running worker is that worker's next step, except
//       for a fair turn before it, and W5 holds: a push wakes workers as one of the default priority does,
//       thieves leave the operation, and the sentry looks for it. In the background the next step may be
//       another operation. So a lone one counts as if it were in an inbox, and a push wakes as a submission
//       from outside does (W1).
//
// Orderings:
//   P46  raise: publication, then a look at the flag <-> lower: the flag, then the queues; all seq_cst, for a
//        push by a fence. At least one of the two sees the other (N2).
//   P47  use: USED, then the publication, then the idle words <-> a worker that falls asleep: idle words,
//        then USED, then the queues; all seq_cst. So queues that were never used need not be checked (W1).

#include "priority.h"

#include "scheduler_internal.h"

void csched_priority_use(csched_scheduler *scheduler, csched_priority priority)
{
    if ((csched_load(&scheduler->priorities, seq_cst) & CSCHED_USED(priority)) == 0) { // P47
        csched_fetch_or(&scheduler->priorities, CSCHED_USED(priority), seq_cst);       // P47
    }
}

void csched_priority_raise(csched_scheduler *scheduler, csched_priority priority)
{
    if ((csched_load(&scheduler->priorities, seq_cst) & CSCHED_WAITS(priority)) == 0) { // P46
        // relaxed: if a `lower` changes the word after this, the load saw it as it was before that (P46).
        csched_fetch_or(&scheduler->priorities, CSCHED_WAITS(priority), relaxed);
    }
}

// `lone`: also counts a lone operation that is left to its worker (N6).
static bool waits(const csched_scheduler *scheduler, uint32_t priority, bool lone)
{
    bool found = !csched_registry_is_empty(&scheduler->registry[priority]); // P46
    const csched_crew *crew = csched_load(&scheduler->crew, acquire);
    for (uint32_t position = 0; !found && position < crew->count; position++) {
        const csched_worker *worker = crew->workers[position];
        int64_t depth = csched_deque_depth(&worker->deque[priority]); // P46
        found = depth > 1 || (depth == 1 && (lone || csched_worker_is_away(worker)));
    }
    return found;
}

void csched_priority_lower(csched_scheduler *scheduler, csched_priority priority)
{
    csched_reclaim_enter();
    bool found = waits(scheduler, priority, true); // often a lone one, which is left to another worker
    if (!found) {
        csched_fetch_and(&scheduler->priorities, ~CSCHED_WAITS(priority), seq_cst); // P46
        found = waits(scheduler, priority, true);
    }
    csched_reclaim_exit();
    if (found) {
        csched_priority_raise(scheduler, priority);
    }
}

bool csched_priority_any_waits(csched_scheduler *scheduler, bool lone)
{
    uint32_t flags = csched_load(&scheduler->priorities, seq_cst); // P47
    bool any = false;
    for (csched_priority priority = CSCHED_PRIORITY_HIGH; priority < CSCHED_PRIORITIES; priority++) {
        if (csched_unlikely((flags & CSCHED_USED(priority)) != 0) && waits(scheduler, priority, true)) {
            csched_priority_raise(scheduler, priority); // N2
            // N6
            any = any || lone || priority != CSCHED_PRIORITY_HIGH || waits(scheduler, priority, false);
        }
    }
    return any;
}
