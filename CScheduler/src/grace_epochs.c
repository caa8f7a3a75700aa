// grace_epochs.c - grace periods of our own (epochs.c): one thread of the process, which collects and frees.
//
//   E5  While the lock `collecting` is held nothing is freed: the functions that free call release functions
//       of observers, which are the user's.
//   E6  The thread is there when anything is retired: domains are created before.
//
// It lets objects gather for CSCHED_GATHER_NS after each collection, unless a flush is waiting for them. A
// forked child has no such thread until it creates a domain of its own.

#ifndef CSCHED_LIBURCU

#include "epochs.h"

#include <pthread.h>
#include <signal.h>

#include "tuning.h"

static csched_epochs epochs;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; // guards the next one
static bool is_running;
static pthread_mutex_t collecting = PTHREAD_MUTEX_INITIALIZER; // taken after `starting`
static csched_atomic(uint32_t) flushes;                        // that wait: nothing gathers then

csched_thread_local csched_reader *reader;
csched_thread_local unsigned joined;

static void collect(void)
{
    (void)pthread_mutex_lock(&collecting);
    csched_retired *object = csched_epochs_collect(&epochs);
    (void)pthread_mutex_unlock(&collecting);
    if (object == NULL) {
        csched_epochs_rest(&epochs);
        return;
    }
    int count = 0;
    for (csched_retired *next; object != NULL; object = next, count++) {
        next = csched_load(&object->link.next, relaxed);
        csched_reclaim_free(object); // E5
    }
    if (count < CSCHED_COLLECTED_MOST) { // else there are more
        (void)csched_futex_wait(&flushes, 0, CSCHED_GATHER_NS);
    }
}

static void *thread_body(void *unused)
{
    for (;;) {
        collect();
    }
    return unused;
}

static bool start(void)
{
    enum { STACK_BYTES = 256 * 1024 };
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); // signals are the program's own affair
    pthread_t thread;
    bool started = pthread_create(&thread, &attributes, thread_body, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return started;
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&starting);
    (void)pthread_mutex_lock(&collecting);
}

static void after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&collecting);
    (void)pthread_mutex_unlock(&starting);
}

// The objects that the parent's thread was freeing stay allocated here.
static void after_fork_in_child(void)
{
    csched_prepare_fences();
    csched_epochs_after_fork(&epochs, reader);
    csched_store(&flushes, 0, relaxed);
    is_running = false;
    after_fork_in_parent();
}

static void prepare(void)
{
    csched_prepare_fences();
    csched_epochs_init(&epochs);
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool csched_grace_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pthread_once(&once, prepare) != 0) {
        return false;
    }
    (void)pthread_mutex_lock(&starting);
    is_running = is_running || start();
    bool prepared = is_running;
    (void)pthread_mutex_unlock(&starting);
    return prepared;
}

void csched_grace_retire(csched_retired *object) { csched_epochs_retire(&epochs, object); }

// An object that lies on the stack of the thread that waits for its turn to be freed.
typedef struct {
    csched_retired retired;
    csched_atomic(uint32_t) is_over;
} flush;

static void end_flush(csched_retired *object)
{
    flush *ended = (flush *)(void *)object;
    csched_store(&ended->is_over, 1, release);
    csched_futex_wake(&ended->is_over, 1); // by its address alone: it may be gone
}

void csched_reclaim_flush(void)
{
    csched_check(csched_grace_prepare(), "the thread that frees memory cannot be started");
    csched_reclaim *domain = csched_reclaim_create();
    csched_check(domain != NULL, "no memory");
    flush mine;
    csched_init(&mine.is_over, 0);
    csched_reclaim_retire(domain, &mine.retired, end_flush);
    csched_reclaim_destroy(domain);
    (void)csched_fetch_add(&flushes, 1, seq_cst);
    csched_futex_wake(&flushes, 1);
    while (csched_load(&mine.is_over, acquire) == 0) {
        (void)csched_futex_wait(&mine.is_over, 0, UINT64_MAX);
    }
    (void)csched_fetch_sub(&flushes, 1, relaxed);
}

void csched_reclaim_join(void)
{
    if (joined++ == 0) {
        reader = csched_epochs_join(&epochs);
        csched_check(reader != NULL, "no memory for a thread that reads");
    }
}

void csched_reclaim_leave(void)
{
    if (--joined == 0) {
        csched_epochs_leave(reader);
        reader = NULL;
    }
}

void csched_reclaim_enter(void) { csched_epochs_enter(&epochs, reader); }

void csched_reclaim_exit(void) { csched_epochs_exit(&epochs, reader); }

#else
typedef int csched_no_epochs; // a file is never empty
#endif
