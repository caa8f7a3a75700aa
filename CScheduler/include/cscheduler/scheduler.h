/// scheduler.h - workers that run operations.
///
/// Synchronisation: submit, suspend, resume, statistics and observe may be called concurrently with
/// everything except destroy, on any thread, including one the library has never seen, and inside an
/// operation. resize and shutdown serialise against each other. Nothing here may be called from a signal
/// handler. After `fork` the child has no workers, and every scheduler of the parent is closed there: submit
/// returns CSCHED_CLOSED, shutdown and destroy return at once, and the memory is not freed before the process
/// exits. A child forked inside an operation must not return from it.

#ifndef CSCHEDULER_SCHEDULER_H
#define CSCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "annotations.h"
#include "operation.h"
#include "statistics.h"

CSCHED_ASSUME_NONNULL_BEGIN

typedef struct csched_scheduler csched_scheduler;

/// One worker for each CPU that the process may use, by its affinity mask and cgroup quota; or the number in
/// the environment variable CSCHED_WORKERS.
#define CSCHED_WORKERS_AUTOMATIC UINT32_MAX
/// The maximum number of workers of one scheduler.
#define CSCHED_WORKERS_MAX 256u
/// The default limit on spare workers, which replace workers that block.
#define CSCHED_SPARES_DEFAULT 512u
/// No limit on the number of waiting operations.
#define CSCHED_CAPACITY_UNBOUNDED UINT64_MAX

/// How a submission from outside proceeds when `capacity` operations are already waiting.
typedef enum CSCHED_CLOSED_ENUM {
    /// Sleep until there is room. A worker never sleeps here: its submissions are exempt from the capacity.
    CSCHED_WHEN_FULL_SUSPEND CSCHED_SWIFT_NAME(suspend) = 0,
    /// Return CSCHED_FULL.
    CSCHED_WHEN_FULL_REJECT CSCHED_SWIFT_NAME(reject) = 1,
    /// Run the operation in the calling thread and return CSCHED_OK; while suspended, return CSCHED_FULL.
    CSCHED_WHEN_FULL_RUN_IN_CALLER CSCHED_SWIFT_NAME(runInCaller) = 2,
} csched_when_full;

typedef struct {
    uint32_t workers;                 ///< 1 ... CSCHED_WORKERS_MAX, or CSCHED_WORKERS_AUTOMATIC
    csched_when_full when_full;       ///< used only with a capacity
    uint64_t capacity;                ///< 1 ..., or CSCHED_CAPACITY_UNBOUNDED
    const char *CSCHED_NULLABLE name; ///< prefix of the thread names; copied; at most 10 bytes are shown
    uint32_t spares;                  ///< the most extra threads, which replace blocked workers; 0: none
} csched_configuration;

typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_OK CSCHED_SWIFT_NAME(ok) = 0,
    CSCHED_OUT_OF_MEMORY CSCHED_SWIFT_NAME(outOfMemory) = 1,
    CSCHED_INVALID_WORKERS CSCHED_SWIFT_NAME(invalidWorkers) = 2,
    CSCHED_INVALID_CAPACITY CSCHED_SWIFT_NAME(invalidCapacity) = 3,
    /// No longer returned: an invalid CSCHED_WORKERS is reported on stderr and ignored.
    CSCHED_INVALID_ENVIRONMENT CSCHED_SWIFT_NAME(invalidEnvironment) = 4,
    CSCHED_THREAD_CREATION_FAILED CSCHED_SWIFT_NAME(threadCreationFailed) = 5,
    /// The scheduler is shutting down, is shut down, or belongs to the parent of a fork. Nothing was
    /// submitted.
    CSCHED_CLOSED CSCHED_SWIFT_NAME(closed) = 6,
    /// The capacity is reached, and the policy is to reject. Nothing was submitted.
    CSCHED_FULL CSCHED_SWIFT_NAME(full) = 7,
    /// The call would wait for the calling thread itself.
    CSCHED_WOULD_DEADLOCK CSCHED_SWIFT_NAME(wouldDeadlock) = 8,
} csched_status;

/// Describes a status in one sentence.
const char *csched_status_message(csched_status status);

/// The default: CSCHED_WORKERS_AUTOMATIC, and no limit on capacity.
csched_configuration csched_configuration_default(void);

/// The number of workers that CSCHED_WORKERS_AUTOMATIC means now: CSCHED_WORKERS of the environment if it is
/// a number between 1 and 256, else the smaller of the affinity mask's CPU count and the quota of the
/// process's cgroup (v2, then v1), rounded up, at least 1. Any other value of CSCHED_WORKERS is reported on
/// stderr, once per process. Always returns CSCHED_OK.
csched_status csched_automatic_workers(uint32_t *workers) CSCHED_MUST_USE;

