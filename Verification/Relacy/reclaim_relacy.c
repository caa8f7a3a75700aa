// reclaim_relacy.c - grace periods as a model of their law, in place of liburcu; as in the explorer's build.
//
// What is retired is freed as early as any grace period may end: by the last exit of the sections that had
// begun, or at once. So a reader that is late is found.
//
//   Law  Of a section and a grace period, either the section's end happens before the end of the grace period
//        (`ended`), or the begin of the grace period happens before the section's (`begun`). And what was
//        done before the retirement happens before the free.
//
// Source: McKenney, Boyd-Wickizer, Walpole: RCU Usage In the Linux Kernel (2013).

#include "port_relacy.h"

#include <string.h>

#include "reclaim.h"
#include "scenario.h"

enum { RETIRED_MOST = 32, THREADS_MOST = 8 };

struct csched_reclaim {
    uint64_t retired;
    uint64_t freed;
};

typedef struct {
    csched_retired *object; // NULL: free
    uint32_t readers;       // bit: a thread whose section had begun
} retirement;

static retirement retirements[RETIRED_MOST];
static uint32_t depth[THREADS_MOST];
static uint32_t begun; // grace periods
static uint32_t ended; // sections

void reclaim_model_begin(void)
{
    memset(retirements, 0, sizeof retirements);
    memset(depth, 0, sizeof depth);
    csched_init(&begun, 0);
    csched_init(&ended, 0);
}

csched_reclaim *csched_reclaim_create(void)
{
    csched_reclaim *domain = csched_allocate(sizeof *domain, 0);
    domain->retired = domain->freed = 0;
    return domain;
}

void csched_reclaim_destroy(csched_reclaim *domain)
{
    if (domain->retired != domain->freed) {
        relacy_fail("a reader is left when the domain is destroyed");
    }
    csched_free(domain);
}

void csched_reclaim_join(void) {}
void csched_reclaim_leave(void) {}

void csched_reclaim_enter(void)
{
    int self = relacy_self();
    if (self >= 0 && depth[self]++ == 0) {
        (void)csched_fetch_add(&begun, 0, acquire);
    }
}

static void free_now(csched_retired *object)
{
    csched_reclaim *domain = object->domain;
    (void)csched_fetch_add(&begun, 0, acquire);
    (void)csched_fetch_add(&ended, 0, acquire);
    domain->freed++;
    object->free(object);
}

void csched_reclaim_exit(void)
{
    int self = relacy_self();
    if (self < 0) {
        return;
    }
    if (depth[self] > 1) {
        depth[self]--;
        return;
    }
    (void)csched_fetch_add(&ended, 1, release); // before the section counts as ended
    depth[self] = 0;
    for (int index = 0; index < RETIRED_MOST; index++) {
        retirement *each = &retirements[index];
        uint32_t mine = UINT32_C(1) << self;
        if (each->object != NULL && (each->readers & mine) != 0 && (each->readers &= ~mine) == 0) {
            csched_retired *object = each->object;
            each->object = NULL;
            free_now(object);
        }
    }
}

static uint32_t readers(void)
{
    uint32_t all = 0;
    for (int thread = 0; thread < THREADS_MOST; thread++) {
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
    relacy_fail("more than %d objects are retired", RETIRED_MOST);
}

uint64_t csched_reclaim_retired(const csched_reclaim *domain) { return domain->retired; }
uint64_t csched_reclaim_freed(const csched_reclaim *domain) { return domain->freed; }
