// timer_model.h - access to the internals of timers, for scenarios.

#ifndef TIMER_MODEL_H
#define TIMER_MODEL_H

#include "cscheduler/scheduler.h"

/// To be called in a forked child, where the explorer still has the parent's timer thread: ends
/// that thread.
void timer_model_end_parents_thread(csched_scheduler *scheduler);
/// The tick at which a timer fires.
uint64_t timer_model_tick_of(uint64_t deadline_ns);
/// NULL, or a description of the count that is wrong while the timers' thread sleeps.
const char *timer_model_at_rest(csched_scheduler *scheduler);

#endif
