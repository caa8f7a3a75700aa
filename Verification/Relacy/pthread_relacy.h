// pthread_relacy.h - what the core uses of POSIX threads, as Relacy's.

#ifndef PTHREAD_RELACY_H
#define PTHREAD_RELACY_H

#include <pthread.h>
#include <signal.h>

int pthread_relacy_create(pthread_t *thread, void *(*body)(void *), void *argument);
int pthread_relacy_key_create(void (*destructor)(void *));
int pthread_relacy_setspecific(void *value);
void pthread_relacy_lock(pthread_mutex_t *mutex);
void pthread_relacy_unlock(pthread_mutex_t *mutex);
void pthread_relacy_init(pthread_mutex_t *mutex);
/// At the end of a thread that a scenario runs: calls the destructor, as the end of a thread does.
void pthread_relacy_thread_ends(void);

#define pthread_create(thread, attributes, body, argument) pthread_relacy_create((thread), (body), (argument))
#define pthread_join(thread, result) (relacy_join(csched_site("join"), (void *)(thread)), 0)
#define pthread_tryjoin_np(thread, result)                                                                   \
    (relacy_try_join(csched_site("try to join"), (void *)(thread)) ? 0 : 1)
#define pthread_detach(thread) ((void)(thread), 0)
#define pthread_self() ((pthread_t)relacy_self())
#define pthread_setname_np(thread, name) ((void)(thread), (void)(name), 0)
#define pthread_sigmask(how, set, before) ((void)(how), (void)(set), (void)(before), 0)
#define pthread_getattr_np(thread, attributes) ((void)(thread), (void)(attributes), 1)
#define pthread_attr_getstack(attributes, low, size) ((void)(attributes), (void)(low), (void)(size), 1)
#define pthread_attr_destroy(attributes) ((void)(attributes), 0)
#define pthread_atfork(prepare, parent, child) ((void)(prepare), (void)(parent), (void)(child), 0)
// What the core does once leaves nothing behind that lives longer than an execution.
#define pthread_once(once, function) ((void)(once), (function)(), 0)
#define pthread_key_create(key, destructor) (*(key) = 0, pthread_relacy_key_create(destructor))
#define pthread_setspecific(key, value) ((void)(key), pthread_relacy_setspecific(value))
#define pthread_mutex_init(mutex, attributes) pthread_relacy_init(mutex)
#define pthread_mutex_destroy(mutex) ((void)(mutex), 0)
#define pthread_mutex_lock(mutex) (pthread_relacy_lock(mutex), 0)
#define pthread_mutex_unlock(mutex) (pthread_relacy_unlock(mutex), 0)

#endif
