// registry.h - the inboxes of all threads that submit to one scheduler; threads come and go.
//
// Contracts are stated here, the argument (R1.., P16..) in registry.c.

#ifndef CSCHEDULER_REGISTRY_H
#define CSCHEDULER_REGISTRY_H

#include "inbox.h"
#include "port.h"
#include "reclaim.h"

/// One thread's inbox at one scheduler.
typedef struct csched_submitter {
    csched_retired retired;
    uint64_t scheduler_id;
    struct csched_submitter *next; // the thread's own list
    csched_atomic(uint32_t) holders;
    csched_atomic(bool) stays_open; // its thread is a worker: a close skips it
    csched_inbox inbox;
} csched_submitter;

typedef struct csched_registry_chunk csched_registry_chunk;

typedef struct {
    csched_registry_chunk *first;
    csched_reclaim *domain;
    csched_atomic(uint64_t) departed; // operations appended to inboxes that are gone
} csched_registry;

/// False: out of memory.
bool csched_registry_init(csched_registry *registry, csched_reclaim *domain);
/// Drops the scheduler's hold on every inbox; inboxes whose thread has ended are freed. All workers must have
/// exited.
void csched_registry_destroy(csched_registry *registry);

/// The calling thread's inbox, or NULL when it has none at the scheduler with this id. Wait-free, usually two
/// loads.
csched_submitter *csched_registry_find(uint64_t scheduler_id);
/// Creates an inbox and lists it. NULL: out of memory. Lock-free; seq_cst: ordered before the caller's read
/// of `closing`.
csched_submitter *csched_registry_add(csched_registry *registry, uint64_t scheduler_id, bool stays_open);

/// Reader, inside a read section: takes operations from the first inbox after `*cursor` that has some, and
/// advances the cursor. Unlists empty inboxes whose threads have ended on the way. Lock-free.
size_t csched_registry_take(csched_registry *registry, uint64_t *cursor, csched_operation *operations,
                            size_t room);
/// Reader, inside a read section. seq_cst: the re-check before sleeping.
bool csched_registry_is_empty(const csched_registry *registry);
/// Reader, inside a read section: closes every listed inbox, except those that stay open.
void csched_registry_close(csched_registry *registry);
/// Reader, inside a read section: how many operations were ever appended.
uint64_t csched_registry_appended(const csched_registry *registry);
/// Reader, inside a read section: how many operations wait. A momentary estimate.
uint64_t csched_registry_waiting(const csched_registry *registry);

#endif
