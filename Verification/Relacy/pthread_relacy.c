// pthread_relacy.c - mutexes, and the destructor at a thread's end.

#include "port_relacy.h"

static void (*destructor)(void *);
csched_thread_local void *specific;

int pthread_relacy_key_create(void (*at_end)(void *))
{
    destructor = at_end;
    return 0;
}

int pthread_relacy_setspecific(void *value)
{
    specific = value;
    return 0;
}

void pthread_relacy_thread_ends(void)
{
    void *value = specific;
    specific = NULL;
    if (value != NULL && destructor != NULL) {
        destructor(value);
    }
}

int pthread_relacy_create(pthread_t *thread, void *(*body)(void *), void *argument)
{
    *thread = (pthread_t)relacy_spawn(csched_site("spawn"), body, argument);
    return 0;
}

// The first word of a mutex: 1 while somebody holds it.
static uint32_t *word(pthread_mutex_t *mutex) { return (uint32_t *)(void *)mutex; }

void pthread_relacy_init(pthread_mutex_t *mutex) { csched_init(word(mutex), 0); }

void pthread_relacy_lock(pthread_mutex_t *mutex)
{
    while (csched_exchange(word(mutex), 1, acquire) != 0) {
        (void)csched_futex_wait(word(mutex), 1, UINT64_MAX);
    }
}

void pthread_relacy_unlock(pthread_mutex_t *mutex)
{
    csched_store(word(mutex), 0, release);
    csched_futex_wake(word(mutex), 1);
}
