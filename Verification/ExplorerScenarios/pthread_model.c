// pthread_model.c - threads, and the destructor at a thread's end.

#include "port_explorer.h"

#include <errno.h>
#include <string.h>

static struct {
    void *(*body)(void *);
    void *argument;
} started[EXPLORER_THREADS];
static int count;
static bool joined[EXPLORER_THREADS];
static bool fails;

void pthread_model_begin(void)
{
    count = 0;
    fails = false;
    memset(joined, 0, sizeof joined);
}

void pthread_model_fail(bool always) { fails = always; }

static void (*destructor)(void *);
explorer_thread_local void *specific;

static void note_join(int thread)
{
    if (joined[thread]) {
        explorer_fail("a thread is joined twice (R3)");
    }
    joined[thread] = true;
}

int pthread_model_join(pthread_t thread)
{
    explorer_join(csched_site("join"), (int)thread);
    note_join((int)thread);
    return 0;
}

int pthread_model_try_join(pthread_t thread)
{
    if (!explorer_try_join(csched_site("try to join"), (int)thread)) {
        return EBUSY;
    }
    note_join((int)thread);
    return 0;
}

static void (*fork_prepare)(void);
static void (*fork_parent)(void);
static void (*fork_child)(void);

void pthread_model_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    fork_prepare = prepare;
    fork_parent = parent;
    fork_child = child;
}

void pthread_model_fork(bool as_child)
{
    fork_prepare();
    if (as_child) {
        fork_child();
    } else {
        fork_parent();
    }
}

int pthread_model_key_create(pthread_key_t *key, void (*at_end)(void *))
{
    *key = 0;
    destructor = at_end;
    return 0;
}

int pthread_model_setspecific(void *value)
{
    specific = value;
    return 0;
}

void pthread_model_thread_ends(void)
{
    void *value = specific;
    specific = NULL;
    if (value != NULL && destructor != NULL) {
        destructor(value);
    }
}

static void run(void *argument)
{
    uintptr_t index = (uintptr_t)argument;
    (void)started[index].body(started[index].argument);
    pthread_model_thread_ends();
}

int pthread_model_create(pthread_t *thread, void *(*body)(void *), void *argument)
{
    if (fails || explorer_threads() == EXPLORER_THREADS) {
        return EAGAIN;
    }
    int index = count++;
    started[index].body = body;
    started[index].argument = argument;
    int number = explorer_spawn("worker", run, (void *)(uintptr_t)index);
    explorer_daemon(number);
    *thread = (pthread_t)number;
    return 0;
}
