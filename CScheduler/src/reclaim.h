// reclaim.h - memory that readers may still see: retired now, freed after a grace period.
//
// Readers are workers, and threads inside csched_reclaim_join ... csched_reclaim_leave (statistics, observe).
// Threads that only submit are never readers: they touch nothing but memory they own or that lives as long as
// the scheduler, so their path takes none of liburcu's locks.
//
// Domains, which count, are in reclaim.c. Grace periods are those of liburcu (grace_liburcu.c) where
// CSCHED_LIBURCU is defined, and else our own (grace_epochs.c).

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

/// Counts what one scheduler retired, and what of it was freed.
typedef struct csched_reclaim csched_reclaim;

csched_reclaim *csched_reclaim_create(void);
/// Lets go of the domain, in which nobody retires any more: it is freed with the last of what was retired.
/// Waits for nothing.
void csched_reclaim_destroy(csched_reclaim *domain);
/// Waits until all that was retired is freed, in every domain: with liburcu some 10 ms. Never in a read
/// section.
void csched_reclaim_flush(void);

/// Makes the calling thread a reader / no reader. May take a mutex: rare. Nests.
void csched_reclaim_join(void);
void csched_reclaim_leave(void);

/// A read section: what it finds published is not freed before its end. Wait-free. Never around user code.
void csched_reclaim_enter(void);
void csched_reclaim_exit(void);

/// Frees `object` by `free` after a grace period. Wait-free but for a system call that wakes a thread;
/// allowed inside a read section, and by submitters.
void csched_reclaim_retire(csched_reclaim *domain, csched_retired *object,
                           void (*free)(csched_retired *object));

uint64_t csched_reclaim_retired(const csched_reclaim *domain);
uint64_t csched_reclaim_freed(const csched_reclaim *domain);

/// The part of grace periods in `create`: is called before anything is retired. False: no memory, or no
/// thread.
bool csched_grace_prepare(void);
/// The part of grace periods in `retire`: calls `csched_reclaim_free` after one.
void csched_grace_retire(csched_retired *object);
void csched_reclaim_free(csched_retired *object);

#endif
