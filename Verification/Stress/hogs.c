// hogs.c - CPU hogs, which change what is preempted, and where.

#include "hogs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "main.h"

static pthread_t *threads;
static uint32_t number;
static _Atomic(bool) ended;

static void *burn(void *context)
{
    volatile uint64_t work = 0;
    while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
        for (int step = 0; step < 1000; step++) {
            work += 1;
        }
    }
    return context;
}

void stress_hogs_start(uint32_t count)
{
    threads = calloc(count + 1, sizeof *threads);
    if (threads == NULL) {
        stress_stop("memory is exhausted: the hogs could not be allocated");
    }
    for (number = 0; number < count; number++) {
        if (pthread_create(&threads[number], NULL, burn, NULL) != 0) {
            stress_stop("a thread could not be created for a hog");
        }
    }
}

void stress_hogs_stop(void)
{
    atomic_store_explicit(&ended, true, memory_order_relaxed);
    for (uint32_t index = 0; index < number; index++) {
        pthread_join(threads[index], NULL);
    }
    free(threads);
}
