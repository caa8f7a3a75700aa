// port_relacy.h - the port under which the core runs in Relacy: every shared access is a step of its
// scheduler.
//
// It is C, and so are the core and the scenarios in this build: what Relacy sees is the shipping source as a
// C compiler reads it. Only what stands behind these functions is C++ (port_relacy.cpp): one rl::atomic for
// every shared word, found by the word's address, so that a word keeps its size.

#ifndef PORT_RELACY_H
#define PORT_RELACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Where a step stands in the source.
typedef struct {
    const char *text;
    const char *file;
    unsigned line;
} relacy_site;

typedef enum {
    RELACY_relaxed,
    RELACY_acquire,
    RELACY_release,
    RELACY_acq_rel,
    RELACY_seq_cst,
} relacy_order;

typedef enum { RELACY_EXCHANGE, RELACY_ADD, RELACY_SUBTRACT, RELACY_OR, RELACY_AND } relacy_change;

/// Not a step: the object is not shared yet. Another thread that reads it needs to have been told of it.
void relacy_init(const relacy_site *site, void *object, size_t size, uint64_t value);
uint64_t relacy_load(const relacy_site *site, const void *object, size_t size, relacy_order order);
void relacy_store(const relacy_site *site, void *object, size_t size, uint64_t value, relacy_order order);
uint64_t relacy_modify(const relacy_site *site, void *object, size_t size, relacy_change change,
                       uint64_t value, relacy_order order);
bool relacy_cas(const relacy_site *site, void *object, size_t size, void *expected, uint64_t desired,
                relacy_order success, relacy_order failure, bool weak);
void relacy_fence(const relacy_site *site, relacy_order order);

/// False: its time passed.
bool relacy_futex_wait(const relacy_site *site, const void *word, uint32_t value, uint64_t timeout_ns);
void relacy_futex_wake(const relacy_site *site, const void *word, int count);
void *relacy_allocate(const relacy_site *site, size_t size, size_t alignment);
void relacy_free(const relacy_site *site, void *memory);
void relacy_yield(const relacy_site *site);
/// Stands still but for the timeouts that passed.
uint64_t relacy_now_ns(void);
void relacy_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/// From here on the calling thread may be stopped, at any step, until relacy_go_on; or no more.
void relacy_may_stop(bool may);
/// Lets go on who was stopped; from here on nobody is.
void relacy_go_on(void);

/// Which thread runs, from 0; -1: setup or check.
int relacy_self(void);
/// Starts a thread, and answers what relacy_join takes.
void *relacy_spawn(const relacy_site *site, void *(*body)(void *), void *argument);
void relacy_join(const relacy_site *site, void *thread);
/// False: it has not ended.
bool relacy_try_join(const relacy_site *site, void *thread);

#ifdef __cplusplus
}
#else

#include "pthread_relacy.h"

#define csched_site(what)                                                                                    \
    (__extension__({                                                                                         \
        static const relacy_site csched_here = {what, __FILE__, __LINE__};                                   \
        &csched_here;                                                                                        \
    }))
// An integer, a pointer or a function as a word, and back.
#define csched_word(value) ((uint64_t)(uintptr_t)(value))
#define csched_of_word(object, word) ((__typeof__(*(object)))(uintptr_t)(word))

#define csched_atomic(T) T
#define csched_init(object, value)                                                                           \
    relacy_init(csched_site("init " #object), (void *)(object), sizeof *(object), csched_word(value))
#define csched_load(object, order)                                                                           \
    csched_of_word(object, relacy_load(csched_site("load " #object ", " #order), (object), sizeof *(object), \
                                       RELACY_##order))
#define csched_store(object, value, order)                                                                   \
    relacy_store(csched_site("store " #object ", " #order), (void *)(object), sizeof *(object),              \
                 csched_word(value), RELACY_##order)
#define csched_modify(change, name, object, value, order)                                                    \
    csched_of_word(object, relacy_modify(csched_site(name " " #object ", " #order), (void *)(object),        \
                                         sizeof *(object), change, csched_word(value), RELACY_##order))
#define csched_exchange(object, value, order) csched_modify(RELACY_EXCHANGE, "exchange", object, value, order)
#define csched_fetch_add(object, value, order) csched_modify(RELACY_ADD, "add", object, value, order)
#define csched_fetch_sub(object, value, order) csched_modify(RELACY_SUBTRACT, "sub", object, value, order)
#define csched_fetch_or(object, value, order) csched_modify(RELACY_OR, "or", object, value, order)
#define csched_fetch_and(object, value, order) csched_modify(RELACY_AND, "and", object, value, order)
#define csched_compare(object, expected, desired, success, failure, weak)                                    \
    relacy_cas(csched_site("cas " #object ", " #success), (void *)(object), sizeof *(object), (expected),    \
               csched_word(desired), RELACY_##success, RELACY_##failure, weak)
#define csched_cas(object, expected, desired, success, failure)                                              \
    csched_compare(object, expected, desired, success, failure, false)
#define csched_cas_weak(object, expected, desired, success, failure)                                         \
    csched_compare(object, expected, desired, success, failure, true)
#define csched_fence(order) relacy_fence(csched_site("fence " #order), RELACY_##order)
#define csched_fence_after_rmw(order) csched_fence(order)

// Relacy's threads are fibres of one thread: the section is exchanged when another one goes on.
#define csched_thread_local static __attribute__((section("relacy_locals")))

#define csched_futex_wait(word, value, timeout_ns)                                                           \
    relacy_futex_wait(csched_site("wait " #word), (word), (value), (timeout_ns))
#define csched_futex_wake(word, count) relacy_futex_wake(csched_site("wake " #word), (word), (count))
#define csched_allocate(size, alignment) relacy_allocate(csched_site("allocate"), (size), (alignment))
#define csched_free(memory) relacy_free(csched_site("free"), (memory))
#define csched_yield() relacy_yield(csched_site("yield"))
#define csched_wake_on_time() ((void)0)
#define csched_now_ns() relacy_now_ns()
#define csched_fatal(function, sentence) relacy_fail("stopped: %s: %s", (function), (sentence))

#endif
#endif
