/// children.h - children of a composite: each costs a node of 64 bytes and two exchanges, but no object.
/// Internals: for the Swift layers of this package, not stable.
///
/// A composite with such children is a group, whose children may run concurrently, or a cascade, whose steps
/// run one after another. For anything else the embedder takes all children, once; from then on each child is
/// an object of the embedder (children.c: Y1-Y7).

#ifndef CSCHEDULER_INTERNALS_CHILDREN_H
#define CSCHEDULER_INTERNALS_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../annotations.h"
#include "../scheduler.h"

CSCHED_ASSUME_NONNULL_BEGIN

typedef struct csched_children csched_children;

/// The state of a child.
typedef enum CSCHED_CLOSED_ENUM {
    CSCHED_CHILD_QUEUED CSCHED_SWIFT_NAME(queued) = 0,       ///< its turn has yet to come
    CSCHED_CHILD_RUNNING CSCHED_SWIFT_NAME(running) = 1,     ///< its block runs
    CSCHED_CHILD_FINISHED CSCHED_SWIFT_NAME(finished) = 2,   ///< its value can be read
    CSCHED_CHILD_TAKEN CSCHED_SWIFT_NAME(taken) = 3,         ///< it belongs to the embedder
    CSCHED_CHILD_WITHDRAWN CSCHED_SWIFT_NAME(withdrawn) = 4, ///< never a child: see csched_children_send
} csched_child_state;

/// A child. The embedder fills in the first words before sending it.
typedef struct csched_child {
    const void *CSCHED_NULLABLE code; ///< of the block
    void *CSCHED_NULLABLE context;    ///< likewise; released when the child has finished, or was taken
    uint64_t value[2];                ///< what the block returned
    uint64_t input;                   ///< what the block is given
    const void *CSCHED_NULLABLE type; ///< the embedder's type of block and value
    uint32_t state;                   ///< atomic: a csched_child_state
    uint32_t flags;                   ///< the embedder's, except for those below
    void *CSCHED_NULLABLE object;     ///< the embedder's, retained
} csched_child;

/// Flags of a child. This one shares its context with other children, and does not release it.
#define CSCHED_CHILD_SHARES UINT32_C(0x80000000)
/// Owns the context that it shares.
#define CSCHED_CHILD_OWNS UINT32_C(0x40000000)

/// Calls the block of a child. NULL: the value is stored; else the error that the block threw.
typedef void *CSCHED_NULLABLE (*csched_child_call)(void *children, void *child);

/// Callbacks to the embedder: on a worker, under no lock. All but `release` are passed the children.
typedef struct {
    csched_child_call call;
    /// Releases the context of a block, or the object of a child.
    void (*release)(void *CSCHED_NULLABLE context);
    /// All children have finished. Returns whether they were taken meanwhile.
    bool (*finished)(void *children);
    /// The turn of a child has come, but the child had been taken before.
    void (*turn)(void *children, void *child);
    /// A child that was taken while it ran has returned its value.
    void (*returned)(void *children, void *child);
    /// A child has thrown; the embedder takes all children.
    void (*threw)(void *children, void *child, void *error);
    /// The scheduler is shut down, or out of memory: a child cannot run. The embedder takes all children.
    void (*refused)(void *children, void *child);
    /// The children's memory was in use when they were taken; now no thread uses it.
    void (*let_go)(void *children);
} csched_children_face;

/// Children that are adjacent in memory.
typedef struct csched_region {
    struct csched_region *CSCHED_NULLABLE next;
    csched_child *nodes;
    size_t capacity;
} csched_region;

/// The children of one run of a composite's registration. The embedder provides the memory.
struct csched_children {
    const csched_children_face *face;
    void *CSCHED_NULLABLE owner;     ///< the embedder's
    void *CSCHED_NULLABLE composite; ///< the embedder's: the parent
    csched_scheduler *scheduler;
    uint64_t word;   ///< atomic: see children.c
    int64_t pending; ///< atomic, of a group: see children.c
    uint64_t count;  ///< atomic: how many were published
    // Owned by the registering thread.
    uint64_t number;
    csched_child *CSCHED_NULLABLE next;
    csched_child *CSCHED_NULLABLE limit;
    csched_region *last;
    bool owns_blocks; ///< one of them has CSCHED_CHILD_OWNS
    // Owned by the worker that runs the cascade.
    csched_child *CSCHED_NULLABLE cursor;
    csched_region *CSCHED_NULLABLE cursor_region;
    csched_region first;
    bool is_cascade;
    bool is_closed; ///< under the embedder's lock
    // The embedder's, under its lock.
    bool is_over;  ///< all have finished, as reported by `finished` or the close
    int32_t epoch; ///< its number for the registration
    bool has_objects;
    bool is_in_use; ///< taken while in use: `let_go` is yet to come, or was called
    bool was_taken;
    uint64_t taken; ///< how many were taken
};

