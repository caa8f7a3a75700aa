// worker.h - a thread that runs operations.

#ifndef CSCHEDULER_WORKER_H
#define CSCHEDULER_WORKER_H

#include <pthread.h>

#include "cscheduler/internals/children.h"
#include "cscheduler/scheduler.h"
#include "deque.h"
#include "pace.h"
#include "port.h"
#include "priority.h"
#include "reclaim.h"

/// The state in which the watch last saw a worker.
typedef struct csched_last_look {
    uint64_t body;   // 1 + the value of executed; 0: not looked at yet
    uint64_t at_ns;  // when that was
    uint64_t ran_ns; // how long its thread had run by then
} csched_last_look;

typedef struct csched_worker {
    csched_deque deque[CSCHED_PRIORITIES];
    // Written by the worker, read by any thread: for statistics, and by the sentry, to detect that the worker
    // is stuck in a body.
    csched_aligned_to_line csched_atomic(uint64_t) executed;
    csched_atomic(uint64_t) cancelled;
    csched_atomic(uint64_t) submitted;
    csched_atomic(uint64_t) stolen;
    csched_atomic(uintptr_t) in_hand; // X8: see csched_children_in_hand; 0: nothing
    csched_atomic(uint64_t) parked;
    csched_atomic(uint32_t) running;
    // Written by other threads, rarely.
    csched_aligned_to_line csched_atomic(uint64_t)
        stuck;                      // 1 + the value of executed at which a sentry found it stuck
    csched_atomic(uint64_t) seen;   // the value of executed when the sentry went to sleep
    csched_atomic(uint32_t) seat;   // Z1: a number, and flags; see csched_seat_flag
    csched_atomic(uint32_t) recall; // Z5: a csched_recall; slept on in reserve
    csched_atomic(int32_t) kernel_id;
    csched_atomic(bool) ended;
    csched_last_look last_look; // owned by the watch
    // Owned by the worker.
    csched_aligned_to_line csched_scheduler *scheduler;
    uint32_t index;
    uint32_t until_fair;    // operations until the next fair turn (X4)
    uint32_t own_turns;     // fair turns of its own deque since the oldest there had one
    uint32_t fair_interval; // adapted to about CSCHED_FAIR_NS
    uint64_t fair_since_ns;
    bool from_inboxes;                  // the last fair turn found some there: the next tries its own
    uint64_t cursor[CSCHED_PRIORITIES]; // in the registries
    csched_priority priority;           // of the running body; default outside any body
    uint32_t high_row;                  // of high priority in a row (N4)
    uint64_t background_at;             // operations it had run when it last had one of the background (N4)
    uint32_t ranked_turn;            // whose turn it is in look_for_ranked: the worker's own deque or inboxes
    uint64_t random;                 // for the first victim
    uint64_t sentry_ns;              // how long it sleeps next time as the sentry
    bool backlog;                    // its last look at the inboxes took as many as it may
    csched_pace pace;                // of its searches
    csched_completion *debt_counter; // the counter of the debt, or NULL
    uint32_t debt;                   // leaves held back
    uint32_t burst;                  // jobs that the running body has submitted (U4)
    uint32_t nesting;                // waiting bodies below the running one on this stack
    uint32_t blocking;               // announcements that the running body blocks
    const void *enclosing;           // the fork whose branch runs here, taken from another worker
    const struct csched_body *innermost; // of the bodies on the stack, in debug builds
    uint64_t places;                     // of the capacity, to be returned
    char *stack_limit;                   // a wait may nest until the stack gets here
    pthread_t thread;
    csched_retired retired;
} csched_worker;

/// Flags of a worker's seat; the number of the seat is above them.
enum csched_seat_flag {
    CSCHED_SEAT_LEAVING = 1,   // the crew was made smaller: leave when the body has returned
    CSCHED_SEAT_LOOKING = 2,   // it looks for work or sleeps: the seat stays
    CSCHED_SEAT_ANNOUNCED = 4, // the body blocks, or is about to
    CSCHED_SEAT_FLAGS = 7,     // at least one is set when there is no seat
    CSCHED_SEAT_SHIFT = 3,
};
/// No seat. All flags are set, so that one test is enough before an operation.
#define CSCHED_UNSEATED UINT32_MAX
/// No seat, but the worker still counts as awake: it may not know yet.
#define CSCHED_UNSEATED_AWAKE (UINT32_MAX - CSCHED_SEAT_ANNOUNCED)

