// memories.c - what the C library does with memory, by the explorer's means.

#include "engine.h"
#include "explorer/stdlib.h"
#include "heap.h"

#undef malloc
#undef calloc
#undef realloc
#undef aligned_alloc
#undef free
#undef memset
#undef memcpy
#undef memmove

void *explorer_malloc(size_t size) { return explorer_allocate(size, 0); }

void *explorer_aligned_alloc(size_t alignment, size_t size) { return explorer_allocate(size, alignment); }

void *explorer_calloc(size_t count, size_t size)
{
    size_t bytes = 0;
    void *memory = __builtin_mul_overflow(count, size, &bytes) ? NULL : explorer_allocate(bytes, 0);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

void *explorer_realloc(void *memory, size_t size)
{
    void *larger = explorer_allocate(size, 0);
    if (memory != NULL && larger != NULL) {
        size_t before = heap_size(memory);
        (void)explorer_memcpy(larger, memory, before < size ? before : size);
        explorer_free(memory);
    }
    return larger;
}

void *explorer_memset(void *memory, int byte, size_t count)
{
    engine_watch(memory, count, true, __builtin_return_address(0));
    return memset(memory, byte, count);
}

void *explorer_memcpy(void *into, const void *from, size_t count)
{
    engine_watch(from, count, false, __builtin_return_address(0));
    engine_watch(into, count, true, __builtin_return_address(0));
    return memcpy(into, from, count);
}

void *explorer_memmove(void *into, const void *from, size_t count)
{
    engine_watch(from, count, false, __builtin_return_address(0));
    engine_watch(into, count, true, __builtin_return_address(0));
    return memmove(into, from, count);
}
