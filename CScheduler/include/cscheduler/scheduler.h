/// scheduler.h - workers that run operations.
///
/// Synchronisation: submit, suspend, resume, statistics and observe may run beside everything but destroy, on
/// any thread, also one the library has never seen and also inside an operation. resize and shutdown take
/// turns. Not to be called from a signal handler. After `fork` the child has no workers: every scheduler of
/// the parent is closed there: submit answers CSCHED_CLOSED, shutdown and destroy return at once, and the
/// memory is left to the process's end. A child that was forked inside an operation must not return from it.

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

/// As many workers as the process may use CPUs: affinity mask and cgroup quota, or the environment's
/// CSCHED_WORKERS.
#define CSCHED_WORKERS_AUTOMATIC UINT32_MAX
/// The most workers one scheduler can have.
#define CSCHED_WORKERS_MAX 256u
/// How many workers may take the place of those that block, unless told otherwise.
#define CSCHED_SPARES_DEFAULT 512u
/// No limit to the operations that wait.
#define CSCHED_CAPACITY_UNBOUNDED UINT64_MAX

/// How a submission from outside goes on when `capacity` operations wait already.
typedef enum CSCHED_CLOSED_ENUM {
    /// Sleep until there is room. A worker never sleeps here: its own submissions are exempt from the
    /// capacity.
    CSCHED_WHEN_FULL_SUSPEND CSCHED_SWIFT_NAME(suspend) = 0,
    /// Answer CSCHED_FULL.
    CSCHED_WHEN_FULL_REJECT CSCHED_SWIFT_NAME(reject) = 1,
    /// Run the operation in the calling thread, and answer CSCHED_OK; CSCHED_FULL while suspended.
    CSCHED_WHEN_FULL_RUN_IN_CALLER CSCHED_SWIFT_NAME(runInCaller) = 2,
} csched_when_full;

typedef struct {
    uint32_t workers;                 ///< 1 ... CSCHED_WORKERS_MAX, or CSCHED_WORKERS_AUTOMATIC
    csched_when_full when_full;       ///< matters with a capacity only
    uint64_t capacity;                ///< 1 ..., or CSCHED_CAPACITY_UNBOUNDED
    const char *CSCHED_NULLABLE name; ///< prefix of the threads' names, copied, at most 10 bytes are shown
    uint32_t spares; ///< the most threads beside the workers, to replace those that block; 0: none are
} csched_configuration;

typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_OK CSCHED_SWIFT_NAME(ok) = 0,
    CSCHED_OUT_OF_MEMORY CSCHED_SWIFT_NAME(outOfMemory) = 1,
    CSCHED_INVALID_WORKERS CSCHED_SWIFT_NAME(invalidWorkers) = 2,
    CSCHED_INVALID_CAPACITY CSCHED_SWIFT_NAME(invalidCapacity) = 3,
    /// Not returned any more: CSCHED_WORKERS that is no number is told on stderr, and not used.
    CSCHED_INVALID_ENVIRONMENT CSCHED_SWIFT_NAME(invalidEnvironment) = 4,
    CSCHED_THREAD_CREATION_FAILED CSCHED_SWIFT_NAME(threadCreationFailed) = 5,
    /// The scheduler is shutting down, is shut down, or belongs to the parent of a fork. Nothing was
    /// submitted.
    CSCHED_CLOSED CSCHED_SWIFT_NAME(closed) = 6,
    /// The capacity is reached and the policy is to reject. Nothing was submitted.
    CSCHED_FULL CSCHED_SWIFT_NAME(full) = 7,
    /// The call would wait for the calling thread itself.
    CSCHED_WOULD_DEADLOCK CSCHED_SWIFT_NAME(wouldDeadlock) = 8,
} csched_status;

/// One sentence for a status.
const char *csched_status_message(csched_status status);

/// Automatic workers, no capacity.
csched_configuration csched_configuration_default(void);

/// How many workers CSCHED_WORKERS_AUTOMATIC means now: CSCHED_WORKERS of the environment when it is a number
/// between 1 and 256, else the smaller of the affinity mask's CPUs and the quota of the process's cgroup (v2,
/// then v1), rounded up, at least 1. When CSCHED_WORKERS is anything else, a sentence on stderr says so, once
/// in the life of the process. CSCHED_OK.
csched_status csched_automatic_workers(uint32_t *workers) CSCHED_MUST_USE;

