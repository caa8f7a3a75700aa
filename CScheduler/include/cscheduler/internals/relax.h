/// relax.h - what a loop does between two looks at a word that another thread is about to change. Internals:
/// for the Swift layers of this package, no promise.

#ifndef CSCHEDULER_INTERNALS_RELAX_H
#define CSCHEDULER_INTERNALS_RELAX_H

#include <stdint.h>

/// Lets `count` instructions pass that do nothing, for the other threads of the core, and touch no memory: so
/// whoever has the word's cache line keeps it. One takes some 10 to 150 cycles.
static inline void csched_relax(uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb"); // `yield` does nothing on most cores
#elif defined(__arm__)
        __asm__ volatile("yield");
#else
        __asm__ volatile("");
#endif
    }
}

#endif
