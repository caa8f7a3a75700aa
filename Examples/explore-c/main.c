// main.c - the property of the stack, under every schedule with two preemptions.

#include <explorer.h>

#include <explorer/pthread.h>

#include "stack.h"

void ring_hands_over(void); // ring.cpp

static stack shared;
static int payload[NODES];         // plain: used after a pop
static _Atomic(int) popped[NODES]; // how often each was popped

static void pop_one(void)
{
    uint16_t node = NONE;
    if (stack_pop(&shared, &node)) {
        payload[node]++;
        (void)atomic_fetch_add_explicit(&popped[node], 1, memory_order_relaxed);
    }
}

static void *pops_one(void *unused)
{
    pop_one();
    return unused;
}

// Pops two nodes, and pushes the first one back.
static void *pops_two_and_returns_one(void *unused)
{
    uint16_t first = NONE;
    uint16_t second = NONE;
    if (stack_pop(&shared, &first)) {
        if (stack_pop(&shared, &second)) {
            payload[second]++;
            (void)atomic_fetch_add_explicit(&popped[second], 1, memory_order_relaxed);
        }
        stack_push(&shared, first);
    }
    return unused;
}

static void no_node_is_lost_or_doubled(void)
{
    stack_init(&shared);
    for (uint16_t node = 0; node < NODES; node++) {
        payload[node] = 0;
        atomic_init(&popped[node], 0);
    }
    for (uint16_t node = 0; node < 3; node++) {
        stack_push(&shared, node);
    }
    pthread_t threads[2];
    (void)pthread_create(&threads[0], NULL, pops_one, NULL);
    (void)pthread_create(&threads[1], NULL, pops_two_and_returns_one, NULL);
    (void)pthread_join(threads[0], NULL);
    (void)pthread_join(threads[1], NULL);
    for (int left = 0; left < 3; left++) {
        pop_one();
    }
    for (int node = 0; node < 3; node++) {
        int times = atomic_load_explicit(&popped[node], memory_order_relaxed);
        if (times != 1) {
            explorer_fail("node %d was popped %d times", node, times);
        }
    }
}

int main(int count, char **arguments)
{
    static const explorer_program programs[] = {
        {.name = "stack", .sentence = "each node is popped once", .body = no_node_is_lost_or_doubled},
        {.name = "ring", .sentence = "what is read was written", .body = ring_hands_over},
    };
    return explorer_main(count, arguments, programs, sizeof programs / sizeof programs[0]);
}
