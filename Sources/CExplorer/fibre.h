// fibre.h - threads of execution that switch by a function call.

#ifndef EXPLORER_FIBRE_H
#define EXPLORER_FIBRE_H

#include <stddef.h>

/// A stack, and where its execution resumes. All zero: the thread that first calls `explorer_fibre_switch`
/// from it.
typedef struct {
    const void *stack; // its lowest address
    size_t size;
    void *resume; // the stack pointer, where it is suspended
    void (*body)(void);
    // The sanitizers' state of the fibre.
    void *fake_stack;
    void *shadow;
    unsigned beginnings;
} fibre;

/// The next switch to the fibre calls `body`, which must not return. `stack` and `size` are set. A suspended
/// fibre may be restarted: the contents of its stack are discarded.
void explorer_fibre_begin(fibre *begun, void (*body)(void));
/// Suspends the caller into `from`, and resumes `to`.
void explorer_fibre_switch(fibre *from, fibre *to);

#endif
