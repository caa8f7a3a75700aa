// reclaim.c - domains: how many objects a scheduler has retired, and how many of them are freed.
//
// Orderings:
//   P48  the last of the domain's holders, its creator and every retired object, frees it: each lets go with
//        acq_rel, so that the other holders' accesses happen before.

#include "reclaim.h"

struct csched_reclaim {
    csched_atomic(uint64_t) retired;
    csched_atomic(uint64_t) freed;
    csched_atomic(uint64_t) holders; // P48
};

csched_reclaim *csched_reclaim_create(void)
{
    if (!csched_grace_prepare()) {
        return NULL;
    }
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

void csched_reclaim_retire(csched_reclaim *domain, csched_retired *object,
                           void (*free)(csched_retired *object))
{
    object->domain = domain;
    object->free = free;
    csched_fetch_add(&domain->retired, 1, relaxed);
    csched_fetch_add(&domain->holders, 1, relaxed);
    csched_grace_retire(object);
}

void csched_reclaim_free(csched_retired *object)
{
    csched_reclaim *domain = object->domain;
    object->free(object);
    csched_fetch_add(&domain->freed, 1, release);
    let_go(domain);
}

uint64_t csched_reclaim_retired(const csched_reclaim *domain)
{
    return csched_load(&domain->retired, relaxed);
}

uint64_t csched_reclaim_freed(const csched_reclaim *domain) { return csched_load(&domain->freed, acquire); }
