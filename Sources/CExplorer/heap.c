// heap.c - a bump allocator: a freed block keeps its place, so that every late access is detected.

#include "heap.h"

#include <stdint.h>
#include <string.h>

enum { ALIGNMENT_MOST = 4096, GRANULE = 16, GRANULES = 1 << 16, POISON = 0xA5 };
enum { NEVER, FIRST, INSIDE, FREED };

static _Alignas(ALIGNMENT_MOST) unsigned char arena[GRANULES * GRANULE];
static unsigned char state[GRANULES];  // of every granule
static vector_clock touched[GRANULES]; // when each thread used it last
static uint32_t first_of[GRANULES];    // of a granule in a block: the block's first one
static uint32_t size_of[GRANULES];     // of a first granule: the block's bytes
static size_t used;                    // granules
static size_t live;                    // blocks

void explorer_heap_begin(void)
{
    memset(state, NEVER, used);
    memset(touched, 0, used * sizeof touched[0]);
    used = 0;
    live = 0;
}

void *explorer_heap_allocate(size_t size, size_t alignment)
{
    size_t step = alignment > GRANULE ? alignment / GRANULE : 1;
    if (alignment > ALIGNMENT_MOST || size > sizeof arena) {
        return NULL;
    }
    size_t first = (used + step) / step * step; // at least one granule lies between two blocks
    size_t count = size == 0 ? 1 : (size + GRANULE - 1) / GRANULE;
    if (first + count > GRANULES) {
        return NULL;
    }
    memset(arena + first * GRANULE, POISON, count * GRANULE);
    memset(state + first, INSIDE, count);
    state[first] = FIRST;
    size_of[first] = (uint32_t)size;
    for (size_t index = first; index < first + count; index++) {
        first_of[index] = (uint32_t)first;
    }
    used = first + count;
    live++;
    return arena + first * GRANULE;
}

bool explorer_heap_has(const void *address) { return (uintptr_t)address - (uintptr_t)arena < sizeof arena; }

static size_t granule(const void *address) { return ((uintptr_t)address - (uintptr_t)arena) / GRANULE; }

bool explorer_heap_free(void *memory)
{
    bool is_first = explorer_heap_has(memory) && (unsigned char *)memory == arena + granule(memory) * GRANULE;
    if (!is_first || state[granule(memory)] != FIRST) {
        return false;
    }
    size_t first = granule(memory);
    size_t index = first;
    do {
        state[index++] = FREED;
    } while (index < used && state[index] == INSIDE);
    memset(memory, POISON, (index - first) * GRANULE); // late reads find no valid value
    live--;
    return true;
}

bool explorer_heap_is_live(const void *address, size_t size)
{
    if (!explorer_heap_has(address)) {
        return true;
    }
    size_t index = granule(address);
    if (state[index] != FIRST && state[index] != INSIDE) {
        return false;
    }
    const unsigned char *first = arena + first_of[index] * GRANULE;
    return (size_t)((const unsigned char *)address - first) + size <= size_of[first_of[index]];
}

size_t explorer_heap_size(const void *memory)
{
    return explorer_heap_has(memory) && state[granule(memory)] == FIRST ? size_of[granule(memory)] : 0;
}

void explorer_heap_touch(const void *address, int thread, uint32_t now)
{
    if (explorer_heap_has(address)) {
        touched[granule(address)].at[thread] = now;
    }
}

bool explorer_heap_is_in_use(const void *memory, int thread, const vector_clock *known)
{
    if (!explorer_heap_has(memory)) {
        return false;
    }
    size_t index = granule(memory);
    do {
        for (int other = 0; other < EXPLORER_THREADS; other++) {
            if (other != thread && touched[index].at[other] > known->at[other]) {
                return true;
            }
        }
        index++;
    } while (index < used && state[index] == INSIDE);
    return false;
}

size_t explorer_heap_live(void) { return live; }
