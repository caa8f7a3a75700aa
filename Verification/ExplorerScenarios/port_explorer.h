// port_explorer.h - the port under which the core runs in the explorer: every shared access is a step.

#ifndef PORT_EXPLORER_H
#define PORT_EXPLORER_H

#include <explorer.h>

#include "pthread_model.h"

// Small (tuning.h), so that queues grow, turns end and lists are swept within a few operations.
#define CSCHED_BATCH 4
#define CSCHED_DEQUE_CAPACITY 4
#define CSCHED_OPEN_DISTANCE 2
#define CSCHED_SEGMENT_FIRST 2
#define CSCHED_SEGMENT_MOST 4
#define CSCHED_FAIR_MOST 4
#define CSCHED_FAIR_FIRST 2
#define CSCHED_OWN_TURNS 2
#define CSCHED_RANKED_DEQUE_CAPACITY 4
#define CSCHED_RANKED_TURNS 3
#define CSCHED_LOOKS 1
#define CSCHED_JOIN_LOOKS 1
#define CSCHED_SLOW_YIELD_NS port_slow_yield_ns()
#define CSCHED_WORTHWHILE 2
#define CSCHED_SLOW_OPERATION_NS port_slow_operation_ns()
#define CSCHED_SLOW_RUNS 3
#define CSCHED_HASTY_FIRST 2
#define CSCHED_HASTY_MOST 5
#define CSCHED_DEBT_MOST 3
#define CSCHED_ADVANCE 2
#define CSCHED_SWEEP_LEAST 2
#define CSCHED_CHILDREN_MORE 2
#define CSCHED_COLLECTED_MOST 2
#define CSCHED_TURN 2
#define CSCHED_BURST 1
#define CSCHED_CALM_LOOKS 1
#define CSCHED_TICK_SHIFT 1
#define CSCHED_WHEEL_BITS 2
#define CSCHED_TIMER_PIECE 2
#define CSCHED_TIMER_SWEEP_LEAST 2
#define CSCHED_TIMER_RETRY_TICKS 5000

#define csched_site(text)                                                                                    \
    (__extension__({                                                                                         \
        static const explorer_site csched_here = {__FILE__, __LINE__, text};                                 \
        &csched_here;                                                                                        \
    }))
// An integer, a pointer or a function in the explorer's representation, and back.
#define csched_word(object, value) ((uint64_t)(uintptr_t)(value))
#define csched_of_word(object, word) ((__typeof__(*(object)))(uintptr_t)(word))

#define csched_atomic(T) T
#define csched_init(object, value)                                                                           \
    explorer_init((void *)(object), sizeof *(object), csched_word(object, value))
#define csched_load(object, order)                                                                           \
    csched_of_word(object, explorer_load(csched_site("load " #object ", " #order), (object),                 \
                                         sizeof *(object), explorer_##order))
#define csched_store(object, value, order)                                                                   \
    explorer_store(csched_site("store " #object ", " #order), (void *)(object), sizeof *(object),            \
                   csched_word(object, value), explorer_##order)
#define csched_modify(change, name, object, value, order)                                                    \
    csched_of_word(object,                                                                                   \
                   explorer_modify(csched_site(name " " #object ", " #order), (void *)(object),              \
                                   sizeof *(object), change, csched_word(object, value), explorer_##order))
#define csched_exchange(object, value, order)                                                                \
    csched_modify(EXPLORER_EXCHANGE, "exchange", object, value, order)
#define csched_fetch_add(object, value, order) csched_modify(EXPLORER_ADD, "add", object, value, order)
#define csched_fetch_sub(object, value, order) csched_modify(EXPLORER_SUBTRACT, "sub", object, value, order)
#define csched_fetch_or(object, value, order) csched_modify(EXPLORER_OR, "or", object, value, order)
#define csched_fetch_and(object, value, order) csched_modify(EXPLORER_AND, "and", object, value, order)
#define csched_compare(object, expected, desired, success, failure, weak)                                    \
    explorer_cas(csched_site("cas " #object ", " #success), (void *)(object), sizeof *(object), (expected),  \
                 csched_word(object, desired), explorer_##success, explorer_##failure, weak)
#define csched_cas(object, expected, desired, success, failure)                                              \
    csched_compare(object, expected, desired, success, failure, false)
#define csched_cas_weak(object, expected, desired, success, failure)                                         \
    csched_compare(object, expected, desired, success, failure, true)
#define csched_fence(order) explorer_fence(csched_site("fence " #order), explorer_##order)
// A light fence keeps the compiler from moving accesses, which it never does here.
#define csched_fence_light() ((void)0)
#define csched_fence_heavy() explorer_fence_all(csched_site("heavy fence"))

#define csched_thread_local explorer_thread_local

#define csched_futex_wait(word, value, timeout_ns)                                                           \
    explorer_futex_wait(csched_site("wait " #word), (word), (value), (timeout_ns))
#define csched_futex_wake(word, count) explorer_futex_wake(csched_site("wake " #word), (word), (count))
#define csched_allocate(size, alignment) explorer_allocate((size), (alignment))
#define csched_free(memory) explorer_free(memory)
#define csched_yield() port_yield(csched_site("yield"))
#define csched_wake_on_time() ((void)0)
#define csched_ticks() explorer_now_ns()
#define csched_ticks_are_steady() true
#define csched_is_recording() false // rings have separate scenarios
#define csched_now_ns() explorer_now_ns()
#define csched_thread_id() ((int32_t)explorer_self() + 1)
#define csched_thread_sleeps(id) ((id) > 0 && explorer_is_waiting((id) - 1))
#define csched_thread_ran_ns(id) ((id) > 0 ? port_thread_ran_ns() : 0)
#define csched_warn(name, sentence) port_warn((name), (sentence))
// A scenario's settings are read by calls, so that they are not plain memory of the core.
extern uint64_t slow_yield_ns;     // which yields are slow
extern uint64_t slow_operation_ns; // which operations are slow
extern bool busy_between_looks;    // whether threads that are found waiting have been running until then
extern int times_yielded;
uint64_t port_slow_yield_ns(void);
uint64_t port_slow_operation_ns(void);
uint64_t port_thread_ran_ns(void);
void port_yield(const explorer_site *site);
void port_warn(const char *name, const char *sentence);
#define csched_fatal(function, sentence) port_fatal((function), (sentence))
_Noreturn void port_fatal(const char *function, const char *sentence);

#endif