/// The calling thread's identity, unique for as long as it runs. Never 0.
uintptr_t csched_thread_mark(void);

/// Initialises children: none so far.
///
/// - nodes: room for the first `capacity` children, valid for as long as `children`.
void csched_children_init(csched_children *children, const csched_children_face *face, void *owner,
                          csched_scheduler *scheduler, bool is_cascade, csched_child *nodes, size_t capacity);

/// Releases the contexts that children share. Called under no lock, when no thread is inside any more.
void csched_children_give_up(csched_children *children);

/// Releases those contexts and the objects, and frees what the children allocated. Called when no thread uses
/// the children any more.
void csched_children_destroy(csched_children *children);

/// Room for another child, to be filled in and sent. NULL: the embedder has to create an object, because all
/// children were taken, memory is exhausted, this is not the registration `epoch`, or the caller is not the
/// registering thread.
///
/// - thread: the mark of the registering thread. On any other thread `children` is not read.
csched_child *CSCHED_NULLABLE csched_children_append(csched_children *children, uintptr_t thread,
                                                     int32_t epoch);

/// Publishes the child that was appended. In a group it may begin before the call returns; in a cascade, when
/// the cascade has begun and the previous steps have finished. False: all other children were taken
/// meanwhile; this one still belongs to the caller.
bool csched_children_send(csched_children *children, csched_child *child);

/// Room for `count` adjacent children. NULL: as csched_children_append.
csched_child *CSCHED_NULLABLE csched_children_append_range(csched_children *children, uintptr_t thread,
                                                           int32_t epoch, size_t count);

/// Publishes the range that was appended, in a group. Its children have no values, and share a context, which
/// the first one owns. False: as csched_children_send; none of the range was taken.
bool csched_children_send_range(csched_children *children, csched_child *first, size_t count);

/// Ends the registration of children that were not taken. Called under the embedder's lock, like taking.
/// True: all have finished. False: a group is still running; a cascade has to be begun.
bool csched_children_close(csched_children *children);

/// Begins a closed cascade. Called under no lock.
void csched_children_begin(csched_children *children);

/// The progress of a taking, and how far the children had come.
typedef struct {
    csched_region *CSCHED_NULLABLE region;
    size_t index;     ///< in the region
    uint64_t left;    ///< how many are still to be taken
    uint64_t current; ///< of a cascade: how many steps have finished
    bool is_begun;    ///< it is a cascade, and was begun
    bool is_running;  ///< the current step runs, or has finished since
    bool is_in_use;   ///< a thread uses the memory, or may, and will let it go
    uint64_t taken;   ///< how many were taken so far
} csched_taking;

/// Begins to take all children. Called once, under the embedder's lock. The embedder keeps their memory until
/// `face.let_go`, for threads that may still use it.
csched_taking csched_children_take(csched_children *children);

/// The next child, in the order of registration, and the state it had; never TAKEN or WITHDRAWN. NULL: there
/// is none left.
csched_child *CSCHED_NULLABLE csched_children_take_next(csched_children *children, csched_taking *taking,
                                                        csched_child_state *state);

/// Starts another walk over the taken children, from the first one on. Under the embedder's lock.
csched_taking csched_children_walk(csched_children *children);

/// The next child, in the order of registration. NULL: none is left.
csched_child *CSCHED_NULLABLE csched_children_walk_next(csched_taking *walk);

/// Ends a taking. False: no thread uses the children's memory, and `face.let_go` will not be called.
bool csched_children_taken(csched_children *children, csched_taking *taking);

/// Returns the state of a child; needs no lock. Acquire: FINISHED means that its value can be read.
csched_child_state csched_child_state_of(const csched_child *child);

/// The turn that an operation performs: of `child`, or, if that is NULL, of a range of `children`.
typedef struct {
    csched_children *CSCHED_NULLABLE children;
    csched_child *CSCHED_NULLABLE child;
} csched_children_turn;

/// The turn that an operation performs; `children` is NULL when the operation is not a turn.
csched_children_turn csched_children_turn_of(const csched_operation *operation);

CSCHED_ASSUME_NONNULL_END

#endif
