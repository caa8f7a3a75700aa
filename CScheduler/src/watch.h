// watch.h - a thread that sees to it that as many workers run as there are seats, when bodies block.
//
// Contracts stand here, the argument (Z1.., P28..) in watch.c.

#ifndef CSCHEDULER_WATCH_H
#define CSCHEDULER_WATCH_H

#include <pthread.h>

#include "cscheduler/scheduler.h"
#include "port.h"

typedef struct {
    csched_aligned_to_line csched_atomic(uint32_t) state; // slept on by the watch
    uint32_t limit;                                       // of workers beside those with a seat; 0: no watch
    csched_atomic(uint64_t) replaced;                     // workers whose seats others were given
    csched_atomic(uint64_t) exhausted;                    // times that the limit was in the way
    uint64_t hired;                                       // under `lifecycle`
    bool is_exhausted;                                    // the same: as it last wanted a spare worker
    uint64_t replaced_at_ns;                              // the watch's own: when the reserve was needed last
    pthread_t thread;
} csched_watch;

void csched_watch_init(csched_watch *watch, uint32_t limit);
/// Starts the thread, which sleeps. Does nothing with a limit of 0.
csched_status csched_watch_start(csched_scheduler *scheduler);
/// Ends the thread, and waits for it. The scheduler has stopped.
void csched_watch_end(csched_scheduler *scheduler);

/// Nobody looks for work, and nobody sleeps who could be woken, after a seq_cst look at both; or a worker
/// falls asleep in a crowd (W9). Wait-free.
void csched_watch_arm(csched_watch *watch);
/// A body is about to block. Wait-free; a system call only where the watch sleeps for long.
void csched_watch_hurry(csched_watch *watch);
/// A worker is in reserve. False: the watch ends, and may not have seen it.
bool csched_watch_note_reserve(csched_watch *watch);

#endif
