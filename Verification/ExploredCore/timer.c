#include <timer.c>

#include "timer_model.h"

void timer_model_end_parents_thread(csched_scheduler *scheduler)
{
    csched_timers *timers = csched_load(&scheduler->timers, relaxed);
    csched_store(&timers->inbox, NULL, seq_cst);
    csched_timers_close(timers);
}

uint64_t timer_model_tick_of(uint64_t deadline_ns) { return tick_of(deadline_ns); }

static bool counts(csched_wheel_entry *entry, void *cancelled)
{
    *(int64_t *)cancelled += csched_load(&timer_of(entry)->state, seq_cst) == CANCELLED;
    return true;
}

static const char *what_is_wrong(csched_timers *timers)
{
    int64_t cancelled = 0;
    for (csched_wheel_entry *each = csched_load(&timers->inbox, seq_cst); each != NULL; each = each->next) {
        (void)counts(each, &cancelled);
    }
    csched_wheel_filter(&timers->wheel, counts, &cancelled);
    return csched_load(&timers->cancelled, seq_cst) != cancelled ? "cancelled timers are counted wrong (R2)"
           : csched_load(&timers->sweep_at, seq_cst) != sweep_limit(timers)
               ? "the next sweep comes too late (R2)"
               : NULL;
}

const char *timer_model_at_rest(csched_scheduler *scheduler)
{
    explorer_ignore_plain(true);
    const char *wrong = what_is_wrong(csched_load(&scheduler->timers, seq_cst));
    explorer_ignore_plain(false);
    return wrong;
}
