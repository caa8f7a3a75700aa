// slot.h - the place of one operation inside a queue.
//
// Four relaxed words: a thief may read a slot while its owner writes the next operation into it. The thief
// then discards what it read, because its compare-exchange on the index fails; but the accesses must not be a
// data race.

#ifndef CSCHEDULER_SLOT_H
#define CSCHEDULER_SLOT_H

#include "cscheduler/operation.h"
#include "port.h"

typedef struct {
    csched_atomic(csched_function) run;
    csched_atomic(void *) context;
    csched_atomic(void *) extra;
    csched_atomic(csched_completion *) counter;
} csched_slot;

static inline void csched_slot_write(csched_slot *slot, const csched_operation *operation)
{
    csched_store(&slot->run, operation->run, relaxed);
    csched_store(&slot->context, operation->context, relaxed);
    csched_store(&slot->extra, operation->extra, relaxed);
    csched_store(&slot->counter, operation->counter, relaxed);
}

static inline csched_operation csched_slot_read(const csched_slot *slot)
{
    return (csched_operation){
        .run = csched_load(&slot->run, relaxed),
        .context = csched_load(&slot->context, relaxed),
        .extra = csched_load(&slot->extra, relaxed),
        .counter = csched_load(&slot->counter, relaxed),
    };
}

#endif
