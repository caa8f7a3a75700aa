// wheel.h - hierarchical timing wheel: finds what is due at a tick, among any number of entries, in constant
// time.
//
// Owned by one thread: no access is shared. Contracts are stated here, the argument (H1..) in wheel.c.

#ifndef CSCHEDULER_WHEEL_H
#define CSCHEDULER_WHEEL_H

#include "port.h"
#include "tuning.h"

/// The head of every entry.
typedef struct csched_wheel_entry {
    struct csched_wheel_entry *next;
    uint64_t tick;
} csched_wheel_entry;

/// The last possible tick.
#define CSCHED_TICK_LAST (UINT64_MAX >> CSCHED_TICK_SHIFT)

#define CSCHED_WHEEL_SLOTS (1u << CSCHED_WHEEL_BITS)
#define CSCHED_WHEEL_WORDS ((CSCHED_WHEEL_SLOTS + 63) / 64)
#define CSCHED_WHEEL_LEVELS ((64 - CSCHED_TICK_SHIFT + CSCHED_WHEEL_BITS - 1) / CSCHED_WHEEL_BITS)

typedef struct {
    uint64_t now;            // every tick up to here was taken
    csched_wheel_entry *due; // of ticks up to `now`
    uint64_t occupied[CSCHED_WHEEL_LEVELS][CSCHED_WHEEL_WORDS];
    csched_wheel_entry *slots[CSCHED_WHEEL_LEVELS][CSCHED_WHEEL_SLOTS];
} csched_wheel;

void csched_wheel_init(csched_wheel *wheel, uint64_t now);
void csched_wheel_insert(csched_wheel *wheel, csched_wheel_entry *entry);
/// Advances the wheel towards the tick `now`, which never decreases, and takes entries that are due. NULL: no
/// more of them.
csched_wheel_entry *csched_wheel_take(csched_wheel *wheel, uint64_t now);
/// The tick at which the wheel has to be advanced: no later than that of the first entry. UINT64_MAX: there
/// is none.
uint64_t csched_wheel_next(const csched_wheel *wheel);
/// Keeps only the entries for which `keeps` returns true.
void csched_wheel_filter(csched_wheel *wheel, bool (*keeps)(csched_wheel_entry *entry, void *context),
                         void *context);

#endif
