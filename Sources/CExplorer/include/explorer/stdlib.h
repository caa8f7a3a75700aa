/// explorer/stdlib.h - memory under the explorer: poisoned, checked for late uses, and never used twice in an
/// execution.
///
/// After this header malloc, calloc, realloc, aligned_alloc and free are the explorer's, and memset, memcpy
/// and memmove are watched. Addresses are not reused, so an ABA of addresses shows as a use after free; an
/// ABA of nodes that the program itself recycles shows as such. For C; in C++ atomic.hpp makes `new` and
/// `delete` the explorer's.

#ifndef EXPLORER_STDLIB_H
#define EXPLORER_STDLIB_H

#ifdef __cplusplus
#error "explorer/stdlib.h is for C; in C++ explorer/atomic.hpp brings new and delete"
#endif

#include <stdlib.h>
#include <string.h>

#include "../explorer.h"

void *explorer_malloc(size_t size);
void *explorer_calloc(size_t count, size_t size);
void *explorer_realloc(void *memory, size_t size);
void *explorer_aligned_alloc(size_t alignment, size_t size);
void *explorer_memset(void *memory, int byte, size_t count);
void *explorer_memcpy(void *into, const void *from, size_t count);
void *explorer_memmove(void *into, const void *from, size_t count);

#define malloc explorer_malloc
#define calloc explorer_calloc
#define realloc explorer_realloc
#define aligned_alloc explorer_aligned_alloc
#define free explorer_free
#define memset explorer_memset
#define memcpy explorer_memcpy
#define memmove explorer_memmove

#endif
