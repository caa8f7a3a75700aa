/// inspection.h - what each worker of a scheduler is doing now, and which operations are waiting.

#ifndef CSCHEDULER_INSPECTION_H
#define CSCHEDULER_INSPECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "operation.h"
#include "scheduler.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// The activity of a worker.
typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_WORKER_RUNS CSCHED_SWIFT_NAME(runs) = 0,         ///< it is inside a body
    CSCHED_WORKER_BLOCKS CSCHED_SWIFT_NAME(blocks) = 1,     ///< likewise; it announced a block, or sleeps
    CSCHED_WORKER_SEARCHES CSCHED_SWIFT_NAME(searches) = 2, ///< it searches for the next operation
    CSCHED_WORKER_SLEEPS CSCHED_SWIFT_NAME(sleeps) = 3,     ///< there is nothing for it to do
    CSCHED_WORKER_RESERVED CSCHED_SWIFT_NAME(reserved) = 4, ///< kept in reserve, to replace a blocked one
} csched_worker_activity;

typedef struct {
    uint32_t index;                  ///< as in the name of its thread
    int32_t kernel_id;               ///< as in /proc/self/task; 0: the thread has not started yet
    csched_worker_activity activity; ///< an estimate at this moment
    bool replaced;                   ///< it blocks, and another worker has taken its place
    uint64_t executed;               ///< bodies that have returned
    uint64_t stolen;                 ///< operations that it took from other workers
    uint64_t parked;                 ///< times it went to sleep
    uint64_t waiting[3];             ///< operations in its deques, by csched_priority
} csched_worker_state;

typedef struct {
    uint64_t id; ///< unique in the process
    char name[16];
    uint32_t threads;      ///< worker threads; all of them, even beyond `room`
    uint64_t waiting[3];   ///< operations from outside that no worker has taken yet, by csched_priority
    uint64_t appended[3];  ///< all operations from outside so far, taken or not
    uint64_t next_wake_ns; ///< CLOCK_MONOTONIC, when its timer thread wakes up next; UINT64_MAX: never
    bool suspended;
    bool closing; ///< it no longer accepts operations from outside
} csched_scheduler_state;

/// Reads the states of a scheduler and of its first `room` workers, each at a different moment. No worker
/// waits for it. O(workers + threads that submit), plus about 10 us for each worker.
void csched_scheduler_inspect(csched_scheduler *scheduler, csched_scheduler_state *state,
                              csched_worker_state *CSCHED_NULLABLE workers, uint32_t room);

/// Calls `visit` for each scheduler of the process, newest first; none is created or destroyed meanwhile.
/// `visit` may call anything that another thread may call, except create and destroy.
void csched_visit_schedulers(void (*visit)(void *CSCHED_NULLABLE context, csched_scheduler *scheduler),
                             void *CSCHED_NULLABLE context);

CSCHED_ASSUME_NONNULL_END

#endif
