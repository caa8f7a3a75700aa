// fibre.h - threads of execution that switch by a function call.

#ifndef EXPLORER_FIBRE_H
#define EXPLORER_FIBRE_H

#include <stddef.h>

/// Where a suspended fibre goes on.
typedef void *fibre;

/// A fibre on a stack of its own, which calls `body` when it is switched to first; `body` must not return.
fibre fibre_create(void *stack, size_t size, void (*body)(void));
/// Suspends the caller into `from`, and goes on with `to`.
void fibre_switch(fibre *from, fibre to);

#endif