static inline bool csched_is_seated(uint32_t seat)
{
    return seat >> CSCHED_SEAT_SHIFT != UINT32_MAX >> CSCHED_SEAT_SHIFT;
}

/// OUT: the worker was never in reserve.
typedef enum { CSCHED_OUT, CSCHED_IN_RESERVE, CSCHED_SEATED, CSCHED_DISMISSED } csched_recall;

/// The workers of a scheduler: a snapshot that readers load and resize replaces.
typedef struct {
    csched_retired retired;
    uint32_t count;
    csched_worker *workers[];
} csched_crew;

/// NULL: out of memory.
csched_worker *csched_worker_create(csched_scheduler *scheduler, uint32_t index, uint32_t seat);
/// Its thread must have ended, or never started.
void csched_worker_destroy(csched_worker *worker);
/// Starts the thread. Without a seat it begins in reserve.
csched_status csched_worker_start(csched_worker *worker);

/// The calling thread's worker, or NULL.
csched_worker *csched_worker_self(void);
/// In a forked child: the calling thread is no longer a worker.
void csched_worker_forget(void);

/// Whether the worker is known not to return to its deque soon: it has announced that it blocks, or has no
/// seat.
bool csched_worker_is_away(const csched_worker *worker);

/// On the worker: pushes what a running body submits onto the worker's deque. False: out of memory.
bool csched_worker_submit(csched_worker *worker, const csched_operation *operations, size_t count,
                          csched_priority priority);

/// As csched_worker_submit, for one operation, and enters its counter.
bool csched_worker_spawn(csched_worker *worker, const csched_operation *operation, csched_priority priority);

/// Pops the second branch of a fork, unless another worker has taken it; the caller runs it. Operations above
/// it may move to the thread's inbox. False also when there is no memory for that.
bool csched_worker_take_back(csched_worker *worker, const void *fork);
/// Whether enough of the worker's stack is left for a join.
static inline bool csched_worker_may_nest(const csched_worker *worker)
{
    enum { STACK_OF_A_JOIN = 16 * 1024 }; // a wait in it may run operations
    return (char *)__builtin_frame_address(0) > worker->stack_limit + STACK_OF_A_JOIN;
}

/// The condition that a body on a worker waits for, and the operations that may run on its stack meanwhile.
typedef struct {
    bool (*is_over)(const void *context);
    bool (*belongs)(const void *context, const csched_operation *operation); // NULL: every operation
    const void *context;
    bool only_own; // from its own deque alone, where `belongs` may look at what an operation points to
} csched_wait;

/// Runs what belongs to a wait, nested on the worker's stack, until it is over or nothing is in reach. False:
/// nothing was run.
bool csched_worker_run_nested(csched_worker *worker, const csched_wait *wait);
/// Whether another worker is idle, so that more than one operation should be pushed (W5). A hint.
bool csched_worker_is_wanted(const csched_worker *worker);
/// Sets what the worker has in hand; csched_children_in_hand makes an operation of it.
void csched_worker_hold(csched_worker *worker, uintptr_t in_hand);
/// Takes what the worker has in hand while user code runs: the first thread to exchange it gets it. 0:
/// already taken. P53: acquires what its holder has written.
static inline uintptr_t csched_worker_take_in_hand(csched_worker *worker)
{
    return csched_load(&worker->in_hand, relaxed) == 0 ? 0 : csched_exchange(&worker->in_hand, 0, acquire);
}
/// Whether a composite body continues with its next part directly, which then counts as an operation (X8).
/// False: the part has to be submitted.
bool csched_worker_goes_on(csched_worker *worker);
/// Before a wait: pays the debt of leaves (X2).
void csched_worker_settle(csched_worker *worker);
/// The running body is about to block, and continues (Z2). Nests.
void csched_worker_block(csched_worker *worker);
void csched_worker_unblock(csched_worker *worker);

#endif
