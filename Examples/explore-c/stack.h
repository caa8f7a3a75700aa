// stack.h - a lock-free stack of nodes from a pool (Treiber, 1986). It does not depend on the explorer.

#ifndef STACK_H
#define STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { NODES = 4, NONE = 0xFFFF };

typedef struct {
    uint16_t top; // an index, or NONE
    uint16_t tag; // grows with every change if STACK_TAGGED is defined
} head;

typedef struct {
    _Atomic(head) head;
    _Atomic(uint16_t) next[NODES];
} stack;

void stack_init(stack *stack);
void stack_push(stack *stack, uint16_t node);
/// Returns false if the stack was empty.
bool stack_pop(stack *stack, uint16_t *node);

#endif
