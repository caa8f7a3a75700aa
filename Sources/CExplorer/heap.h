// heap.h - memory of the explored program: poisoned, never reused in an execution, checked.

#ifndef EXPLORER_HEAP_H
#define EXPLORER_HEAP_H

#include "clock.h"

/// Forgets all blocks, for a new execution: addresses are the same in every one.
void explorer_heap_begin(void);
/// NULL: the program needs more than the explorer has.
void *explorer_heap_allocate(size_t size, size_t alignment);
/// False: it is not a live block.
bool explorer_heap_free(void *memory);
/// Whether `size` bytes may be used: they lie in a live block, or outside the heap.
bool explorer_heap_is_live(const void *address, size_t size);
/// Whether the address lies in the heap.
bool explorer_heap_has(const void *address);
/// The size of a live block in bytes; 0: there is no live block at this address.
size_t explorer_heap_size(const void *memory);
/// Notes that the thread used the address at this time of its clock.
void explorer_heap_touch(const void *address, int thread, uint32_t now);
/// Whether a thread used the block without the freeing thread knowing of it.
bool explorer_heap_is_in_use(const void *memory, int thread, const vector_clock *known);
/// How many blocks were not freed.
size_t explorer_heap_live(void);

#endif
