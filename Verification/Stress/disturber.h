// disturber.h - a thread that suspends, resumes, resizes, observes and reads statistics while the load runs.

#ifndef STRESS_DISTURBER_H
#define STRESS_DISTURBER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "load.h"

typedef struct {
    stress_load *load;
    stress_random random;
    _Atomic(bool) ended;
    pthread_t thread;
} stress_disturber;

void stress_disturber_start(stress_disturber *disturber, stress_load *load, uint64_t seed);

/// Afterwards the scheduler has its initial number of workers, is not suspended, and has no observer.
void stress_disturber_stop(stress_disturber *disturber);

#endif
