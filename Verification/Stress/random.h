// random.h - splitmix64: one word of state, so that every thread can have its own.

#ifndef STRESS_RANDOM_H
#define STRESS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t state;
} stress_random;

static inline uint64_t stress_next(stress_random *random)
{
    uint64_t mixed = random->state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

/// 0 ..< bound
static inline uint32_t stress_below(stress_random *random, uint32_t bound)
{
    return (uint32_t)((stress_next(random) >> 32) * bound >> 32);
}

static inline bool stress_one_in(stress_random *random, uint32_t odds)
{
    return stress_below(random, odds) == 0;
}

#endif
