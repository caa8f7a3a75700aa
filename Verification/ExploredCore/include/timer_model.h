// timer_model.h - the inside of timers, for scenarios.

#ifndef TIMER_MODEL_H
#define TIMER_MODEL_H

#include "cscheduler/scheduler.h"

/// In a forked child, where the explorer still has the thread of the parent: it ends.
void timer_model_end_parents_thread(csched_scheduler *scheduler);
/// The tick at which a timer fires.
uint64_t timer_model_tick_of(uint64_t deadline_ns);
/// NULL, or what is counted wrong while the timers' thread sleeps.
const char *timer_model_at_rest(csched_scheduler *scheduler);

#endif
