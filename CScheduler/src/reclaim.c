// reclaim.c - grace periods by userspace RCU, flavour bp. The only file that includes liburcu.
//
// Why bp and why so few readers: QSBR would stall every grace period behind one long operation. A read
// section of bp (and of memb) costs two plain stores, because the writer makes the others execute the barrier
// (membarrier(2)); and bp alone can forget the parent's readers in a forked child. Registering takes a mutex
// inside liburcu, and a thread stopped there would block the next one: so workers register once when they
// start, and a submitting thread never does.
//
// Orderings:
//   P10  publish (release) / unpublish -> call_rcu -> free: liburcu's grace period waits for every section
//        that began before call_rcu, so a reader that still found the object has left before it is freed.
//   P48  the last of the domain's holders, its creator and every retired object, frees it: each lets go with
//        acq_rel, so that what the others did to it comes before.
//
// Source: Desnoyers, McKenney, Stern, Dagenais, Walpole: User-Level Implementations of Read-Copy Update
// (2012).

#include "port.h"

// Inline read sections, but not under sanitizers: ThreadSanitizer misreads their fences, and the reader that
// bp hands out is less aligned than its type says, which only UndefinedBehaviorSanitizer minds.
#ifndef CSCHED_SANITIZE
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

#include <pthread.h>
#include <string.h>

#include "reclaim.h"

#ifdef CSCHED_SANITIZE_THREAD
csched_atomic(unsigned) csched_fence_word;
void AnnotateHappensBefore(const char *file, int line, const volatile void *address);
void AnnotateHappensAfter(const char *file, int line, const volatile void *address);
#define CSCHED_HAPPENS_BEFORE(address) AnnotateHappensBefore(__FILE__, __LINE__, (address))
#define CSCHED_HAPPENS_AFTER(address) AnnotateHappensAfter(__FILE__, __LINE__, (address))
#else
#define CSCHED_HAPPENS_BEFORE(address) ((void)(address))
#define CSCHED_HAPPENS_AFTER(address) ((void)(address))
#endif

_Static_assert(sizeof(struct rcu_head) <= sizeof(((csched_retired *)NULL)->link),
               "rcu_head fits into its place");

struct csched_reclaim {
    csched_atomic(uint64_t) retired;
    csched_atomic(uint64_t) freed;
    csched_atomic(uint64_t) holders; // P48
};

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

// Readers of the parent are no more; its callbacks are, and the child's own thread will run them.
static void after_fork_in_child(void)
{
    urcu_bp_after_fork_child();
    urcu_bp_call_rcu_after_fork_child();
}

// The default call_rcu thread is made under liburcu's mutex: once, before there is anything to retire.
static void prepare(void)
{
    (void)urcu_bp_get_default_call_rcu_data();
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

csched_reclaim *csched_reclaim_create(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    csched_reclaim *domain = csched_allocate(sizeof *domain, 0);
    if (domain != NULL) {
        csched_init(&domain->retired, 0);
        csched_init(&domain->freed, 0);
        csched_init(&domain->holders, 1);
    }
    return domain;
}

static void let_go(csched_reclaim *domain)
{
    if (csched_fetch_sub(&domain->holders, 1, acq_rel) == 1) { // P48
        csched_free(domain);
    }
}

void csched_reclaim_destroy(csched_reclaim *domain) { let_go(domain); }

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
    csched_reclaim *domain = object->domain;
    object->free(object);
    csched_fetch_add(&domain->freed, 1, release);
    let_go(domain);
}

void csched_reclaim_retire(csched_reclaim *domain, csched_retired *object,
                           void (*free)(csched_retired *object))
{
    object->domain = domain;
    object->free = free;
    csched_fetch_add(&domain->retired, 1, relaxed);
    csched_fetch_add(&domain->holders, 1, relaxed);
    CSCHED_HAPPENS_BEFORE(object);
    urcu_bp_call_rcu((struct rcu_head *)(void *)object->link, reclaim); // P10
}

uint64_t csched_reclaim_retired(const csched_reclaim *domain)
{
    return csched_load(&domain->retired, relaxed);
}

uint64_t csched_reclaim_freed(const csched_reclaim *domain) { return csched_load(&domain->freed, acquire); }
