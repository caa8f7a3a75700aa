// port.h - the only interface to everything the memory model, the kernel and the allocator decide.
//
// No other file of CScheduler names a C11 atomic, a fence, a futex, malloc, a thread-local variable, a clock
// or a yield. So the same source has several builds: shipping (port_shipping.h), sanitizers (the same file,
// see csched_fence), and, with CSCHED_PORT defined to a header's name, one in which every shared access is a
// scheduling point of the explorer.
//
// What a port provides:
//   csched_atomic(T)                              the type of a shared word
//   csched_init(object, value)                    before the object is shared
//   csched_load(object, order)                    relaxed, acquire, seq_cst
//   csched_store(object, value, order)            relaxed, release, seq_cst
//   csched_exchange(object, value, order)         and csched_fetch_add, _sub, _or, _and
//   csched_cas(object, expected *, desired, success, failure)        strong
//   csched_cas_weak(object, expected *, desired, success, failure)
//   csched_fence(order)                           seq_cst
//   csched_fence_light(), csched_fence_heavy()    seq_cst between a light and a heavy fence; heavy is slow
//   csched_prepare_fences()                       before these; once more in a child of fork()
//   csched_futex_wait(word *, value, timeout_ns)  false: timed out
//   csched_futex_wake(word *, count)              touches no memory of `word`
//   csched_allocate(size, alignment), csched_free(pointer)
//   csched_thread_local                           storage class
//   csched_yield(), csched_now_ns()
//   csched_ticks(), csched_ticks_are_steady()     a counter that is cheaper to read, if it is good as a clock
//   csched_is_recording()                         whether events are recorded; false under the explorer
//   csched_thread_id(), csched_thread_sleeps(id)  this thread's kernel id; whether thread `id` is blocked
//   csched_thread_ran_ns(id)                      how long it has run; always 0 if that is unknown
//   csched_warn(name, sentence)                   a sentence on stderr
//   csched_wake_on_time()                         the calling thread's waits end on time, not 50 us late
//   csched_fatal(function, sentence)              misuse: a sentence on stderr, then SIGABRT

#ifndef CSCHEDULER_PORT_H
#define CSCHEDULER_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef CSCHED_PORT
#include CSCHED_PORT
#else
#include "port_shipping.h"
#endif

/// Stops the process with a sentence unless `condition` holds. In every build: it checks the caller, not this
/// library.
#define csched_check(condition, sentence)                                                                    \
    do {                                                                                                     \
        if (__builtin_expect(!(condition), 0)) {                                                             \
            csched_fatal(__func__, sentence);                                                                \
        }                                                                                                    \
    } while (0)

/// Two lines: neighbouring lines are fetched in pairs on x86, and lines are 128 bytes on some arm64.
#define CSCHED_LINE 128
#define csched_aligned_to_line __attribute__((aligned(CSCHED_LINE)))

#define csched_likely(condition) __builtin_expect(!!(condition), 1)
#define csched_unlikely(condition) __builtin_expect(!!(condition), 0)
/// For functions that are hardly ever called: out of line, so that callers save no registers for them.
#define csched_aside __attribute__((noinline, cold))
/// For functions on the path of every operation.
#define csched_always_inline inline __attribute__((always_inline))

#endif
