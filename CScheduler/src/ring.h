// ring.h - the last events of a thread, which that thread writes and any thread reads; and the list of all
// rings of the process.
//
// Contracts are stated here, the argument (V1.., P55..) in ring.c.

#ifndef CSCHEDULER_RING_H
#define CSCHEDULER_RING_H

#include "port.h"

enum { CSCHED_RING_WORDS = 4, CSCHED_RING_OWNER_WORDS = 3 };

/// An event: uninterpreted words.
typedef struct {
    uint64_t words[CSCHED_RING_WORDS];
} csched_ring_event;

/// Identifies the thread of a ring, in words that the caller defines.
typedef struct {
    uint64_t words[CSCHED_RING_OWNER_WORDS];
} csched_ring_owner;

typedef struct csched_ring_slot {
    csched_atomic(uint64_t) words[CSCHED_RING_WORDS];
} csched_ring_slot;

typedef struct csched_ring {
    // Written by the ring's thread, read by any thread.
    csched_aligned_to_line csched_atomic(uint64_t) written; // events so far
    // Written when a thread takes the ring, or gives it back.
    csched_atomic(uint32_t) taken;
    csched_atomic(uint64_t) left;    // ordinal number of its last give-back
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

/// Any thread. Returns a ring for the calling thread, of at least `capacity`, a power of two: a new one while
/// there are fewer than `enough`, else, of those whose threads have ended, the one that was given back
/// longest ago. NULL: out of memory. Lock-free, O(rings).
csched_ring *csched_rings_take(csched_rings *rings, const csched_ring_owner *owner, uint64_t capacity,
                               uint32_t enough);
/// The ring's thread, which must not write afterwards.
void csched_ring_give_back(csched_rings *rings, csched_ring *ring);

/// The ring's thread. Wait-free; on x86 five plain stores.
void csched_ring_write(csched_ring *ring, uint64_t word0, uint64_t word1, uint64_t word2, uint64_t word3);

/// The result of reading a ring.
typedef struct {
    csched_ring_owner owner;
    uint64_t count; // events that were copied
    uint64_t lost;  // earlier events of the same thread
} csched_ring_contents;

/// Any thread, at any time. Copies the last events of the ring's thread, the oldest first; `events` has room
/// for its capacity. Events that are overwritten meanwhile are not among them; if another thread takes the
/// ring meanwhile, there are none. Wait-free, O(capacity).
csched_ring_contents csched_ring_read(const csched_ring *ring, csched_ring_event *events);

#endif
