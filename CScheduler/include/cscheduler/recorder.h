/// recorder.h - the last events of every thread: what was submitted, began and ended, was stolen, and slept.
///
/// Always there, off at first. While off an operation costs three instructions more; while on, 5 to 20 ns,
/// most of it two reads of the processor's counter. The newest events of a thread replace its oldest ones:
/// what is lost is counted. A thread gets its memory with its first event; from 64 threads on those that come
/// have the rings of those that ended first.

#ifndef CSCHEDULER_RECORDER_H
#define CSCHEDULER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "annotations.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// The kind of event: of an operation, or of a number, which is the subject.
typedef enum {
    CSCHED_RECORDED_SUBMIT = 1, ///< an operation is being handed over
    CSCHED_RECORDED_REFUSE,     ///< it was not accepted
    CSCHED_RECORDED_BEGIN,      ///< its body begins
    CSCHED_RECORDED_END,        ///< its body has returned
    CSCHED_RECORDED_CANCEL,     ///< it was cancelled by a shutdown
    CSCHED_RECORDED_STEAL,      ///< a worker has taken from another one; number: how many operations
    CSCHED_RECORDED_SEARCH,     ///< a worker has nothing to do, and looks for something
    CSCHED_RECORDED_PARK,       ///< a worker goes to sleep
    CSCHED_RECORDED_UNPARK,     ///< a worker has been woken
    CSCHED_RECORDED_WAKE,       ///< a sleeping worker is woken; number: its seat
    CSCHED_RECORDED_BLOCK,      ///< the running body is about to block
    CSCHED_RECORDED_UNBLOCK,    ///< it goes on
    CSCHED_RECORDED_REPLACE,    ///< a worker that blocks is replaced; number: its index
    CSCHED_RECORDED_TIMER,      ///< an operation's timer is due, which hands it over
    CSCHED_RECORDED_RESUME,     ///< the recorder was started again: what had begun before has no end here
    CSCHED_RECORDED_OWN = 32,   ///< up to 63: of whoever calls csched_record()
} csched_recorded_kind;

typedef struct {
    uint64_t at_ns;   ///< CLOCK_MONOTONIC, as near as its ticks tell: some 10 ns
    uint64_t run;     ///< of an operation, its function; or 0
    uint64_t subject; ///< of an operation, its context; or a number
    uint64_t extra;   ///< of an operation, its second word; or the caller's own
    uint32_t kind;    ///< a csched_recorded_kind
} csched_recorded_event;

typedef struct {
    int32_t kernel_id; ///< as in /proc/self/task
    char name[16];     ///< its name when it had its first event
    uint64_t lost;     ///< events of it that were replaced by newer ones
} csched_recorded_thread;

/// Of one thread the events that are there, the oldest first. All pointers are valid until it returns.
typedef void (*csched_recorder_visit)(void *CSCHED_NULLABLE context, const csched_recorded_thread *thread,
                                      const csched_recorded_event *events, size_t count);

/// Begins to record, in the whole process; nothing more where that is on. Any thread.
///
/// - `events`: how many are kept of a thread, 32 bytes each: rounded up to a power of two between 64 and
///   2^20; 0 for 8,192. Threads that have events already keep what they have.
void csched_recorder_start(uint32_t events);
/// Records nothing any more, but for events that are being written just now. Earlier events stay.
void csched_recorder_stop(void);
bool csched_recorder_is_on(void);

/// Calls `visit` for each thread that has events, or for the one of a kernel's id that is not 0, in no order,
/// while everything goes on. O(events). False: out of memory, and some threads were left out.
bool csched_recorder_read(int32_t kernel_id, csched_recorder_visit visit, void *CSCHED_NULLABLE context);

/// Records an event of the caller's own, on the calling thread; nothing while it is off, or without memory.
/// `kind`: CSCHED_RECORDED_OWN to 63. Not for signal handlers.
void csched_record(uint32_t kind, uint64_t subject, uint64_t extra);

CSCHED_ASSUME_NONNULL_END

#endif
