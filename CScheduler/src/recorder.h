// recorder.h - how the core reports events to the recorder.

#ifndef CSCHEDULER_RECORDER_INTERNAL_H
#define CSCHEDULER_RECORDER_INTERNAL_H

#include "cscheduler/operation.h"
#include "cscheduler/recorder.h"
#include "port.h"

/// Records an event of an operation, passed word by word: copying the whole struct would wait for the stores
/// that have just written it. For an event with a number, the number is passed as `context`. Any thread, also
/// in a read section or under a lock: it never waits, and allocates only at the first event of a thread.
void csched_recorder_note(uint32_t kind, csched_function run, const void *context, const void *extra);

static csched_always_inline void csched_note(csched_recorded_kind kind, uint64_t number)
{
    if (csched_unlikely(csched_is_recording())) {
        csched_recorder_note(kind, NULL, (const void *)(uintptr_t)number, NULL);
    }
}

static csched_always_inline void csched_note_operations(csched_recorded_kind kind,
                                                        const csched_operation *operations, size_t count)
{
    for (size_t index = 0; csched_unlikely(csched_is_recording()) && index < count; index++) {
        csched_recorder_note(kind, operations[index].run, operations[index].context, operations[index].extra);
    }
}

#endif
