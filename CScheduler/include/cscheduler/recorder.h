/// recorder.h - the last events of every thread: submissions, begins and ends, steals, sleeps.
///
/// Always compiled in, initially off. While off, an operation costs three more instructions; while on, 5 to
/// 20 ns more, mostly for two reads of the processor's time-stamp counter. A thread's newest events overwrite
/// its oldest ones; lost events are counted. A thread's memory is allocated with its first event; from 64
/// threads on, new threads reuse the rings of the threads that ended first.

#ifndef CSCHEDULER_RECORDER_H
#define CSCHEDULER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "annotations.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// The kind of event. Its subject is an operation or a number.
typedef enum {
    CSCHED_RECORDED_SUBMIT = 1, ///< an operation is being submitted
    CSCHED_RECORDED_REFUSE,     ///< it was not accepted
    CSCHED_RECORDED_BEGIN,      ///< its body begins
    CSCHED_RECORDED_END,        ///< its body has returned
    CSCHED_RECORDED_CANCEL,     ///< it was cancelled by a shutdown
    CSCHED_RECORDED_STEAL,      ///< a worker has stolen from another one; number: how many operations
    CSCHED_RECORDED_SEARCH,     ///< a worker has nothing to do, and begins to search
    CSCHED_RECORDED_PARK,       ///< a worker goes to sleep
    CSCHED_RECORDED_UNPARK,     ///< a worker has been woken
    CSCHED_RECORDED_WAKE,       ///< a sleeping worker is woken; number: its seat
    CSCHED_RECORDED_BLOCK,      ///< the running body is about to block
    CSCHED_RECORDED_UNBLOCK,    ///< it continues
    CSCHED_RECORDED_REPLACE,    ///< a blocked worker is replaced; number: its index
    CSCHED_RECORDED_TIMER,      ///< an operation's timer is due, and submits it
    CSCHED_RECORDED_RESUME,     ///< the recorder was restarted: earlier begins have no matching end
    CSCHED_RECORDED_OWN = 32,   ///< up to 63: for callers of csched_record()
} csched_recorded_kind;

typedef struct {
    uint64_t at_ns;   ///< CLOCK_MONOTONIC, computed from ticks: accurate to about 10 ns
    uint64_t run;     ///< of an operation, its function; or 0
    uint64_t subject; ///< of an operation, its context; or a number
    uint64_t extra;   ///< of an operation, its second word; or the caller's own
    uint32_t kind;    ///< a csched_recorded_kind
} csched_recorded_event;

typedef struct {
    int32_t kernel_id; ///< as in /proc/self/task
    char name[16];     ///< its name at its first event
    uint64_t lost;     ///< its events that were overwritten by newer ones
} csched_recorded_thread;

/// Receives the stored events of one thread, oldest first. All pointers are valid until it returns.
typedef void (*csched_recorder_visit)(void *CSCHED_NULLABLE context, const csched_recorded_thread *thread,
                                      const csched_recorded_event *events, size_t count);

/// Starts recording in the whole process; no effect if it is already on. Any thread.
///
/// - `events`: how many to keep per thread, 32 bytes each, rounded up to a power of two between 64 and 2^20;
///   0 means 8,192. Threads that already have events keep their buffers.
void csched_recorder_start(uint32_t events);
/// Stops recording, except for events that are being written at this moment. Earlier events are kept.
void csched_recorder_stop(void);
bool csched_recorder_is_on(void);

/// Calls `visit` for each thread that has events, in no particular order; if `kernel_id` is not 0, only for
/// that thread. No thread is stopped meanwhile. O(events). False: out of memory, and some threads were
/// skipped.
bool csched_recorder_read(int32_t kernel_id, csched_recorder_visit visit, void *CSCHED_NULLABLE context);

/// Records a custom event on the calling thread; no effect while recording is off, or without memory. `kind`:
/// CSCHED_RECORDED_OWN to 63. Not for signal handlers.
void csched_record(uint32_t kind, uint64_t subject, uint64_t extra);

CSCHED_ASSUME_NONNULL_END

#endif
