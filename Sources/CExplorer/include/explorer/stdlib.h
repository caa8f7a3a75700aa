/// explorer/stdlib.h - memory under the explorer: poisoned, checked for late uses, and never used twice in an
/// execution.
///
/// After this header malloc, calloc, aligned_alloc and free are the explorer's. An address does not come
/// back, so an ABA of addresses shows as a use after free; one of nodes that the program itself keeps shows
/// as it is.

#ifndef EXPLORER_STDLIB_H
#define EXPLORER_STDLIB_H

#include <stdlib.h>
#include <string.h>

#include "../explorer.h"

static inline void *explorer_calloc(size_t count, size_t size)
{
    size_t bytes = 0;
    void *memory = __builtin_mul_overflow(count, size, &bytes) ? NULL : explorer_allocate(bytes, 0);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

#define malloc(size) explorer_allocate(size, 0)
#define calloc(count, size) explorer_calloc(count, size)
#define aligned_alloc(alignment, size) explorer_allocate(size, alignment)
#define free(memory) explorer_free(memory)

#endif
