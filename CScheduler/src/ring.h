// ring.h - the last events of a thread: that thread writes, anybody reads. And all rings of the process.
//
// Contracts stand here, the argument (V1.., P55..) in ring.c.

#ifndef CSCHEDULER_RING_H
#define CSCHEDULER_RING_H

#include "port.h"

enum { CSCHED_RING_WORDS = 4, CSCHED_RING_OWNER_WORDS = 3 };

/// An event: words, whatever they mean.
typedef struct {
    uint64_t words[CSCHED_RING_WORDS];
} csched_ring_event;

/// Of which thread a ring is, in the caller's words.
typedef struct {
    uint64_t words[CSCHED_RING_OWNER_WORDS];
} csched_ring_owner;

typedef struct csched_ring_slot {
    csched_atomic(uint64_t) words[CSCHED_RING_WORDS];
} csched_ring_slot;

typedef struct csched_ring {
    // Written by the ring's thread, read by anybody.
    csched_aligned_to_line csched_atomic(uint64_t) written; // events, ever
    // Written when a thread takes the ring, or gives it back.
    csched_atomic(uint32_t) taken;
    csched_atomic(uint64_t) left;    // when it was given back: the number of that
    csched_atomic(uint32_t) takings; // odd: the next three are being written
    csched_atomic(uint64_t) first;   // number of the thread's first event
    csched_atomic(uint64_t) owner[CSCHED_RING_OWNER_WORDS];
    // Constants.
    struct csched_ring *older;
    uint64_t capacity; // a power of two
    csched_ring_slot slots[];
} csched_ring;

/// All rings: those in use, and those whose threads have ended, which keep their events until another thread
/// takes them. None is ever freed.
typedef struct {
    csched_atomic(csched_ring *) newest;
    csched_atomic(uint32_t) count;
    csched_atomic(uint64_t) departures; // of threads
} csched_rings;

/// Any thread. A ring for the calling thread, of a capacity that is a power of two, or more: a new one as
/// long as there are fewer than `enough`, else, of those whose threads have ended, the one that was left
/// longest ago. NULL: out of memory. Lock-free, O(rings).
csched_ring *csched_rings_take(csched_rings *rings, const csched_ring_owner *owner, uint64_t capacity,
                               uint32_t enough);
/// The ring's thread, which writes no more.
void csched_ring_give_back(csched_rings *rings, csched_ring *ring);

/// The ring's thread. Wait-free; on x86 five plain stores.
void csched_ring_write(csched_ring *ring, uint64_t word0, uint64_t word1, uint64_t word2, uint64_t word3);

/// The result of reading a ring.
typedef struct {
    csched_ring_owner owner;
    uint64_t count; // events that were copied
    uint64_t lost;  // events of the same thread that were there before those
} csched_ring_contents;

/// Any thread, at any time. Copies the last events of the ring's thread, the oldest first; `events` has room
/// for its capacity. What is overwritten meanwhile is not among them; where another thread takes the ring
/// meanwhile, there are none. Wait-free, O(capacity).
csched_ring_contents csched_ring_read(const csched_ring *ring, csched_ring_event *events);

#endif
