// watch.h - a thread that keeps as many workers running as there are seats, when bodies block.
//
// Contracts are stated here, the argument (Z1.., P28..) in watch.c.

#ifndef CSCHEDULER_WATCH_H
#define CSCHEDULER_WATCH_H

#include <pthread.h>

#include "cscheduler/scheduler.h"
#include "port.h"

typedef struct {
    csched_aligned_to_line csched_atomic(uint32_t) state; // slept on by the watch
    uint32_t limit;                                       // on workers without a seat; 0: no watch
    csched_atomic(uint64_t) replaced;                     // workers whose seats were given away
    csched_atomic(uint64_t) exhausted;                    // times that the limit prevented a replacement
    uint64_t hired;                                       // under `lifecycle`
    bool is_exhausted;                                    // likewise: no spare was left the last time
    uint64_t replaced_at_ns;                              // the watch's own: when the reserve was last needed
    pthread_t thread;
} csched_watch;

void csched_watch_init(csched_watch *watch, uint32_t limit);
/// Starts the thread, which sleeps at first. No effect with a limit of 0.
csched_status csched_watch_start(csched_scheduler *scheduler);
/// Ends the thread, and joins it. The scheduler must have stopped.
void csched_watch_end(csched_scheduler *scheduler);

/// Arms the watch: called when no worker searches and none sleeps that could be woken, after seq_cst reads of
/// both; or when a worker falls asleep in a crowd (W9). Wait-free.
void csched_watch_arm(csched_watch *watch);
/// A body is about to block. Wait-free; a system call only if the watch sleeps for long.
void csched_watch_hurry(csched_watch *watch);
/// A worker has gone into reserve. False: the watch is ending, and may not have seen the worker.
bool csched_watch_note_reserve(csched_watch *watch);

#endif
