// scheduler_internal.h - the parts of a scheduler. Comments on the fields state which threads may write them.

#ifndef CSCHEDULER_SCHEDULER_INTERNAL_H
#define CSCHEDULER_SCHEDULER_INTERNAL_H

#include <pthread.h>

#include "capacity.h"
#include "cscheduler/completion.h"
#include "cscheduler/scheduler.h"
#include "idle.h"
#include "observer.h"
#include "port.h"
#include "priority.h"
#include "reclaim.h"
#include "registry.h"
#include "watch.h"
#include "worker.h"

// control: flags below, the number of suspensions above. Read before every operation, written rarely.
#define CSCHED_CLOSING 1u    // no new inboxes
#define CSCHED_SEALED 2u     // every inbox is closed
#define CSCHED_CANCELLING 4u // operations that have not started are cancelled
#define CSCHED_STOPPED 8u    // nothing is left and nothing can arrive: workers exit
#define CSCHED_SUSPENSION 16u

struct csched_scheduler {
    // Read by every submission, written rarely.
    csched_aligned_to_line csched_atomic(uint32_t) control;
    csched_atomic(uint32_t) priorities; // N2: flags, see priority.h
    uint64_t id; // never reused, unlike an address; the registries use `id` and the two ids after it
    csched_capacity capacity;
    csched_registry registry[CSCHED_PRIORITIES];
    csched_atomic(csched_crew *) crew; // readers: RCU; written under `lifecycle`
    csched_atomic(csched_observer_snapshot *) observer;
    csched_atomic(bool) observed; // ever observed (O2)
    csched_atomic(void *) owner;
    void (*release_owner)(void *owner);
    void (*isolate)(void (*body)(void *context), void *context); // calls nested bodies; NULL: directly
    csched_atomic(struct csched_timers *) timers; // NULL until the first timer; written under `lifecycle`
    csched_reclaim *domain;
    csched_atomic(uint64_t) ran_in_callers; // operations, under CSCHED_WHEN_FULL_RUN_IN_CALLER
    char name[11];

    csched_idle idle;
    csched_watch watch;

    // Used only to create, resize, shut down and count: never on the path of an operation.
    csched_aligned_to_line pthread_mutex_t lifecycle;
    csched_atomic(uint32_t) size; // workers that are not about to leave
    csched_statistics of_gone;    // of workers that were removed
    uint32_t forks;               // of the process, when this was created
    pthread_mutex_t ending;       // serialises shutdowns, including their waits
    bool joined;
    csched_scheduler *next_alive; // all schedulers, for fork
    csched_scheduler *previous_alive;
};

/// Whether operations that have not started are to be cancelled.
static inline bool csched_is_cancelling(const csched_scheduler *scheduler)
{
    return (csched_load(&scheduler->control, relaxed) & CSCHED_CANCELLING) != 0;
}

static inline bool csched_is_suspended(uint32_t control) { return control >= CSCHED_SUSPENSION; }

/// Appends operations that have already entered their counters to the calling thread's inbox, not subject to
/// the capacity: for workers, and for timers. CSCHED_OK, CSCHED_OUT_OF_MEMORY or, on a thread that is not a
/// worker, CSCHED_CLOSED.
csched_status csched_submit_again(csched_scheduler *scheduler, const csched_operation *operations,
                                  size_t count, csched_priority priority);
/// Wakes a sleeper if any submitted operation waits, even if another worker is expected to take it, and
/// returns whether any waits. Called on a thread that is registered with RCU, outside its read sections.
/// O(inboxes).
bool csched_submit_wake_if_any_waits(csched_scheduler *scheduler);
/// The calling thread is no longer a worker: its inbox is closed if the scheduler is (U5).
void csched_submit_close_own(csched_scheduler *scheduler);

/// Under `lifecycle`: adds a worker without a seat. NULL: memory or threads are exhausted.
csched_worker *csched_scheduler_hire(csched_scheduler *scheduler, uint32_t index);
/// Under `lifecycle`: joins the workers whose threads have ended, and retires their memory.
void csched_scheduler_remove_ended(csched_scheduler *scheduler);

/// Starts a thread that blocks the process's signals, but not faults.
csched_status csched_create_thread(pthread_t *thread, void *(*body)(void *argument), void *argument);

#endif
