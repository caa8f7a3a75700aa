#include <timer.c>

#include "timer_model.h"

void timer_model_end_parents_thread(csched_scheduler *scheduler)
{
    csched_timers *timers = csched_load(&scheduler->timers, relaxed);
    csched_store(&timers->inbox, NULL, seq_cst);
    csched_timers_close(timers);
}
