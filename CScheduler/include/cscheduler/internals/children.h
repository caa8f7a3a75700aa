/// children.h - children of a composite that need no object each: a node of 64 bytes, and two exchanges.
/// Internals: for the Swift layers of this package, no promise.
///
/// A composite with such children is a group, whose children may run at once, or a cascade, whose steps run
/// one after another. What else may be wanted of a child is its embedder's business: it takes all of them,
/// once, and from then on each of them is the embedder's own object (children.c: Y1-Y7).

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
    CSCHED_CHILD_QUEUED CSCHED_SWIFT_NAME(queued) = 0,       ///< its turn is to come
    CSCHED_CHILD_RUNNING CSCHED_SWIFT_NAME(running) = 1,     ///< its block is out
    CSCHED_CHILD_FINISHED CSCHED_SWIFT_NAME(finished) = 2,   ///< its value is there
    CSCHED_CHILD_TAKEN CSCHED_SWIFT_NAME(taken) = 3,         ///< it is its embedder's
    CSCHED_CHILD_WITHDRAWN CSCHED_SWIFT_NAME(withdrawn) = 4, ///< it was none: see csched_children_send
} csched_child_state;

/// A child. Its embedder fills the first words, before it is sent.
typedef struct csched_child {
    const void *CSCHED_NULLABLE code; ///< of the block
    void *CSCHED_NULLABLE context;    ///< likewise: released when the child has finished, or taken
    uint64_t value[2];                ///< what the block has returned
    uint64_t input;                   ///< what the block is given
    const void *CSCHED_NULLABLE type; ///< what the embedder knows of block and value
    uint32_t state;                   ///< atomic: a csched_child_state
    uint32_t flags;                   ///< the embedder's, but for those below
    void *CSCHED_NULLABLE object;     ///< the embedder's, with a reference
} csched_child;

/// Flags of a child. Its context is that of others, too, and is not released with it.
#define CSCHED_CHILD_SHARES UINT32_C(0x80000000)
/// That context is given up with this one.
#define CSCHED_CHILD_OWNS UINT32_C(0x40000000)

/// Calls the block of a child. NULL: its value is there; else the error that it has thrown.
typedef void *CSCHED_NULLABLE (*csched_child_call)(void *children, void *child);

/// The calls of children to their embedder: on a worker, under no lock. Each is given the children.
typedef struct {
    csched_child_call call;
    /// Releases the context of a block, or the object of a child.
    void (*release)(void *CSCHED_NULLABLE context);
    /// All have finished. Returns whether they were taken meanwhile.
    bool (*finished)(void *children);
    /// The turn of a child has come that was taken before it.
    void (*turn)(void *children, void *child);
    /// A child that was taken while it ran has returned its value.
    void (*returned)(void *children, void *child);
    /// A child has thrown; the embedder takes all of them.
    void (*threw)(void *children, void *child, void *error);
    /// The scheduler was shut down, or has no memory: a child cannot run. The embedder takes all of them.
    void (*refused)(void *children, void *child);
    /// Nobody uses the memory of the children any more, which were taken while somebody did.
    void (*let_go)(void *children);
} csched_children_face;

/// Children that lie next to each other.
typedef struct csched_region {
    struct csched_region *CSCHED_NULLABLE next;
    csched_child *nodes;
    size_t capacity;
} csched_region;

/// The children of one run of a composite's registration. In memory of the embedder's.
struct csched_children {
    const csched_children_face *face;
    void *CSCHED_NULLABLE owner;     ///< the embedder's
    void *CSCHED_NULLABLE composite; ///< the embedder's: whose children they are
    csched_scheduler *scheduler;
    uint64_t word;   ///< atomic: see children.c
    int64_t pending; ///< atomic, of a group: see children.c
    uint64_t count;  ///< atomic: how many were published
    // Of the registering thread.
    uint64_t number;
    csched_child *CSCHED_NULLABLE next;
    csched_child *CSCHED_NULLABLE limit;
    csched_region *last;
    bool owns_blocks; ///< a child of them has CSCHED_CHILD_OWNS
    // Of whoever runs the cascade.
    csched_child *CSCHED_NULLABLE cursor;
    csched_region *CSCHED_NULLABLE cursor_region;
    csched_region first;
    bool is_cascade;
    bool is_closed; ///< under the embedder's lock
    // The embedder's, under its lock.
    bool is_over;  ///< it has answered `finished`, or the close has
    int32_t epoch; ///< its number of the registration
    bool has_objects;
    bool is_in_use; ///< they were taken, and `let_go` is to come, or has
    bool was_taken;
    uint64_t taken; ///< how many were
};

