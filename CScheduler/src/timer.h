// timer.h - the timers of a scheduler, as its life sees them.
//
// Contracts stand here and in cscheduler/timer.h, the argument (T1.., P40..) in timer.c.

#ifndef CSCHEDULER_TIMER_INTERNAL_H
#define CSCHEDULER_TIMER_INTERNAL_H

#include "cscheduler/timer.h"
#include "port.h"

/// The thread of a scheduler's timers, and what it keeps. Made at the first timer.
typedef struct csched_timers csched_timers;

/// Refuses timers from now on, and lets the thread cancel all that there are and end. NULL: there are none.
void csched_timers_close(csched_timers *timers);
/// Closed before: waits for the end of the thread.
void csched_timers_join(csched_timers *timers);
/// Joined before: frees it.
void csched_timers_destroy(csched_timers *timers);
/// When its thread looks again, in nanoseconds of the clock: 0: now; UINT64_MAX: never. NULL: never.
uint64_t csched_timers_next_wake(const csched_timers *timers);
/// In a forked child, which has no such thread: refuses timers.
void csched_timers_forget(csched_timers *timers);
/// Whether the calling thread is the one of `scheduler`'s timers.
bool csched_timers_is_thread_of(const csched_scheduler *scheduler);

#endif
