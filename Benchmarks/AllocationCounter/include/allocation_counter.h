/// allocation_counter.h - counts every allocation of a process, in all of its libraries.

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t loops;       ///< how often the measured loop ended; 0: no code marked the loop
    uint64_t allocations; ///< within the measured loop
    uint64_t allocated;   ///< bytes within the measured loop, as the allocator rounds them
    int64_t left;         ///< bytes allocated and not freed, from the start until the stop
} allocation_counts;

/// Installs the counter. Must be called before the process has a second thread: a thread that ends just
/// after jemalloc's hooks have changed leaves a dangling entry in their lists (5.3.0). False if the process
/// does not run on a jemalloc with hooks.
bool allocation_counter_install(void);

/// Starts counting from zero; the counts are 0 if no counter is installed. The calls of
/// MeasuredLoop.h delimit the measured loop; these two functions must not run concurrently with them.
void allocation_counter_start(void);
allocation_counts allocation_counter_stop(void);

/// Live bytes of the process according to jemalloc; 0 without it.
uint64_t allocation_counter_live_bytes(void);

#endif
