// reclaim_model.c - grace periods modelled by their guarantee, in place of liburcu.
//
// Retired memory is freed as early as any grace period may end: by the last exit of the sections that had
// begun, or at once. So a late reader is detected, and none of liburcu's own steps are explored.
//
//   Law  For a section and a grace period, either the section's end happens before the end of the grace
//        period (`ended`), or the beginning of the grace period happens before that of the section (`begun`).
//
// Source: McKenney, Boyd-Wickizer, Walpole: RCU Usage In the Linux Kernel (2013); the law as in the memory
// model of Linux.

#include "port_explorer.h"

#include <string.h>

#include "reclaim.h"
#include "scenario.h"

enum { RETIRED_MOST = 32 };

struct csched_reclaim {
    uint64_t retired;
    uint64_t freed;
    bool destroyed;
};

typedef struct {
    csched_retired *object; // NULL: free
    uint32_t readers;       // bit: a thread whose section had begun
} retirement;

static retirement retirements[RETIRED_MOST];
static uint32_t depth[EXPLORER_THREADS];
static uint32_t begun; // grace periods
static uint32_t ended; // sections

void reclaim_model_begin(void)
{
    memset(retirements, 0, sizeof retirements);
    memset(depth, 0, sizeof depth);
    begun = ended = 0;
}

bool csched_grace_prepare(void) { return true; }

csched_reclaim *csched_reclaim_create(void)
{
    csched_reclaim *domain = csched_allocate(sizeof *domain, 0);
    if (domain != NULL) {
        *domain = (csched_reclaim){0};
    }
    return domain;
}

static bool is_anything_retired(void)
{
    for (int index = 0; index < RETIRED_MOST; index++) {
        if (retirements[index].object != NULL) {
            return true;
        }
    }
    return false;
}

static void free_if_done(csched_reclaim *domain)
{
    if (domain->destroyed && domain->retired == domain->freed) {
        csched_free(domain);
    }
}

void csched_reclaim_destroy(csched_reclaim *domain)
{
    domain->destroyed = true;
    free_if_done(domain);
}

void csched_reclaim_flush(void)
{
    // The wait may be for readers of other schedulers.
    for (;;) {
        uint32_t seen = csched_load(&ended, acquire); // first: it changes after memory is freed
        if (!is_anything_retired()) {
            break;
        }
        (void)csched_futex_wait(&ended, seen, UINT64_MAX);
    }
    (void)csched_fetch_add(&ended, 0, acquire);
}

void csched_reclaim_join(void) {}
void csched_reclaim_leave(void) {}

void csched_reclaim_enter(void)
{
    int self = explorer_self();
    if (self >= 0 && depth[self]++ == 0) {
        (void)csched_fetch_add(&begun, 0, acquire);
    }
}

static void free_now(csched_retired *object)
{
    csched_reclaim *domain = object->domain;
    (void)csched_fetch_add(&ended, 0, acquire);
    (void)csched_fetch_add(&begun, 0, acquire); // what the retiring thread knew
    object->free(object);
    domain->freed++;
    free_if_done(domain);
}

void csched_reclaim_exit(void)
{
    int self = explorer_self();
    if (self < 0) {
        return;
    }
    if (depth[self] == 1) {
        (void)csched_fetch_add(&ended, 1, release); // a step, and so before others see that it has ended
    }
    if (--depth[self] != 0) {
        return;
    }
    bool freed = false;
    for (int index = 0; index < RETIRED_MOST; index++) {
        retirement *each = &retirements[index];
        uint32_t mine = UINT32_C(1) << self;
        if (each->object != NULL && (each->readers & mine) != 0 && (each->readers &= ~mine) == 0) {
            free_now(each->object);
            each->object = NULL; // only now: otherwise a concurrent flush would not wait for it
            freed = true;
        }
    }
    if (freed) {
        (void)csched_fetch_add(&ended, 1, release);
    }
    csched_futex_wake(&ended, INT32_MAX);
}

static uint32_t readers(void)
{
    uint32_t all = 0;
    for (int thread = 0; thread < EXPLORER_THREADS; thread++) {
        all |= depth[thread] != 0 ? UINT32_C(1) << thread : 0;
    }
    return all;
}

void csched_reclaim_retire(csched_reclaim *domain, csched_retired *object,
                           void (*free)(csched_retired *object))
{
    object->domain = domain;
    object->free = free;
    domain->retired++;
    (void)csched_fetch_add(&begun, 1, release);
    uint32_t before = readers();
    if (before == 0) {
        free_now(object);
        return;
    }
    for (int index = 0; index < RETIRED_MOST; index++) {
        if (retirements[index].object == NULL) {
            retirements[index] = (retirement){.object = object, .readers = before};
            return;
        }
    }
    explorer_fail("more than %d objects are retired", RETIRED_MOST);
}

uint64_t csched_reclaim_retired(const csched_reclaim *domain) { return domain->retired; }
uint64_t csched_reclaim_freed(const csched_reclaim *domain) { return domain->freed; }
