// deque.h - a worker's operations: the owner pushes and pops at the bottom, thieves take from the top.
//
// Contracts are stated here, the argument (D1.., P1..) in deque.c.

#ifndef CSCHEDULER_DEQUE_H
#define CSCHEDULER_DEQUE_H

#include "port.h"
#include "reclaim.h"
#include "slot.h"
#include "tuning.h"

typedef struct csched_buffer csched_buffer;

typedef struct {
    // The cache line that thieves write.
    csched_aligned_to_line csched_atomic(int64_t) top;
    // Written by the owner, read by thieves.
    csched_aligned_to_line csched_atomic(int64_t) bottom;
    csched_atomic(int64_t) open; // D3
    csched_atomic(csched_buffer *) buffer;
    // Private to the owner.
    int64_t top_seen;  // a lower bound of top
    int64_t opened;    // what it last stored in open
    int64_t open_next; // when bottom gets here, look whether to open further
    csched_reclaim *domain;
} csched_deque;

/// `capacity`: the initial one, a power of two. False: out of memory.
bool csched_deque_init(csched_deque *deque, csched_reclaim *domain, int64_t capacity);
/// No thief may be left.
void csched_deque_destroy(csched_deque *deque);

/// Owner. All or none; false: out of memory. Release: a thief that takes an operation sees the owner's
/// earlier writes.
bool csched_deque_push(csched_deque *deque, const csched_operation *operations, size_t count);
/// Owner. The newest operation (rarely the oldest, D4). False: empty.
bool csched_deque_pop(csched_deque *deque, csched_operation *operation);
/// Owner. Returns the memory of a large, empty buffer.
void csched_deque_trim(csched_deque *deque);

/// Any reader, inside a read section. Takes up to `room` of the oldest operations, at most half of the
/// waiting ones, and at least one. 0: empty, or another thief was faster. Lock-free.
size_t csched_deque_steal(csched_deque *deque, csched_operation *operations, size_t room);

/// Any reader, inside a read section. Takes the oldest operation if `wanted` accepts it. False: empty, not
/// wanted, or another thread was faster. Lock-free.
bool csched_deque_steal_if(csched_deque *deque,
                           bool (*wanted)(const void *context, const csched_operation *operation),
                           const void *context, csched_operation *operation);

/// Approximately how many operations wait. seq_cst: also used for the re-check before sleeping.
int64_t csched_deque_depth(const csched_deque *deque);

#endif