/// Creates a scheduler and starts its workers.
csched_status csched_scheduler_create(const csched_configuration *configuration,
                                      csched_scheduler *CSCHED_NULLABLE *CSCHED_NULLABLE scheduler)
    CSCHED_MUST_USE;

/// Frees a scheduler; one that is not shut down yet is drained first. Must be the last use of the scheduler,
/// and must not be called on one of its workers or inside a callback of its timers. Observers are released
/// before it returns.
void csched_scheduler_destroy(csched_scheduler *scheduler);

/// As destroy, but may be called on a worker of the scheduler: closes it, and leaves the rest to a dedicated
/// thread.
void csched_scheduler_destroy_later(csched_scheduler *scheduler);

/// Submits one operation, which is copied. Lock-free. A thread that has submitted before allocates only one
/// block for every few hundred operations. Release: the caller's earlier writes are visible to the operation.
/// Returns CSCHED_OK, CSCHED_CLOSED, CSCHED_FULL or CSCHED_OUT_OF_MEMORY; unless CSCHED_OK, the caller still
/// owns what the operation points to.
csched_status csched_submit(csched_scheduler *scheduler, const csched_operation *operation) CSCHED_MUST_USE;

/// As csched_submit, with a priority. Operations submitted without one inherit the priority of the running
/// body.
csched_status csched_submit_at(csched_scheduler *scheduler, const csched_operation *operation,
                               csched_priority priority) CSCHED_MUST_USE;

/// As csched_submit, but not subject to the capacity: for work that must be neither refused nor delayed, such
/// as the jobs of tasks.
csched_status csched_submit_exempt(csched_scheduler *scheduler, const csched_operation *operation)
    CSCHED_MUST_USE;

/// As csched_submit_exempt, with a priority.
csched_status csched_submit_exempt_at(csched_scheduler *scheduler, const csched_operation *operation,
                                      csched_priority priority) CSCHED_MUST_USE;

/// As csched_submit_exempt_at, for the jobs of tasks. On a worker, the jobs that one body submits begin in
/// the order of submission, except the first few: they begin before older operations, newest first.
csched_status csched_submit_job(csched_scheduler *scheduler, const csched_operation *operation,
                                csched_priority priority) CSCHED_MUST_USE;

/// The priority of the running body; CSCHED_PRIORITY_DEFAULT outside any body.
csched_priority csched_priority_current(void);

/// Reports that the running body had nothing to do, for example because it was submitted a second time at a
/// higher priority. Its turn does not count towards the share of its priority, and a fair turn follows. No
/// effect on a thread that is not a worker.
void csched_turn_was_void(void);

/// Submits `count` operations with one publication and one wake-up; all or none.
csched_status csched_submit_bulk(csched_scheduler *scheduler, const csched_operation *operations,
                                 size_t count) CSCHED_MUST_USE;

/// As csched_submit_bulk, with a priority.
csched_status csched_submit_bulk_at(csched_scheduler *scheduler, const csched_operation *operations,
                                    size_t count, csched_priority priority) CSCHED_MUST_USE;

/// The body of a range: called once for each index.
typedef void (*csched_index_function)(void *CSCHED_NULLABLE context, uint64_t index);

/// The end of a range. `complete`: every index was called.
typedef void (*csched_range_function)(void *CSCHED_NULLABLE context, bool complete);

/// Calls `body` once for each index of 0 ..< count, in any order, on any workers, and `finally` (when not
/// NULL) once after the last. One allocation for the whole range, which is halved repeatedly as workers take
/// it, down to `grain` indices (0: chosen by the worker count). Every piece counts in `counter`. A shutdown
/// that cancels skips the indices that have not begun, and passes false to `finally`.
csched_status csched_submit_range(csched_scheduler *scheduler, uint64_t count, uint64_t grain,
                                  csched_index_function body, csched_range_function CSCHED_NULLABLE finally,
                                  void *CSCHED_NULLABLE context, csched_completion *CSCHED_NULLABLE counter)
    CSCHED_MUST_USE;

/// Whether a shutdown that cancels has begun: a body of many steps may then skip the remaining ones. Relaxed;
/// on any thread.
bool csched_scheduler_is_cancelling(const csched_scheduler *scheduler);

/// Calls `function` once on a new, detached thread: for calls of the embedder that must not block its own
/// threads.
csched_status csched_call_on_thread(void (*function)(void *CSCHED_NULLABLE context),
                                    void *CSCHED_NULLABLE context) CSCHED_MUST_USE;

