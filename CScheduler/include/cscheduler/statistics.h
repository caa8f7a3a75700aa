/// statistics.h - what a scheduler has done since it was created.

#ifndef CSCHEDULER_STATISTICS_H
#define CSCHEDULER_STATISTICS_H

#include <stdint.h>

#include "annotations.h"

/// Counts, each exact when the scheduler is quiescent, and each read at its own moment while it is busy.
typedef struct {
    uint64_t submitted; ///< operations accepted, from outside and from workers
    uint64_t executed;  ///< bodies that have returned after CSCHED_RUN
    uint64_t cancelled; ///< bodies that have returned after CSCHED_CANCEL
    uint64_t stolen;    ///< operations a worker took out of another worker's deque
    uint64_t parked;    ///< times a worker went to sleep
    uint64_t woken;     ///< wake-ups that submitters and workers sent
    uint64_t retired;   ///< deques, buffers and snapshots handed to a grace period
    uint64_t reclaimed; ///< of these, freed after it
    uint64_t running;   ///< workers inside a body now
    uint64_t replaced;  ///< workers that blocked, and whose place another one took
    uint64_t exhausted; ///< times that one more would have been needed than the limit allows
    uint32_t workers;   ///< workers that there are to be
    uint32_t threads;   ///< worker threads now: also those that block, and those in reserve
} csched_statistics;

#endif
