// inspection.c - the state of a scheduler, read like the statistics: `lifecycle` protects the crew, a read
// section the inboxes.

#include "cscheduler/inspection.h"

#include "scheduler_internal.h"
#include "timer.h"

static uint64_t depth(const csched_deque *deque)
{
    int64_t number = csched_load(&deque->bottom, relaxed) - csched_load(&deque->top, relaxed);
    return number > 0 ? (uint64_t)number : 0; // the two were read one after the other
}

static csched_worker_activity activity(const csched_worker *worker, uint32_t seat, int32_t kernel_id)
{
    bool sleeps = kernel_id != 0 && csched_thread_sleeps(kernel_id);
    if (csched_load(&worker->running, relaxed) != 0) {
        bool announced = csched_is_seated(seat) && (seat & CSCHED_SEAT_ANNOUNCED) != 0;
        return sleeps || announced ? CSCHED_WORKER_BLOCKS : CSCHED_WORKER_RUNS;
    }
    if (!csched_is_seated(seat)) {
        return CSCHED_WORKER_RESERVED;
    }
    return sleeps ? CSCHED_WORKER_SLEEPS : CSCHED_WORKER_SEARCHES;
}

static csched_worker_state state_of(const csched_worker *worker)
{
    uint32_t seat = csched_load(&worker->seat, relaxed);
    int32_t kernel_id = csched_load(&worker->kernel_id, relaxed);
    csched_worker_state state = {
        .index = worker->index,
        .kernel_id = kernel_id,
        .activity = activity(worker, seat, kernel_id),
        .replaced = csched_load(&worker->running, relaxed) != 0 && !csched_is_seated(seat),
        .executed = csched_load(&worker->executed, relaxed),
        .stolen = csched_load(&worker->stolen, relaxed),
        .parked = csched_load(&worker->parked, relaxed),
    };
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        state.waiting[priority] = depth(&worker->deque[priority]);
    }
    return state;
}

void csched_scheduler_inspect(csched_scheduler *scheduler, csched_scheduler_state *state,
                              csched_worker_state *workers, uint32_t room)
{
    uint32_t control = csched_load(&scheduler->control, relaxed);
    *state = (csched_scheduler_state){
        .id = scheduler->id,
        .suspended = csched_is_suspended(control),
        .closing = (control & CSCHED_CLOSING) != 0,
        .next_wake_ns = csched_timers_next_wake(csched_load(&scheduler->timers, acquire)),
    };
    (void)snprintf(state->name, sizeof state->name, "%s", scheduler->name);
    pthread_mutex_lock(&scheduler->lifecycle);
    const csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    state->threads = crew->count;
    for (uint32_t position = 0; workers != NULL && position < crew->count && position < room; position++) {
        workers[position] = state_of(crew->workers[position]);
    }
    bool reader = csched_worker_self() != NULL;
    if (!reader) {
        csched_reclaim_join();
    }
    csched_reclaim_enter();
    for (uint32_t priority = 0; priority < CSCHED_PRIORITIES; priority++) {
        state->waiting[priority] = csched_registry_waiting(&scheduler->registry[priority]);
        state->appended[priority] = csched_registry_appended(&scheduler->registry[priority]);
    }
    csched_reclaim_exit();
    if (!reader) {
        csched_reclaim_leave();
    }
    pthread_mutex_unlock(&scheduler->lifecycle);
}
