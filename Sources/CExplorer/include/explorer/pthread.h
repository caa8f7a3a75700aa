/// explorer/pthread.h - the POSIX threads that small concurrent programs use, under the explorer.
///
/// After this header pthread_create, _join, _self, _mutex_lock, _trylock, _unlock, _cond_wait, _signal,
/// _broadcast, and sched_yield are the explorer's. Mutexes and condition variables may be initialised either
/// way; attributes are ignored, and mutexes are not recursive. In C, other names of the POSIX threads do not
/// compile after this header; in C++ they remain the system's, and must not be used.

#ifndef EXPLORER_PTHREAD_H
#define EXPLORER_PTHREAD_H

#include <pthread.h>
#include <sched.h>

#include "../explorer.h"

#ifdef __cplusplus
extern "C" {
#endif

int explorer_pthread_create(pthread_t *thread, void *(*body)(void *), void *argument);
int explorer_pthread_join(const explorer_site *site, pthread_t thread, void **result);
int explorer_mutex_init(pthread_mutex_t *mutex);
int explorer_mutex_lock(const explorer_site *site, pthread_mutex_t *mutex);
int explorer_mutex_trylock(const explorer_site *site, pthread_mutex_t *mutex);
int explorer_mutex_unlock(const explorer_site *site, pthread_mutex_t *mutex);
int explorer_cond_init(pthread_cond_t *condition);
int explorer_cond_wait(const explorer_site *site, pthread_cond_t *condition, pthread_mutex_t *mutex);
int explorer_sched_yield(const explorer_site *site);
int explorer_cond_wake(const explorer_site *site, pthread_cond_t *condition, int count);

#ifdef __cplusplus
}
#endif

#define explorer_pthread_site(text)                                                                          \
    (__extension__({                                                                                         \
        static const explorer_site explorer_here = {__FILE__, __LINE__, text};                               \
        &explorer_here;                                                                                      \
    }))

#define pthread_create(thread, attributes, body, argument)                                                   \
    ((void)(attributes), explorer_pthread_create(thread, body, argument))
#define pthread_join(thread, result)                                                                         \
    explorer_pthread_join(explorer_pthread_site("join " #thread), thread, result)
#define pthread_self() ((pthread_t)explorer_self())
#define pthread_mutex_init(mutex, attributes) ((void)(attributes), explorer_mutex_init(mutex))
#define pthread_mutex_destroy(mutex) explorer_mutex_init(mutex)
#define pthread_mutex_lock(mutex) explorer_mutex_lock(explorer_pthread_site("lock " #mutex), mutex)
#define pthread_mutex_trylock(mutex)                                                                         \
    explorer_mutex_trylock(explorer_pthread_site("try to lock " #mutex), mutex)
#define pthread_mutex_unlock(mutex) explorer_mutex_unlock(explorer_pthread_site("unlock " #mutex), mutex)
#define pthread_cond_init(condition, attributes) ((void)(attributes), explorer_cond_init(condition))
#define pthread_cond_destroy(condition) explorer_cond_init(condition)
#define pthread_cond_wait(condition, mutex)                                                                  \
    explorer_cond_wait(explorer_pthread_site("wait for " #condition), condition, mutex)
#define pthread_cond_signal(condition)                                                                       \
    explorer_cond_wake(explorer_pthread_site("signal " #condition), condition, 1)
#define pthread_cond_broadcast(condition)                                                                    \
    explorer_cond_wake(explorer_pthread_site("broadcast " #condition), condition, EXPLORER_THREADS)
#define sched_yield() explorer_sched_yield(explorer_pthread_site("yield"))

// Calls that the explorer does not have must not reach the system unseen.
#ifndef __cplusplus
#pragma GCC poison pthread_detach pthread_exit pthread_cancel pthread_once pthread_timedjoin_np
#pragma GCC poison pthread_tryjoin_np
#pragma GCC poison pthread_mutex_timedlock pthread_cond_timedwait pthread_key_create pthread_setspecific
#pragma GCC poison pthread_getspecific pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock
#pragma GCC poison pthread_barrier_wait pthread_spin_lock pthread_spin_unlock sem_wait sem_post
#endif

#endif
