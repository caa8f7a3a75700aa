// epochs.h - grace periods: readers note the period in which they begin, and one thread waits for the readers
// of earlier ones.
//
// The contracts stand here, the argument (E1.., P60..) in epochs.c. The thread that waits, and forks, are the
// embedder's affair (grace_epochs.c).

#ifndef CSCHEDULER_EPOCHS_H
#define CSCHEDULER_EPOCHS_H

#include "port.h"
#include "reclaim.h"

typedef struct csched_reader csched_reader;
struct csched_reader {
    csched_atomic(uint64_t) began;   // the period in which its section began; 0: it is in none
    uint32_t depth;                  // its thread's: sections around each other
    csched_atomic(uint32_t) awaited; // 1: the collector waits for the end of its section
    csched_atomic(uint32_t) taken;   // 1: it belongs to a thread
    csched_reader *older;            // constant once it is listed
} csched_aligned_to_line;

typedef struct {
    csched_atomic(uint64_t) period;         // from 1; the collector's
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
/// Gives a reader back, outside of its sections. Its memory is kept for the next thread.
void csched_epochs_leave(csched_reader *reader);

/// Begins a section. Wait-free.
void csched_epochs_enter(csched_epochs *epochs, csched_reader *reader);
/// Ends a section. Wait-free but for the system call that wakes the collector.
void csched_epochs_exit(csched_epochs *epochs, csched_reader *reader);

/// Lets `object` be collected after a grace period. Wait-free but for the system call that wakes the
/// collector; from any thread, also in a section.
void csched_epochs_retire(csched_epochs *epochs, csched_retired *object);

/// Takes some of the objects that are retired, waits for a grace period, and returns them, linked by `next`:
/// no reader can see them any more. NULL: there are none. One thread at a time, the collector, in no section.
/// A thread that is stopped in a section, or between the two steps of `retire`, stops it.
csched_retired *csched_epochs_collect(csched_epochs *epochs, uint64_t *count);
/// Returns when an object was retired, or without a reason. The collector, after a `collect` that gave NULL.
void csched_epochs_rest(csched_epochs *epochs);

/// In a child of fork(), whose only thread has the reader `mine` (NULL: none), and outside of `collect`: the
/// parent's other readers are no more. Returns how many objects are retired; one that another thread was
/// about to link is lost, with all behind it.
uint64_t csched_epochs_after_fork(csched_epochs *epochs, csched_reader *mine);

#endif
