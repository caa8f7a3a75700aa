// pthreads.c - POSIX threads on top of the explorer. A mutex is a word that is zero when it is free; a
// condition variable is a word that counts its wake-ups. Each lies in the first bytes of the system's own
// type.

#include "explorer/pthread.h"

#include <errno.h>

#undef pthread_create
#undef pthread_join

static struct {
    void *(*body)(void *);
    void *argument;
    void *result;
    bool joined;
} started[EXPLORER_THREADS];

static const char *const names[EXPLORER_THREADS] = {"thread 0", "thread 1", "thread 2", "thread 3",
                                                    "thread 4", "thread 5", "thread 6", "thread 7"};

static void run(void *number)
{
    size_t index = (size_t)(uintptr_t)number;
    started[index].result = started[index].body(started[index].argument);
}

int explorer_pthread_create(pthread_t *thread, void *(*body)(void *), void *argument)
{
    size_t index = (size_t)explorer_threads();
    if (index == EXPLORER_THREADS) {
        return EAGAIN;
    }
    started[index].body = body;
    started[index].argument = argument;
    started[index].joined = false;
    *thread = (pthread_t)explorer_spawn(names[index], run, (void *)(uintptr_t)index);
    return 0;
}

int explorer_pthread_join(const explorer_site *site, pthread_t thread, void **result)
{
    if (thread >= (pthread_t)explorer_threads() || started[thread].joined) {
        explorer_fail("a thread is joined that is none, or has been joined (R3), at %s:%d", site->file,
                      site->line);
    }
    explorer_join(site, (int)thread);
    started[thread].joined = true;
    if (result != NULL) {
        *result = started[thread].result;
    }
    return 0;
}

int explorer_sched_yield(const explorer_site *site)
{
    explorer_yield(site);
    return 0;
}

int explorer_mutex_init(pthread_mutex_t *mutex)
{
    explorer_init(mutex, sizeof(int), 0);
    return 0;
}

int explorer_mutex_lock(const explorer_site *site, pthread_mutex_t *mutex)
{
    explorer_lock(site, mutex);
    return 0;
}

int explorer_mutex_trylock(const explorer_site *site, pthread_mutex_t *mutex)
{
    return explorer_try_lock(site, mutex) ? 0 : EBUSY;
}

int explorer_mutex_unlock(const explorer_site *site, pthread_mutex_t *mutex)
{
    explorer_unlock(site, mutex);
    return 0;
}

int explorer_cond_init(pthread_cond_t *condition)
{
    explorer_init(condition, sizeof(uint32_t), 0);
    return 0;
}

int explorer_cond_wait(const explorer_site *site, pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    uint32_t seen = (uint32_t)explorer_load(site, condition, sizeof(uint32_t), explorer_relaxed);
    explorer_unlock(site, mutex);
    (void)explorer_futex_wait(site, condition, seen,
                              UINT64_MAX); // it may return spuriously, as POSIX allows
    explorer_lock(site, mutex);
    return 0;
}

int explorer_cond_wake(const explorer_site *site, pthread_cond_t *condition, int count)
{
    (void)explorer_modify(site, condition, sizeof(uint32_t), EXPLORER_ADD, 1, explorer_relaxed);
    explorer_futex_wake(site, condition, count);
    return 0;
}
