// observer.c - the observer: kept in an RCU snapshot, and called outside every read section.
//
//   O1  The scheduler holds one reference to a snapshot, and so does every call in progress. A call takes its
//       reference inside a read section, where a published snapshot cannot be freed, and only if the count is
//       not zero (it never rises from zero).
//   O2  The last reference retires the snapshot; its release function runs after the grace period, on the
//       thread that frees the snapshot. Destroying a scheduler that was ever observed waits for this: no
//       release function is called later.

#include "observer.h"

#include "scheduler_internal.h"

struct csched_observer_snapshot {
    csched_retired retired;
    csched_observer observer;
    csched_atomic(uint32_t) references;
};

static void free_snapshot(csched_retired *object)
{
    csched_observer_snapshot *snapshot = (csched_observer_snapshot *)(void *)object;
    if (snapshot->observer.release != NULL) {
        snapshot->observer.release(snapshot->observer.context);
    }
    csched_free(snapshot);
}

static void unreference(csched_scheduler *scheduler, csched_observer_snapshot *snapshot)
{
    if (snapshot != NULL && csched_fetch_sub(&snapshot->references, 1, acq_rel) == 1) {
        csched_reclaim_retire(scheduler->domain, &snapshot->retired, free_snapshot); // O2
    }
}

static csched_observer_snapshot *reference(csched_scheduler *scheduler)
{
    csched_reclaim_enter();
    csched_observer_snapshot *snapshot = csched_load(&scheduler->observer, acquire);
    if (snapshot != NULL) {
        uint32_t references = csched_load(&snapshot->references, relaxed);
        do {
            if (references == 0) { // replaced just now, and its last call has ended
                snapshot = NULL;
                break;
            }
            // O1
        } while (!csched_cas_weak(&snapshot->references, &references, references + 1, relaxed, relaxed));
    }
    csched_reclaim_exit();
    return snapshot;
}

void csched_observer_notify(csched_scheduler *scheduler, csched_event event, uint32_t worker)
{
    if (csched_likely(csched_load(&scheduler->observer, relaxed) == NULL)) {
        return;
    }
    csched_observer_snapshot *snapshot = reference(scheduler);
    if (snapshot != NULL) {
        snapshot->observer.notify(snapshot->observer.context, event, worker);
        unreference(scheduler, snapshot);
    }
}

csched_status csched_scheduler_observe(csched_scheduler *scheduler, const csched_observer *observer)
{
    csched_observer_snapshot *snapshot = NULL;
    if (observer != NULL) {
        snapshot = csched_allocate(sizeof *snapshot, 0);
        if (snapshot == NULL) {
            return CSCHED_OUT_OF_MEMORY;
        }
        snapshot->observer = *observer;
        csched_init(&snapshot->references, 1);
    }
    csched_store(&scheduler->observed, true, relaxed);
    unreference(scheduler, csched_exchange(&scheduler->observer, snapshot, acq_rel));
    return CSCHED_OK;
}

void csched_observer_dispose(csched_scheduler *scheduler)
{
    unreference(scheduler, csched_load(&scheduler->observer, relaxed)); // no other thread uses the scheduler
    if (csched_load(&scheduler->observed, relaxed)) {
        csched_reclaim_flush(); // O2
    }
}
