// grace_epochs.c - grace periods of our own (epochs.c): one thread of the process, which collects and frees.
//
//   E5  Nothing is freed while the lock `collecting` is held: freeing calls release functions of observers,
//       which are user code, and may fork.
//   E6  The thread exists before anything is retired: schedulers are created after it.
//   E7  `freed` counts objects in the order in which they were retired, and `retired` counts each before it
//       is linked. So everything retired before a flush is freed once `freed` reaches the value of `retired`
//       at that time.
//
// The thread lets objects gather for CSCHED_GATHER_NS after each collection, unless a flush is waiting, or
// more objects are left. A forked child has no such thread until it creates a scheduler of its own.
//
// Orderings:
//   P67  flush: `flushes` (seq_cst), look at `freed` (seq_cst) <-> thread: `freed` (seq_cst), look at
//        `flushes` (seq_cst). Either the flush sees the freed objects, or the thread sees the flush.

#ifndef CSCHED_LIBURCU

#include "epochs.h"

#include <pthread.h>

#include "scheduler_internal.h"
#include "tuning.h"

static csched_epochs epochs;
static bool has_handlers;                                    // fork handlers are registered
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; // guards `is_running`
static bool is_running;
static pthread_mutex_t collecting = PTHREAD_MUTEX_INITIALIZER; // taken after `starting`

static csched_atomic(uint64_t) retired; // E7
static csched_atomic(uint64_t) freed;
static csched_atomic(uint32_t) rounds;  // flushes sleep on it
static csched_atomic(uint32_t) flushes; // waiting flushes: nothing gathers then
static uint64_t in_hand;                // private to the thread: number of objects it is freeing

csched_thread_local csched_reader *reader;
csched_thread_local unsigned joined;
csched_thread_local bool is_the_thread;

static void collect(void)
{
    (void)pthread_mutex_lock(&collecting);
    csched_retired *object = csched_epochs_collect(&epochs, &in_hand);
    (void)pthread_mutex_unlock(&collecting);
    if (object == NULL) {
        csched_epochs_rest(&epochs);
        return;
    }
    for (csched_retired *next; object != NULL; object = next) {
        next = csched_load(&object->link.next, relaxed);
        csched_reclaim_free(object); // E5
    }
    csched_fetch_add(&freed, in_hand, seq_cst); // P67
    csched_fetch_add(&rounds, 1, release);
    if (csched_load(&flushes, seq_cst) != 0) { // P67
        csched_futex_wake(&rounds, INT32_MAX);
    } else if (in_hand < CSCHED_COLLECTED_MOST) {
        (void)csched_futex_wait(&flushes, 0, CSCHED_GATHER_NS);
    }
}

static void *thread_main(void *unused)
{
    is_the_thread = true;
    (void)pthread_setname_np(pthread_self(), "reclaimer");
    for (;;) {
        collect();
    }
    return unused;
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

// Objects that the parent's thread was freeing stay allocated here. When a release function has forked, the
// child's only thread is the freeing one, and continues.
static void after_fork_in_child(void)
{
    has_handlers = true; // even if another thread of the parent had yet to record it
    csched_prepare_fences();
    csched_init(&retired, csched_epochs_after_fork(&epochs, reader) + (is_the_thread ? in_hand : 0));
    csched_init(&freed, 0);
    csched_init(&flushes, 0);
    is_running = is_the_thread;
    after_fork_in_parent();
}

static void prepare(void)
{
    csched_prepare_fences();
    csched_epochs_init(&epochs);
    has_handlers =
        has_handlers || pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

bool csched_grace_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, prepare);
    (void)pthread_mutex_lock(&starting);
    if (has_handlers && !is_running) {
        pthread_t thread;
        is_running = csched_create_thread(&thread, thread_main, NULL) == CSCHED_OK;
        if (is_running) {
            (void)pthread_detach(thread);
        }
    }
    bool prepared = is_running;
    (void)pthread_mutex_unlock(&starting);
    return prepared;
}

void csched_grace_retire(csched_retired *object)
{
    csched_fetch_add(&retired, 1, relaxed); // E7
    csched_epochs_retire(&epochs, object);
}

void csched_reclaim_flush(void)
{
    csched_check(!is_the_thread, "the release function of an observer must not wait for other observers: a "
                                 "scheduler that has one must be destroyed there by destroy_later");
    uint64_t wanted = csched_load(&retired, relaxed);
    (void)csched_fetch_add(&flushes, 1, seq_cst); // P67
    csched_futex_wake(&flushes, 1);
    for (;;) {
        uint32_t seen = csched_load(&rounds, acquire);
        if (csched_load(&freed, seq_cst) >= wanted) { // P67
            break;
        }
        csched_check(csched_grace_prepare(), "the thread that frees memory cannot be started");
        (void)csched_futex_wait(&rounds, seen, UINT64_MAX);
    }
    (void)csched_fetch_sub(&flushes, 1, relaxed);
}

void csched_reclaim_join(void)
{
    if (joined++ == 0) {
        reader = csched_epochs_join(&epochs);
        csched_check(reader != NULL, "out of memory for the reader of a thread");
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
