// clock.h - vector clocks: what a thread knows of every thread's steps.

#ifndef EXPLORER_CLOCK_H
#define EXPLORER_CLOCK_H

#include "explorer.h"

typedef struct {
    uint32_t at[EXPLORER_THREADS];
} vector_clock;

static inline void clock_join(vector_clock *into, const vector_clock *from)
{
    for (int thread = 0; thread < EXPLORER_THREADS; thread++) {
        if (from->at[thread] > into->at[thread]) {
            into->at[thread] = from->at[thread];
        }
    }
}

#endif
