// block_calls.c - the call of a child's block, by the worker whose turn it is.

#include "CBlockCalls.h"

#include <stdatomic.h>
#include <stddef.h>

// relaxed: the scheduler orders the call of `block_calls_apart` before the blocks that need it.
static _Atomic(block_calls_function) calls_apart;

void block_calls_apart(block_calls_function apart)
{
    atomic_store_explicit(&calls_apart, apart, memory_order_relaxed);
}

void *block_calls_child(void *children, void *child)
{
    block_calls_function apart = atomic_load_explicit(&calls_apart, memory_order_relaxed);
    return __builtin_expect(apart != NULL, 0) ? apart(children, child) : block_calls_in_node(child);
}
