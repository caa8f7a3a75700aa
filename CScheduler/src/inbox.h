// inbox.h - the operations that one outside thread submitted: that thread appends, workers take from the
// front.
//
// Contracts are stated here, the argument (B1.., P6..) in inbox.c.

#ifndef CSCHEDULER_INBOX_H
#define CSCHEDULER_INBOX_H

#include "port.h"
#include "reclaim.h"
#include "slot.h"

typedef struct csched_segment csched_segment;

typedef enum { CSCHED_APPENDED, CSCHED_APPEND_CLOSED, CSCHED_APPEND_NO_MEMORY } csched_append_result;

typedef struct {
    // The cache line that workers write.
    csched_aligned_to_line csched_atomic(csched_segment *) head;
    // Written by the owner (and once by the closing thread), read by workers.
    csched_aligned_to_line csched_atomic(uint64_t) published;
    // Private to the owner.
    csched_segment *tail;
    csched_reclaim *domain;
} csched_inbox;

/// False: out of memory.
bool csched_inbox_init(csched_inbox *inbox, csched_reclaim *domain);
/// No other thread may be left.
void csched_inbox_destroy(csched_inbox *inbox);

/// Owner. All or none, one publication. seq_cst: ordered before the caller's read of the sleepers. Release: a
/// worker that takes an operation sees the owner's earlier writes.
csched_append_result csched_inbox_append(csched_inbox *inbox, const csched_operation *operations,
                                         size_t count);

/// Any thread, inside a read section. From now on append returns CSCHED_APPEND_CLOSED; appended operations
/// stay.
void csched_inbox_close(csched_inbox *inbox);

/// Any reader, inside a read section. Takes up to `room` of the oldest, in their order. 0: empty, or another
/// worker was faster. Lock-free.
size_t csched_inbox_take(csched_inbox *inbox, csched_operation *operations, size_t room);

/// Any reader, inside a read section. seq_cst: also the re-check before sleeping.
bool csched_inbox_is_empty(const csched_inbox *inbox);

/// How many operations were ever appended.
uint64_t csched_inbox_appended(const csched_inbox *inbox);
/// Any reader, inside a read section: how many operations wait. An estimate at this moment.
uint64_t csched_inbox_waiting(const csched_inbox *inbox);

#endif
