/// allocation_counter.h - counts every allocation of the process, whoever makes it, while it is switched on.

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t allocations;
    uint64_t deallocations;
    uint64_t bytes; ///< allocated, as the allocator rounds them
} allocation_counts;

/// False: the process does not run on a jemalloc that has hooks, and nothing is counted.
bool allocation_counter_start(void);
allocation_counts allocation_counter_stop(void);

/// Live bytes of the process by jemalloc's own accounts; 0 without it.
uint64_t allocation_counter_live_bytes(void);

#endif
