// timer.h - the timers of a scheduler, as scheduler.c uses them.
//
// Contracts are stated here and in cscheduler/timer.h, the argument (T1.., P40..) in timer.c.

#ifndef CSCHEDULER_TIMER_INTERNAL_H
#define CSCHEDULER_TIMER_INTERNAL_H

#include "cscheduler/timer.h"
#include "port.h"

/// The thread of a scheduler's timers, and what it keeps. Created with the first timer.
typedef struct csched_timers csched_timers;

/// Refuses timers from now on, and makes the thread cancel all existing timers and exit. NULL: there are
/// none.
void csched_timers_close(csched_timers *timers);
/// Waits for the thread to exit. Called after the close.
void csched_timers_join(csched_timers *timers);
/// Frees the timers. Called after the join.
void csched_timers_destroy(csched_timers *timers);
/// When the thread wakes up next, in nanoseconds of the clock. 0: it is awake; UINT64_MAX: never, also for
/// NULL.
uint64_t csched_timers_next_wake(const csched_timers *timers);
/// In a forked child, which has no such thread: refuses timers.
void csched_timers_forget(csched_timers *timers);
/// Whether the calling thread is the one of `scheduler`'s timers.
bool csched_timers_is_thread_of(const csched_scheduler *scheduler);

#endif
