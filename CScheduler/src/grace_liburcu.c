// grace_liburcu.c - grace periods by userspace RCU, flavour bp. The only file that includes liburcu.
//
// Why bp and why so few readers: QSBR would stall every grace period behind one long operation. A read
// section of bp (and of memb) costs two plain stores, because the writer makes all running threads execute
// the barrier (membarrier(2)); and only bp can forget the parent's readers in a forked child. Registering
// takes a mutex inside liburcu, and a thread stopped there would block the next one. So workers register once
// when they start, and submitting threads never register.
//
// Orderings:
//   P10  publish (release) / unpublish -> call_rcu -> free: liburcu's grace period waits for every section
//        that began before call_rcu, so a reader that still found the object has left before it is freed.
//
// Source: Desnoyers, McKenney, Stern, Dagenais, Walpole: User-Level Implementations of Read-Copy Update
// (2012).

#ifdef CSCHED_LIBURCU

#include "port.h"

// Inline read sections, but not under sanitizers: ThreadSanitizer misreads their fences, and the reader that
// bp returns is less aligned than its type requires, which only UndefinedBehaviorSanitizer reports.
#ifndef CSCHED_SANITIZE
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

#include "reclaim.h"
#include <pthread.h>

#ifdef CSCHED_SANITIZE_THREAD
void AnnotateHappensBefore(const char *file, int line, const volatile void *address);
void AnnotateHappensAfter(const char *file, int line, const volatile void *address);
#define CSCHED_HAPPENS_BEFORE(address) AnnotateHappensBefore(__FILE__, __LINE__, (address))
#define CSCHED_HAPPENS_AFTER(address) AnnotateHappensAfter(__FILE__, __LINE__, (address))
#else
#define CSCHED_HAPPENS_BEFORE(address) ((void)(address))
#define CSCHED_HAPPENS_AFTER(address) ((void)(address))
#endif

_Static_assert(sizeof(struct rcu_head) <= sizeof(((csched_retired *)NULL)->link.liburcu),
               "rcu_head fits into its place");

csched_thread_local unsigned joined;

static void before_fork(void)
{
    urcu_bp_call_rcu_before_fork();
    urcu_bp_before_fork();
}

static void after_fork_in_parent(void)
{
    urcu_bp_after_fork_parent();
    urcu_bp_call_rcu_after_fork_parent();
}

// The parent's readers no longer exist; its callbacks do, and the child's own thread will run them.
static void after_fork_in_child(void)
{
    urcu_bp_after_fork_child();
    urcu_bp_call_rcu_after_fork_child();
}

// The default call_rcu thread is created under liburcu's mutex: once, before there is anything to retire.
static void prepare(void)
{
    (void)urcu_bp_get_default_call_rcu_data();
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool csched_grace_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, prepare) == 0;
}

void csched_reclaim_flush(void) { urcu_bp_barrier(); }

void csched_reclaim_join(void)
{
    if (joined++ == 0) {
        urcu_bp_register_thread();
    }
}

void csched_reclaim_leave(void)
{
    if (--joined == 0) {
        urcu_bp_unregister_thread();
    }
}

void csched_reclaim_enter(void) { urcu_bp_read_lock(); }

void csched_reclaim_exit(void)
{
    CSCHED_HAPPENS_BEFORE(&csched_reclaim_exit);
    urcu_bp_read_unlock();
}

static void reclaim(struct rcu_head *head)
{
    csched_retired *object = (csched_retired *)(void *)head;
    CSCHED_HAPPENS_AFTER(&csched_reclaim_exit);
    CSCHED_HAPPENS_AFTER(object);
    csched_reclaim_free(object);
}

void csched_grace_retire(csched_retired *object)
{
    CSCHED_HAPPENS_BEFORE(object);
    urcu_bp_call_rcu((struct rcu_head *)(void *)object->link.liburcu, reclaim); // P10
}

#else
typedef int csched_no_liburcu; // a file is never empty
#endif
