// heap.h - memory of the explored program: poisoned, never used twice in an execution, checked.

#ifndef EXPLORER_HEAP_H
#define EXPLORER_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/// Forgets all blocks, for a new execution: addresses are the same in every one.
void heap_begin(void);
/// NULL: the program needs more than the explorer has.
void *heap_allocate(size_t size, size_t alignment);
/// False: it is no live block.
bool heap_free(void *memory);
/// Whether the address may be used: it lies in a live block, or outside the heap.
bool heap_is_live(const void *address);
/// How many blocks were not freed.
size_t heap_leaked(void);

#endif