/// Creates a scheduler and starts its workers.
csched_status csched_scheduler_create(const csched_configuration *configuration,
                                      csched_scheduler *CSCHED_NULLABLE *CSCHED_NULLABLE scheduler)
    CSCHED_MUST_USE;

/// Frees a scheduler; one that is not shut down yet is drained first. The caller's last use of it, on no
/// worker of it, nor inside a callback of its timers. Observers are released before it returns.
void csched_scheduler_destroy(csched_scheduler *scheduler);

/// As destroy, for a caller that may be a worker of it: closes it, and leaves the rest to a thread made for
/// that.
void csched_scheduler_destroy_later(csched_scheduler *scheduler);

/// Submits one operation, which is copied. Lock-free; from a thread that has submitted before: no allocation
/// but one block for every few hundred operations. Release: what the caller wrote before is visible to the
/// operation. CSCHED_OK, CSCHED_CLOSED, CSCHED_FULL or CSCHED_OUT_OF_MEMORY; unless CSCHED_OK, what it points
/// to is the caller's still.
csched_status csched_submit(csched_scheduler *scheduler, const csched_operation *operation) CSCHED_MUST_USE;

/// As csched_submit, of a priority. Operations that are submitted without one inherit that of the running
/// body.
csched_status csched_submit_at(csched_scheduler *scheduler, const csched_operation *operation,
                               csched_priority priority) CSCHED_MUST_USE;

/// As csched_submit, but past the capacity: for work that must be neither refused nor delayed, such as the
/// jobs of tasks.
csched_status csched_submit_exempt(csched_scheduler *scheduler, const csched_operation *operation)
    CSCHED_MUST_USE;

/// As csched_submit_exempt, of a priority.
csched_status csched_submit_exempt_at(csched_scheduler *scheduler, const csched_operation *operation,
                                      csched_priority priority) CSCHED_MUST_USE;

/// As csched_submit_exempt_at, for the jobs of tasks. On a worker, what one body submits begins in the order
/// of submission, but for the first few, which begin before older operations, the newest first.
csched_status csched_submit_job(csched_scheduler *scheduler, const csched_operation *operation,
                                csched_priority priority) CSCHED_MUST_USE;

/// The priority of the running body; CSCHED_PRIORITY_DEFAULT outside of all.
csched_priority csched_priority_current(void);

/// The running body had nothing to do, such as one that was submitted a second time at a higher priority: its
/// turn is not the share of its priority, and a fair turn follows. On a thread that is no worker: nothing.
void csched_turn_was_void(void);

/// Submits `count` operations with one publication and one wake-up; all or none.
csched_status csched_submit_bulk(csched_scheduler *scheduler, const csched_operation *operations,
                                 size_t count) CSCHED_MUST_USE;

/// As csched_submit_bulk, of a priority.
csched_status csched_submit_bulk_at(csched_scheduler *scheduler, const csched_operation *operations,
                                    size_t count, csched_priority priority) CSCHED_MUST_USE;

/// The body of a range: called once for every index of it.
typedef void (*csched_index_function)(void *CSCHED_NULLABLE context, uint64_t index);

/// The end of a range: whether every index was called.
typedef void (*csched_range_function)(void *CSCHED_NULLABLE context, bool complete);

/// Calls `body` once for each index of 0 ..< count, in any order, on any workers, and `finally` (when not
/// NULL) once after the last. One allocation for the whole range: it is cut in halves as workers take it,
/// down to `grain` indices (0: chosen by the worker count). Every piece counts in `counter`. After a
/// shutdown that cancels, the indices that have not begun are left out, and `finally` is told that the range
/// is not complete.
csched_status csched_submit_range(csched_scheduler *scheduler, uint64_t count, uint64_t grain,
                                  csched_index_function body, csched_range_function CSCHED_NULLABLE finally,
                                  void *CSCHED_NULLABLE context, csched_completion *CSCHED_NULLABLE counter)
    CSCHED_MUST_USE;

