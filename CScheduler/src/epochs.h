// epochs.h - grace periods: readers note the period in which they begin, and one thread waits for the readers
// of earlier ones.
//
// Contracts are stated here, the argument (E1.., P60..) in epochs.c. The embedder provides the thread that
// waits, and handles forks (grace_epochs.c).

#ifndef CSCHEDULER_EPOCHS_H
#define CSCHEDULER_EPOCHS_H

#include "port.h"
#include "reclaim.h"

typedef struct csched_reader csched_reader;
struct csched_reader {
    csched_atomic(uint64_t) began;   // the period in which its section began; 0: it is in none
    uint32_t depth;                  // private to its thread: nested sections
    csched_atomic(uint32_t) awaited; // 1: the collector waits for the end of its section
    csched_atomic(uint32_t) taken;   // 1: it belongs to a thread
    csched_reader *older;            // constant once it is listed
} csched_aligned_to_line;

typedef struct {
    csched_atomic(uint64_t) period;         // starts at 1; written by the collector
    csched_atomic(csched_reader *) readers; // the newest
    csched_aligned_to_line csched_atomic(csched_retired *) newest;
    csched_atomic(uint32_t) resting;               // 1: the collector waits for an object to be retired
    csched_atomic(uint32_t) signals;               // the collector sleeps on it
    csched_aligned_to_line csched_retired *oldest; // the collector's: the next to be taken, or `stub`
    csched_retired stub;
} csched_epochs;

void csched_epochs_init(csched_epochs *epochs);

/// Returns a reader for the calling thread, or NULL without memory. Lock-free; linear in the readers.
csched_reader *csched_epochs_join(csched_epochs *epochs);
/// Returns a reader, outside its sections. Its memory is kept for the next thread.
void csched_epochs_leave(csched_reader *reader);

/// Begins a section. Wait-free.
void csched_epochs_enter(csched_epochs *epochs, csched_reader *reader);
/// Ends a section. Wait-free except for the system call that wakes the collector.
void csched_epochs_exit(csched_epochs *epochs, csched_reader *reader);

/// Lets `object` be collected after a grace period. Wait-free except for the system call that wakes the
/// collector; from any thread, also in a section.
void csched_epochs_retire(csched_epochs *epochs, csched_retired *object);

/// Takes some of the retired objects, waits for a grace period, and returns the objects, linked by `next`: no
/// reader can see them any more. NULL: there are none. Called by one thread at a time, the collector, outside
/// any section. A thread that is stopped in a section, or between the two steps of `retire`, blocks the
/// collector.
csched_retired *csched_epochs_collect(csched_epochs *epochs, uint64_t *count);
/// Returns when an object was retired, or spuriously. Called by the collector, after a `collect` that
/// returned NULL.
void csched_epochs_rest(csched_epochs *epochs);

/// In a child of fork(), whose only thread has the reader `mine` (NULL: none), and outside `collect`: the
/// parent's other readers no longer exist. Returns how many objects are retired; one that another thread was
/// about to link is lost, with all objects after it.
uint64_t csched_epochs_after_fork(csched_epochs *epochs, csched_reader *mine);

#endif
