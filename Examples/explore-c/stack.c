#include "stack.h"

#ifdef STACK_TAGGED
enum { STEP = 1 };
#else
enum { STEP = 0 };
#endif

void stack_init(stack *stack)
{
    atomic_init(&stack->head, ((head){.top = NONE, .tag = 0}));
    for (int node = 0; node < NODES; node++) {
        atomic_init(&stack->next[node], NONE);
    }
}

void stack_push(stack *stack, uint16_t node)
{
    head seen = atomic_load_explicit(&stack->head, memory_order_relaxed);
    head pushed;
    do {
        atomic_store_explicit(&stack->next[node], seen.top, memory_order_relaxed);
        pushed = (head){.top = node, .tag = (uint16_t)(seen.tag + STEP)};
    } while (!atomic_compare_exchange_weak_explicit(&stack->head, &seen, pushed, memory_order_release,
                                                    memory_order_relaxed));
}

bool stack_pop(stack *stack, uint16_t *node)
{
    head seen = atomic_load_explicit(&stack->head, memory_order_acquire);
    head popped;
    do {
        if (seen.top == NONE) {
            return false;
        }
        // Without a tag it fails here: other threads may pop this node, and push it again on top of
        // another node.
        uint16_t next = atomic_load_explicit(&stack->next[seen.top], memory_order_relaxed);
        popped = (head){.top = next, .tag = (uint16_t)(seen.tag + STEP)};
    } while (!atomic_compare_exchange_weak_explicit(&stack->head, &seen, popped, memory_order_acquire,
                                                    memory_order_acquire));
    *node = seen.top;
    return true;
}
