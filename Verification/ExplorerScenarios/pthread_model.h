// pthread_model.h - the POSIX threads that the core uses, implemented by the explorer.

#ifndef PTHREAD_MODEL_H
#define PTHREAD_MODEL_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

int pthread_model_create(pthread_t *thread, void *(*body)(void *), void *argument);
/// From now on creating a thread fails, or succeeds again.
void pthread_model_fail(bool always);
/// A thread is joined once.
int pthread_model_join(pthread_t thread);
int pthread_model_try_join(pthread_t thread);
int pthread_model_key_create(pthread_key_t *key, void (*destructor)(void *));
int pthread_model_setspecific(void *value);
/// To be called at the end of a thread that a scenario spawned: calls the destructor, as a thread's exit
/// does.
void pthread_model_thread_ends(void);
/// To be called before every execution.
void pthread_model_begin(void);
void pthread_model_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
/// Calls the fork handlers; continues as the child, or as the parent.
void pthread_model_fork(bool as_child);

#define pthread_create(thread, attributes, body, argument) pthread_model_create((thread), (body), (argument))
#define pthread_join(thread, result) pthread_model_join(thread)
#define pthread_tryjoin_np(thread, result) pthread_model_try_join(thread)
#define pthread_detach(thread) ((void)(thread), 0)
#define pthread_self() ((pthread_t)explorer_self())
#define pthread_setname_np(thread, name) ((void)(thread), (void)(name), 0)
#define pthread_sigmask(how, set, before) ((void)(how), (void)(set), (void)(before), 0)
#define pthread_getattr_np(thread, attributes) ((void)(thread), (void)(attributes), 1)
#define pthread_attr_getstack(attributes, low, size) ((void)(attributes), (void)(low), (void)(size), 1)
#define pthread_attr_destroy(attributes) ((void)(attributes), 0)
#define pthread_atfork(prepare, parent, child) (pthread_model_at_fork((prepare), (parent), (child)), 0)
// The first thread has already done it: no other thread sees one-time initialisation in progress.
#define pthread_once(once, function) ((void)(once), (function)(), 0)
#define pthread_key_create(key, destructor) pthread_model_key_create((key), (destructor))
#define pthread_setspecific(key, value) ((void)(key), pthread_model_setspecific(value))
#define pthread_mutex_init(mutex, attributes) (*(int *)(void *)(mutex) = 0)
#define pthread_mutex_destroy(mutex) ((void)(mutex), 0)
#define pthread_mutex_lock(mutex) (explorer_lock(csched_site("lock " #mutex), (void *)(mutex)), 0)
#define pthread_mutex_unlock(mutex) (explorer_unlock(csched_site("unlock " #mutex), (void *)(mutex)), 0)

#endif
