// port_shipping.h - the port for real threads: C11 atomics, Linux futexes, the process's malloc.

#ifndef CSCHEDULER_PORT_SHIPPING_H
#define CSCHEDULER_PORT_SHIPPING_H

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define csched_atomic(T) _Atomic(T)
#define csched_init(object, value) atomic_init((object), (value))
#define csched_load(object, order) atomic_load_explicit((object), memory_order_##order)
#define csched_store(object, value, order) atomic_store_explicit((object), (value), memory_order_##order)
#define csched_exchange(object, value, order)                                                                \
    atomic_exchange_explicit((object), (value), memory_order_##order)
#define csched_fetch_add(object, value, order)                                                               \
    atomic_fetch_add_explicit((object), (value), memory_order_##order)
#define csched_fetch_sub(object, value, order)                                                               \
    atomic_fetch_sub_explicit((object), (value), memory_order_##order)
#define csched_fetch_or(object, value, order)                                                                \
    atomic_fetch_or_explicit((object), (value), memory_order_##order)
#define csched_fetch_and(object, value, order)                                                               \
    atomic_fetch_and_explicit((object), (value), memory_order_##order)
#define csched_cas(object, expected, desired, success, failure)                                              \
    atomic_compare_exchange_strong_explicit((object), (expected), (desired), memory_order_##success,         \
                                            memory_order_##failure)
#define csched_cas_weak(object, expected, desired, success, failure)                                         \
    atomic_compare_exchange_weak_explicit((object), (expected), (desired), memory_order_##success,           \
                                          memory_order_##failure)

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CSCHED_SANITIZE_THREAD 1
#endif
#if __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define CSCHED_SANITIZE 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define CSCHED_SANITIZE_THREAD 1
#define CSCHED_SANITIZE 1
#endif

#ifdef CSCHED_SANITIZE_THREAD
// ThreadSanitizer does not understand fences. A read-modify-write of one common word orders at least as much,
// and ThreadSanitizer understands that. Too much order can hide a race, so the shipping build is also
// stressed without ThreadSanitizer.
extern _Atomic(unsigned) csched_fence_word;
#define csched_fence(order) ((void)atomic_fetch_add_explicit(&csched_fence_word, 0, memory_order_seq_cst))
#else
#define csched_fence(order) csched_fence_##order()
static inline void csched_fence_seq_cst(void)
{
#if defined(__x86_64__)
    // Under clang, atomic_thread_fence is MFENCE, which waits for more than memory order asks. Any locked
    // read-modify-write is a full fence for ordinary memory (measured: 8 ns against 19).
    __asm__ volatile("lock; orl $0, -4(%%rsp)" ::: "memory", "cc");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}
#endif

// The heavy fence makes all running threads of the process execute a barrier (membarrier(2)), so that the
// light one is only a compiler barrier. If that call is not available when they are prepared, both are full
// fences. Also under ThreadSanitizer: the readers' words order what is freed.
extern __attribute__((visibility("hidden"))) bool csched_has_membarrier;
__attribute__((visibility("hidden"))) void csched_prepare_fences(void);
__attribute__((visibility("hidden"))) void csched_pass_barrier_everywhere(void);

static inline void csched_fence_light(void)
{
    if (__builtin_expect(csched_has_membarrier, 1)) {
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        csched_fence(seq_cst);
    }
}

static inline void csched_fence_heavy(void)
{
    if (csched_has_membarrier) {
        csched_pass_barrier_everywhere();
    } else {
        csched_fence(seq_cst);
    }
}

#define csched_thread_local static _Thread_local

static inline bool csched_futex_wait(const void *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec limit = {
        .tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
        .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000)),
    };
    struct timespec *timeout = timeout_ns == UINT64_MAX ? NULL : &limit;
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0) == 0 || errno != ETIMEDOUT;
}

static inline void csched_futex_wake(const void *word, int count)
{
    // EFAULT is no error: a completion counter may be gone by the time its waiters are woken by address.
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void *csched_allocate(size_t size, size_t alignment)
{
    if (alignment <= _Alignof(max_align_t)) {
        return malloc(size);
    }
    void *memory = NULL;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static inline void csched_free(void *memory) { free(memory); }

static inline void csched_yield(void) { sched_yield(); }

static inline void csched_wake_on_time(void) { (void)prctl(PR_SET_TIMERSLACK, 1UL); }

static inline uint64_t csched_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// Whether all processors count at the same rate, whatever their clock rate, and also while they sleep.
static inline bool csched_ticks_are_steady(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
#else
    return true;
#endif
}

static inline uint64_t csched_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return csched_now_ns();
#endif
}

extern __attribute__((visibility("hidden"))) csched_atomic(uint32_t) csched_recorder_on;
static inline bool csched_is_recording(void) { return csched_load(&csched_recorder_on, relaxed) != 0; }

static inline int32_t csched_thread_id(void) { return (int32_t)syscall(SYS_gettid); }

// Whether a thread of this process waits for something in the kernel, such as a futex, a socket or a disk.
bool csched_thread_sleeps(int32_t id);

// The CPU time of a thread of this process; 0: the kernel does not report it.
uint64_t csched_thread_ran_ns(int32_t id);

static inline void csched_warn(const char *name, const char *sentence)
{
    fprintf(stderr, "CScheduler: scheduler '%s': %s\n", name, sentence);
}

_Noreturn static inline void csched_fatal(const char *function, const char *sentence)
{
    fprintf(stderr, "CScheduler: %s: %s\n", function, sentence);
    abort();
}

#endif