/// The calling thread: what tells it from all others, while it runs. Never 0.
uintptr_t csched_thread_mark(void);

/// Children of a composite: none so far.
///
/// - nodes: room for the first ones, `capacity` of them, for as long as the children.
void csched_children_init(csched_children *children, const csched_children_face *face, void *owner,
                          csched_scheduler *scheduler, bool is_cascade, csched_child *nodes, size_t capacity);

/// Gives up the contexts that children have together. Nobody is inside any more, and under no lock.
void csched_children_give_up(csched_children *children);

/// Gives up those contexts and the objects, and frees what the children have allocated. Nobody uses them any
/// more.
void csched_children_destroy(csched_children *children);

/// Room for another child, to be filled and sent. NULL: the embedder is to make an object: they were taken,
/// memory is exhausted, this is another registration than `epoch`, or not the registering thread.
///
/// - thread: the mark of the registering thread. On another thread `children` is not looked at.
csched_child *CSCHED_NULLABLE csched_children_append(csched_children *children, uintptr_t thread,
                                                     int32_t epoch);

/// Publishes the child that was appended, which may begin before the call returns: at once in a group, in a
/// cascade when it was begun and the others have finished. False: all were taken meanwhile, and this one was
/// not: it is the caller's.
bool csched_children_send(csched_children *children, csched_child *child);

/// Room for `count` children next to each other, likewise. NULL likewise.
csched_child *CSCHED_NULLABLE csched_children_append_range(csched_children *children, uintptr_t thread,
                                                           int32_t epoch, size_t count);

/// Publishes the range that was appended, in a group. They have no values, and share a context, which the
/// first of them owns. False: as csched_children_send; none of them was taken.
bool csched_children_send_range(csched_children *children, csched_child *first, size_t count);

/// The registration is over; they were not taken. Under the embedder's lock, under which they would be. True:
/// all have finished. False: those of a group go on; a cascade is to be begun.
bool csched_children_close(csched_children *children);

/// Begins a cascade that was closed. Under no lock.
void csched_children_begin(csched_children *children);

/// Where children are when they are taken.
typedef struct {
    csched_region *CSCHED_NULLABLE region;
    size_t index;     ///< in the region
    uint64_t left;    ///< how many are still to be taken
    uint64_t current; ///< of a cascade: how many have finished
    bool is_begun;    ///< it is a cascade, and was begun
    bool is_running;  ///< the current one runs, or has finished since
    bool is_in_use;   ///< somebody uses their memory, or may, and will let it go
    uint64_t taken;   ///< how many were
} csched_taking;

/// Begins to take all children. Under the embedder's lock, once; it holds their memory for those who may use
/// it, until `face.let_go`.
csched_taking csched_children_take(csched_children *children);

/// The next child, in the order of registration, and what it was; never TAKEN nor WITHDRAWN. NULL: it was the
/// last one.
csched_child *CSCHED_NULLABLE csched_children_take_next(csched_children *children, csched_taking *taking,
                                                        csched_child_state *state);

/// Starts another walk over the taken children, from the first one on. Under the embedder's lock.
csched_taking csched_children_walk(csched_children *children);

/// The next one, in the order of registration. NULL: it was the last one.
csched_child *CSCHED_NULLABLE csched_children_walk_next(csched_taking *walk);

/// All have been taken. False: nobody uses their memory any more, and `face.let_go` will not be called.
bool csched_children_taken(csched_children *children, csched_taking *taking);

/// Returns the state of a child, under no lock. Acquire: FINISHED means that its value can be read.
csched_child_state csched_child_state_of(const csched_child *child);

/// The turn that an operation is: of children, and of one of them, or of a range of them, where that is NULL.
typedef struct {
    csched_children *CSCHED_NULLABLE children;
    csched_child *CSCHED_NULLABLE child;
} csched_children_turn;

/// Whose turn an operation is; no children: it is something else.
csched_children_turn csched_children_turn_of(const csched_operation *operation);

CSCHED_ASSUME_NONNULL_END

#endif
