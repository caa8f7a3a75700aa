// reclaim.h - memory that readers may still see: retired now, freed after a grace period.
//
// Readers are workers, and threads inside csched_reclaim_join ... csched_reclaim_leave (statistics, observe).
// Threads that only submit are never readers: they touch only memory that they own or that lives as long as
// the scheduler, so their path takes none of liburcu's locks.
//
// Domains, which count retired and freed objects, are in reclaim.c. Grace periods are those of liburcu
// (grace_liburcu.c) if CSCHED_LIBURCU is defined, else our own (grace_epochs.c).

#ifndef CSCHEDULER_RECLAIM_H
#define CSCHEDULER_RECLAIM_H

#include <stdint.h>

#include "port.h"

/// The head of every retired object; its first member, so that a pointer to it is a pointer to the object.
typedef struct csched_retired {
    union {
        void *liburcu[2]; // struct rcu_head
        csched_atomic(struct csched_retired *) next;
    } link;
    void (*free)(struct csched_retired *object);
    struct csched_reclaim *domain;
} csched_retired;

/// Counts the objects that a scheduler retired, and those that were freed.
typedef struct csched_reclaim csched_reclaim;

csched_reclaim *csched_reclaim_create(void);
/// Lets go of the domain, in which nothing may be retired any more: it is freed with its last retired object.
/// Does not wait.
void csched_reclaim_destroy(csched_reclaim *domain);
/// Waits until all retired objects of every domain are freed: with liburcu about 10 ms. Must not be called in
/// a read section.
void csched_reclaim_flush(void);

/// The calling thread becomes a reader, and ceases to be one. May take a mutex: call rarely. Nests.
void csched_reclaim_join(void);
void csched_reclaim_leave(void);

/// A read section: an object that it finds published is not freed before the section ends. Wait-free. Never
/// around user code.
void csched_reclaim_enter(void);
void csched_reclaim_exit(void);

/// Frees `object` with `free` after a grace period. Wait-free except for a system call that wakes a thread;
/// allowed inside a read section, and by submitters.
void csched_reclaim_retire(csched_reclaim *domain, csched_retired *object,
                           void (*free)(csched_retired *object));

uint64_t csched_reclaim_retired(const csched_reclaim *domain);
uint64_t csched_reclaim_freed(const csched_reclaim *domain);

/// Prepares grace periods; called before anything is retired. False: no memory, or no thread.
bool csched_grace_prepare(void);
/// Calls `csched_reclaim_free` after a grace period.
void csched_grace_retire(csched_retired *object);
void csched_reclaim_free(csched_retired *object);

#endif
