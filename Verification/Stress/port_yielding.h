// port_yielding.h - the shipping port, but threads yield, or sleep, before and after their shared accesses.
//
// Built with -DCSCHED_PORT='"port_yielding.h"'. A thread is then stopped where a real thread is stopped once
// in hours: between two steps of one protocol. But a thread that enters the kernel leaves it with an empty
// store buffer, so a missing fence is hidden rather than found. Hence loads run with both ports.
//
// Each thread has its own density of yields, and draws a new one now and then: with a single density, all
// threads keep in step.

#ifndef STRESS_PORT_YIELDING_H
#define STRESS_PORT_YIELDING_H

#include <stdbool.h>
#include <stdint.h>

#include "../../CScheduler/src/port_shipping.h"

typedef struct {
    uint64_t state;
    uint32_t density; // one access in 2^density
    uint32_t left;    // accesses until another density is drawn
} csched_yields;

static inline uint32_t csched_yields_draw(csched_yields *yields)
{
    yields->state ^= yields->state << 13;
    yields->state ^= yields->state >> 7;
    yields->state ^= yields->state << 17;
    return (uint32_t)(yields->state >> 32);
}

// Called once in a while; not inlined, to keep it off the common path.
__attribute__((noinline, unused)) static void csched_yields_begin(csched_yields *yields)
{
    enum { SPARSEST = 13, DENSEST = 5, ACCESSES = 1 << 16 };
    if (yields->state == 0) {
        yields->state = csched_now_ns() ^ (uint64_t)(uintptr_t)yields;
        yields->state += yields->state == 0;
    }
    yields->density = DENSEST + csched_yields_draw(yields) % (SPARSEST - DENSEST + 1);
    yields->left = csched_yields_draw(yields) % ACCESSES + 1;
}

__attribute__((noinline, unused)) static void csched_yields_stop(uint32_t drawn)
{
    enum { ONE_SLEEPS_IN = 32, SLEEP_MOST_US = 60 };
    // errno belongs to the caller.
    int error = errno;
    if (drawn % ONE_SLEEPS_IN == 0) {
        (void)usleep(drawn / ONE_SLEEPS_IN % SLEEP_MOST_US);
    } else {
        (void)sched_yield();
    }
    errno = error;
}

static inline void csched_disturb(void)
{
    static _Thread_local csched_yields yields;
    if (__builtin_expect(yields.left == 0, 0)) {
        csched_yields_begin(&yields);
    }
    yields.left--;
    uint32_t drawn = csched_yields_draw(&yields);
    if (__builtin_expect((drawn & ((UINT32_C(1) << yields.density) - 1)) == 0, 0)) {
        csched_yields_stop(drawn >> yields.density);
    }
}

static inline bool csched_disturb_after(bool result)
{
    csched_disturb();
    return result;
}

#undef csched_load
#undef csched_store
#undef csched_exchange
#undef csched_fetch_add
#undef csched_fetch_sub
#undef csched_fetch_or
#undef csched_fetch_and
#undef csched_cas
#undef csched_cas_weak

// A read-modify-write that returns more than success or failure is followed by another access, or by code
// that touches only plain data of this thread: a yield in front of each is enough there.
#define csched_before(access) (csched_disturb(), (access))

#define csched_load(object, order) csched_before(atomic_load_explicit((object), memory_order_##order))
#define csched_store(object, value, order)                                                                   \
    (csched_disturb(), atomic_store_explicit((object), (value), memory_order_##order), csched_disturb())
#define csched_exchange(object, value, order)                                                                \
    csched_before(atomic_exchange_explicit((object), (value), memory_order_##order))
#define csched_fetch_add(object, value, order)                                                               \
    csched_before(atomic_fetch_add_explicit((object), (value), memory_order_##order))
#define csched_fetch_sub(object, value, order)                                                               \
    csched_before(atomic_fetch_sub_explicit((object), (value), memory_order_##order))
#define csched_fetch_or(object, value, order)                                                                \
    csched_before(atomic_fetch_or_explicit((object), (value), memory_order_##order))
#define csched_fetch_and(object, value, order)                                                               \
    csched_before(atomic_fetch_and_explicit((object), (value), memory_order_##order))
#define csched_cas(object, expected, desired, success, failure)                                              \
    (csched_disturb(),                                                                                       \
     csched_disturb_after(atomic_compare_exchange_strong_explicit(                                           \
         (object), (expected), (desired), memory_order_##success, memory_order_##failure)))
#define csched_cas_weak(object, expected, desired, success, failure)                                         \
    (csched_disturb(),                                                                                       \
     csched_disturb_after(atomic_compare_exchange_weak_explicit(                                             \
         (object), (expected), (desired), memory_order_##success, memory_order_##failure)))

#endif
