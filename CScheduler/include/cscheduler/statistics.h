/// statistics.h - what a scheduler has done since it was created.

#ifndef CSCHEDULER_STATISTICS_H
#define CSCHEDULER_STATISTICS_H

#include <stdint.h>

#include "annotations.h"

/// Counts. Each is exact when the scheduler is quiescent; while it is busy, each is read at a different
/// moment.
typedef struct {
    uint64_t submitted; ///< operations accepted, from outside and from workers
    uint64_t executed;  ///< bodies that have returned after CSCHED_RUN
    uint64_t cancelled; ///< bodies that have returned after CSCHED_CANCEL
    uint64_t stolen;    ///< operations taken from another worker's deque
    uint64_t parked;    ///< times a worker went to sleep
    uint64_t woken;     ///< wake-ups that submitters and workers sent
    uint64_t retired;   ///< deques, buffers and snapshots retired, to be freed after a grace period
    uint64_t reclaimed; ///< of these, already freed
    uint64_t running;   ///< workers inside a body now
    uint64_t replaced;  ///< workers that blocked and were replaced by another one
    uint64_t exhausted; ///< times that a replacement was needed, but the limit was reached
    uint32_t workers;   ///< the configured number of workers
    uint32_t threads;   ///< worker threads now, including blocked ones and those in reserve
} csched_statistics;

#endif
