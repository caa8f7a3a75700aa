#include <scheduler.c>

#include "scenario.h"

void scheduler_model_begin(void)
{
    alive = NULL;
    pthread_mutex_init(&alive_mutex, NULL);
}

const char *scheduler_model_name(const csched_scheduler *scheduler)
{
    return memchr(scheduler->name, '\0', sizeof scheduler->name) != NULL ? scheduler->name
                                                                         : "a name without an end";
}

bool scheduler_model_is_suspended(csched_scheduler *scheduler)
{
    return csched_is_suspended(csched_load(&scheduler->control, seq_cst));
}

uint32_t scheduler_model_worker(void) { return csched_worker_self()->index; }

bool scheduler_model_has_stopped(csched_scheduler *scheduler)
{
    return (csched_load(&scheduler->control, seq_cst) & CSCHED_STOPPED) != 0;
}

void scheduler_model_suspend_often(csched_scheduler *scheduler)
{
    csched_fetch_add(&scheduler->control, (UINT32_MAX / CSCHED_SUSPENSION - 1) * CSCHED_SUSPENSION, seq_cst);
}

// Z1
static bool seats_are_right(const csched_scheduler *scheduler)
{
    const csched_crew *crew = csched_load(&scheduler->crew, relaxed);
    uint32_t seated = 0;
    for (uint32_t position = 0; position < crew->count; position++) {
        uint32_t seat = csched_load(&crew->workers[position]->seat, seq_cst);
        if (csched_is_seated(seat) && (seat & CSCHED_SEAT_LEAVING) == 0) {
            seated++;
            for (uint32_t other = 0; other < position; other++) {
                uint32_t taken = csched_load(&crew->workers[other]->seat, seq_cst);
                if (taken >> CSCHED_SEAT_SHIFT == seat >> CSCHED_SEAT_SHIFT) {
                    return false;
                }
            }
        }
    }
    return seated <= csched_load(&scheduler->size, relaxed);
}

bool scheduler_model_is_crowded(csched_scheduler *scheduler)
{
    return csched_load(&scheduler->idle.crowded, seq_cst);
}

void scheduler_model_end_crowd(csched_scheduler *scheduler)
{
    csched_idle_note_crowd(&scheduler->idle, false);
}

const char *scheduler_model_at_rest(csched_scheduler *scheduler)
{
    const csched_idle *idle = &scheduler->idle;
    const csched_capacity *capacity = &scheduler->capacity;
    csched_statistics sum = csched_scheduler_statistics(scheduler);
    const struct {
        bool holds;
        const char *otherwise;
    } expectations[] = {
        {csched_load(&idle->searching, seq_cst) == 0, "workers are counted as looking (S17)"},
        {csched_load(&idle->awake, seq_cst) == 0, "workers are counted as awake (S17)"},
        {(uint32_t)csched_load(&idle->busy, seq_cst) == 0, "workers are counted as inside a body (S13)"},
        {csched_load(&capacity->pending, seq_cst) == 0, "places are taken (S6)"},
        {csched_load(&capacity->waiting, seq_cst) == 0, "submitters are counted as waiting (S6)"},
        {sum.submitted == sum.executed + sum.cancelled, "the statistics do not add up (S6)"},
        {sum.workers > 1 || csched_load(&idle->sentry, seq_cst) == 0, "it looks after itself, asleep (W6)"},
        {seats_are_right(scheduler), "two have the same seat, or one that is none (Z1)"},
        {sum.running == 0, "workers are counted as running (S6)"},
    };
    for (size_t index = 0; index < sizeof expectations / sizeof expectations[0]; index++) {
        if (!expectations[index].holds) {
            return expectations[index].otherwise;
        }
    }
    return NULL;
}
