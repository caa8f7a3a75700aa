// memories.c - memory of the explored program: allocation, and what the C library does with it.

#include "execution.h"
#include "explorer/stdlib.h"
#include "heap.h"
#include "memory.h"

#undef malloc
#undef calloc
#undef realloc
#undef aligned_alloc
#undef free
#undef memset
#undef memcpy
#undef memmove

void *explorer_allocate(size_t size, size_t alignment)
{
    bool refused = explorer_engine.until_refused != 0 && --explorer_engine.until_refused == 0;
    if (refused || explorer_engine.out_of_memory ||
        (explorer_engine.program->allocations_fail && explorer_engine.self >= 0 && explorer_fails_here())) {
        return NULL;
    }
    void *memory = explorer_heap_allocate(size, alignment);
    if (memory == NULL) {
        explorer_fail("the program needs more memory than the explorer has");
    }
    return memory;
}

bool explorer_owns(const void *memory) { return explorer_heap_has(memory); }

void explorer_free(void *memory)
{
    if (memory == NULL) {
        return;
    }
    if (explorer_engine.self >= 0 &&
        explorer_heap_is_in_use(memory, explorer_engine.self, explorer_memory_known(explorer_engine.self))) {
        explorer_fail("memory is freed by %s while another thread may still use it (R3)",
                      explorer_engine.threads[explorer_engine.self].name);
    }
    if (!explorer_heap_free(memory)) {
        explorer_fail("freed twice, or never allocated (R3)");
    }
}

// MARK: As the C library has it

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
        size_t before = explorer_heap_size(memory);
        (void)explorer_memcpy(larger, memory, before < size ? before : size);
        explorer_free(memory);
    }
    return larger;
}

void *explorer_memset(void *memory, int byte, size_t count)
{
    explorer_watch(memory, count, true, __builtin_return_address(0));
    return memset(memory, byte, count);
}

void *explorer_memcpy(void *into, const void *from, size_t count)
{
    explorer_watch(from, count, false, __builtin_return_address(0));
    explorer_watch(into, count, true, __builtin_return_address(0));
    return memcpy(into, from, count);
}

void *explorer_memmove(void *into, const void *from, size_t count)
{
    explorer_watch(from, count, false, __builtin_return_address(0));
    explorer_watch(into, count, true, __builtin_return_address(0));
    return memmove(into, from, count);
}
