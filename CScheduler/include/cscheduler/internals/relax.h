/// relax.h - the pause of a spin loop that polls a word another thread is about to change. Internals: for the
/// Swift layers of this package, not stable.

#ifndef CSCHEDULER_INTERNALS_RELAX_H
#define CSCHEDULER_INTERNALS_RELAX_H

#include <stdint.h>

/// Executes `count` pause instructions, which leave the core to its other hardware threads. They touch no
/// memory, so the word's cache line stays with its current owner. Each takes about 10 to 150 cycles.
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