/// Whether a shutdown that cancels has begun: a body that does many things, one after the other, may leave
/// the rest out. Relaxed; on any thread.
bool csched_scheduler_is_cancelling(const csched_scheduler *scheduler);

/// Calls `function` once on a detached thread made for it: for an embedder's calls that must not block its
/// own threads.
csched_status csched_call_on_thread(void (*function)(void *CSCHED_NULLABLE context),
                                    void *CSCHED_NULLABLE context) CSCHED_MUST_USE;

/// Says that the running body is about to block, and that it goes on. Beside the body of a worker they do
/// nothing. Pairs nest. Another worker takes the place of one that stays blocked, within some 100 us if
/// operations wait; a body that blocks unannounced is found within milliseconds, by the state of its thread.
/// Some nanoseconds each.
void csched_block_begin(void);
void csched_block_end(void);

/// Lets no further body start until `resume`; bodies that have started go on, what waits is kept. Calls nest.
/// After the return, a worker that is not counted in `csched_statistics.running` starts nothing. Does nothing
/// when the scheduler is closing.
void csched_scheduler_suspend(csched_scheduler *scheduler);

/// Undoes one `suspend`. Stops the process without a matching one; does nothing when a shutdown has ended it
/// already.
void csched_scheduler_resume(csched_scheduler *scheduler);

/// Changes the number of workers. A worker that goes finishes its body first; what waits in its deque is run
/// by others.
csched_status csched_scheduler_resize(csched_scheduler *scheduler, uint32_t workers) CSCHED_MUST_USE;

/// The number of workers.
uint32_t csched_scheduler_workers(const csched_scheduler *scheduler);

/// Closes the scheduler to submissions from outside, runs what waits and what running operations still
/// submit, and joins the threads. Operations that are not started `timeout_ns` nanoseconds after the call are
/// cancelled: 0 cancels all that wait, CSCHED_FOREVER none. Ends suspension. Running bodies are waited for in
/// every case. A second call waits for the first; one that cancels cancels what the first would run.
/// CSCHED_WOULD_DEADLOCK on a worker of the same scheduler:
/// nothing was done then.
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

/// Attaches the function through which bodies are called that run nested in a wait, once, before anything is
/// submitted. It calls `body` with `context`, once, on the same thread: so that an embedder can keep from it
/// what belongs to the waiting body, such as task-local values.
void csched_scheduler_isolate(csched_scheduler *scheduler,
                              void (*isolate)(void (*body)(void *CSCHED_NULLABLE context),
                                              void *CSCHED_NULLABLE context));

/// Reads the statistics. Registers the calling thread with RCU for the call; may take a mutex; O(submitting
/// threads).
csched_statistics csched_scheduler_statistics(csched_scheduler *scheduler);

/// An event that an observer is told, on the worker concerned, outside every read section. A spare starts
/// when it first takes the place of a worker that blocks, with an index of its own.
typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_WORKER_STARTED CSCHED_SWIFT_NAME(workerStarted) = 0,
    CSCHED_WORKER_PARKED CSCHED_SWIFT_NAME(workerParked) = 1,
    CSCHED_WORKER_UNPARKED CSCHED_SWIFT_NAME(workerUnparked) = 2,
    CSCHED_WORKER_STOPPED CSCHED_SWIFT_NAME(workerStopped) = 3,
} csched_event;

typedef struct {
    void (*notify)(void *CSCHED_NULLABLE context, csched_event event, uint32_t worker);
    /// Called once when no worker can call `notify` any more; may be NULL. On a thread that frees for all
    /// schedulers: it should not block, and must not destroy a scheduler, but by `destroy_later`.
    void (*CSCHED_NULLABLE release)(void *CSCHED_NULLABLE context);
    void *CSCHED_NULLABLE context;
} csched_observer;

/// Replaces the observer (NULL: none). The old one is released after a grace period and after its last call.
csched_status csched_scheduler_observe(csched_scheduler *scheduler,
                                       const csched_observer *CSCHED_NULLABLE observer) CSCHED_MUST_USE;

CSCHED_ASSUME_NONNULL_END

#endif