/// Announce that the running body is about to block, and that it continues. No effect outside a worker's
/// body. Pairs nest. A worker that stays blocked is replaced by another one, within about 100 us if
/// operations are waiting; a body that blocks unannounced is detected within milliseconds, by the state of
/// its thread. Each call costs a few nanoseconds.
void csched_block_begin(void);
void csched_block_end(void);

/// Lets no further body start until `resume`. Bodies that have started continue; waiting operations are kept.
/// Calls nest. Once this returns, a worker that is not counted in `csched_statistics.running` starts nothing.
/// No effect when the scheduler is closing.
void csched_scheduler_suspend(csched_scheduler *scheduler);

/// Undoes one `suspend`. Stops the process if there is none to undo; no effect when a shutdown has already
/// ended the suspension.
void csched_scheduler_resume(csched_scheduler *scheduler);

/// Changes the number of workers. A removed worker finishes its body first; other workers run what is left in
/// its deque.
csched_status csched_scheduler_resize(csched_scheduler *scheduler, uint32_t workers) CSCHED_MUST_USE;

/// The number of workers.
uint32_t csched_scheduler_workers(const csched_scheduler *scheduler);

/// Closes the scheduler to submissions from outside, runs the waiting operations and those that running
/// operations still submit, and joins the threads. Operations that have not started `timeout_ns` nanoseconds
/// after the call are cancelled: 0 cancels all waiting operations, CSCHED_FOREVER none. Ends any suspension.
/// Always waits for running bodies. A second call waits for the first; if the second one cancels, it also
/// cancels what the first would have run. CSCHED_WOULD_DEADLOCK on a worker of the same scheduler: nothing
/// was done.
csched_status csched_scheduler_shutdown(csched_scheduler *scheduler, uint64_t timeout_ns) CSCHED_MUST_USE;

/// The first half of a shutdown: closes, and returns. Allowed on a worker.
void csched_scheduler_close(csched_scheduler *scheduler);

/// The scheduler whose worker the calling thread is, or NULL.
csched_scheduler *CSCHED_NULLABLE csched_scheduler_current(void);

/// Attaches an embedder's pointer to a new scheduler, once, before anything is submitted. `release` is called
/// with it when the scheduler is destroyed.
void csched_scheduler_set_owner(csched_scheduler *scheduler, void *owner,
                                void (*release)(void *CSCHED_NULLABLE owner));
/// The embedder's pointer; NULL when none was attached.
void *CSCHED_NULLABLE csched_scheduler_owner(const csched_scheduler *scheduler);

/// Attaches the function that wraps bodies run nested in a wait. Called once, before anything is submitted.
/// `isolate` calls `body` with `context`, once, on the same thread. It lets an embedder hide state of the
/// waiting body, such as task-local values, from the nested one.
void csched_scheduler_isolate(csched_scheduler *scheduler,
                              void (*isolate)(void (*body)(void *CSCHED_NULLABLE context),
                                              void *CSCHED_NULLABLE context));

/// Reads the statistics. Registers the calling thread with RCU for the call; may take a mutex; O(submitting
/// threads).
csched_statistics csched_scheduler_statistics(csched_scheduler *scheduler);

/// An event that is reported to an observer, on the worker concerned, outside every read section. A spare
/// worker has its own index; it starts when it first replaces a blocked worker.
typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_WORKER_STARTED CSCHED_SWIFT_NAME(workerStarted) = 0,
    CSCHED_WORKER_PARKED CSCHED_SWIFT_NAME(workerParked) = 1,
    CSCHED_WORKER_UNPARKED CSCHED_SWIFT_NAME(workerUnparked) = 2,
    CSCHED_WORKER_STOPPED CSCHED_SWIFT_NAME(workerStopped) = 3,
} csched_event;

typedef struct {
    void (*notify)(void *CSCHED_NULLABLE context, csched_event event, uint32_t worker);
    /// Called once when no worker can call `notify` any more; may be NULL. Runs on the thread that frees
    /// memory for all schedulers: it should not block, and must not destroy a scheduler except with
    /// `destroy_later`.
    void (*CSCHED_NULLABLE release)(void *CSCHED_NULLABLE context);
    void *CSCHED_NULLABLE context;
} csched_observer;

/// Replaces the observer (NULL: none). The old one is released after a grace period and after its last call.
csched_status csched_scheduler_observe(csched_scheduler *scheduler,
                                       const csched_observer *CSCHED_NULLABLE observer) CSCHED_MUST_USE;

CSCHED_ASSUME_NONNULL_END

#endif
