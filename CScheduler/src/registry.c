// registry.c - a growing table of places for inboxes, read by workers, changed by compare-exchange.
//
//   R1  Chunks of places are only ever added, and live as long as the scheduler: a thread can list its inbox
//       without being an RCU reader, and so without liburcu's registration mutex. Memory is bounded by the
//       largest number of threads at one time, 9 bytes each.
//   R2  An inbox has two holders: its thread and the scheduler. Each lets go once; the second one frees the
//       inbox: after a grace period if workers may still read it (the scheduler's side let go last, while
//       running), else at once.
//   R3  A worker unlists an inbox only when its thread has let go and the inbox is empty: no further append
//       is possible.
//
// Orderings:
//   P16  add: chunk and place (seq_cst), then the read of `closing` <-> close: `closing`, then the chunks and
//        places (seq_cst). Of a new submitter and a shutdown, at least one sees the other.
//   P17  a thread lets go (acq_rel) -> worker: holders (acquire). The thread's last append precedes the look
//        that finds the inbox empty.

#include "registry.h"

#include <pthread.h>

enum { THREAD = 1, SCHEDULER = 2 };
enum { PLACES = 64 };

struct csched_registry_chunk {
    csched_atomic(uint64_t) occupied; // bit: the place is claimed
    csched_atomic(csched_registry_chunk *) next;
    csched_atomic(csched_submitter *) place[PLACES];
};

csched_thread_local csched_submitter *mine; // the most recently used one first

static pthread_key_t thread_exit;

static void free_submitter(csched_retired *object)
{
    csched_submitter *submitter = (csched_submitter *)(void *)object;
    csched_inbox_destroy(&submitter->inbox);
    csched_free(submitter);
}

// R2, the thread's side. Does not touch the scheduler, which may already be freed.
static void let_go(csched_submitter *submitter)
{
    if (csched_fetch_and(&submitter->holders, ~(uint32_t)THREAD, acq_rel) == THREAD) { // P17
        free_submitter(&submitter->retired);
    }
}

static void forget_all(void *unused)
{
    (void)unused;
    for (csched_submitter *next; mine != NULL; mine = next) {
        next = mine->next;
        let_go(mine);
    }
}

static void make_key(void)
{
    csched_check(pthread_key_create(&thread_exit, forget_all) == 0, "no pthread key is left");
}

static csched_registry_chunk *allocate_chunk(void)
{
    csched_registry_chunk *chunk = csched_allocate(sizeof *chunk, CSCHED_LINE);
    if (chunk != NULL) {
        csched_init(&chunk->occupied, 0);
        csched_init(&chunk->next, NULL);
        for (int place = 0; place < PLACES; place++) {
            csched_init(&chunk->place[place], NULL);
        }
    }
    return chunk;
}

bool csched_registry_init(csched_registry *registry, csched_reclaim *domain)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    registry->first = allocate_chunk();
    registry->domain = domain;
    csched_init(&registry->departed, 0);
    return registry->first != NULL;
}

void csched_registry_destroy(csched_registry *registry)
{
    for (csched_registry_chunk *chunk = registry->first, *next; chunk != NULL; chunk = next) {
        for (uint64_t occupied = csched_load(&chunk->occupied, relaxed); occupied != 0;
             occupied &= occupied - 1) {
            csched_submitter *submitter = csched_load(&chunk->place[__builtin_ctzll(occupied)], relaxed);
            if (submitter != NULL &&
                csched_fetch_and(&submitter->holders, ~(uint32_t)SCHEDULER, acq_rel) == SCHEDULER) {
                free_submitter(&submitter->retired); // R2: its thread let go first, and no worker is left
            }
        }
        next = csched_load(&chunk->next, relaxed);
        csched_free(chunk);
    }
}

// The thread's list also holds inboxes of destroyed schedulers; they are dropped when the list is walked.
static csched_submitter *find_slowly(uint64_t scheduler_id)
{
    csched_submitter **link = &mine;
    while (*link != NULL) {
        csched_submitter *submitter = *link;
        if (submitter->scheduler_id == scheduler_id) {
            *link = submitter->next;
            submitter->next = mine;
            mine = submitter;
            return submitter;
        }
        if ((csched_load(&submitter->holders, relaxed) & SCHEDULER) == 0) { // letting go acquires
            *link = submitter->next;
            let_go(submitter);
        } else {
            link = &submitter->next;
        }
    }
    return NULL;
}

csched_submitter *csched_registry_find(uint64_t scheduler_id)
{
    if (csched_likely(mine != NULL && mine->scheduler_id == scheduler_id)) {
        return mine;
    }
    return find_slowly(scheduler_id);
}

// Puts the submitter into a free place; a chunk is added when all are taken. False: out of memory.
static bool list(csched_registry *registry, csched_submitter *submitter)
{
    for (csched_registry_chunk *chunk = registry->first;;) {
        uint64_t occupied = csched_load(&chunk->occupied, relaxed);
        while (occupied != UINT64_MAX) {
            int place = __builtin_ctzll(~occupied);
            if (csched_cas_weak(&chunk->occupied, &occupied, occupied | UINT64_C(1) << place, seq_cst,
                                relaxed)) {                             // P16
                csched_store(&chunk->place[place], submitter, seq_cst); // P16
                return true;
            }
        }
        csched_registry_chunk *next = csched_load(&chunk->next, acquire);
        if (next == NULL) {
            csched_registry_chunk *added = allocate_chunk();
            if (added == NULL) {
                return false;
            }
            if (csched_cas(&chunk->next, &next, added, seq_cst, acquire)) { // P16
                next = added;
            } else {
                csched_free(added); // another thread added one, and `next` is it
            }
        }
        chunk = next;
    }
}

csched_submitter *csched_registry_add(csched_registry *registry, uint64_t scheduler_id, bool stays_open)
{
    csched_submitter *submitter = csched_allocate(sizeof *submitter, CSCHED_LINE);
    if (submitter == NULL) {
        return NULL;
    }
    if (!csched_inbox_init(&submitter->inbox, registry->domain)) {
        csched_free(submitter);
        return NULL;
    }
    submitter->scheduler_id = scheduler_id;
    csched_init(&submitter->holders, THREAD | SCHEDULER);
    csched_init(&submitter->stays_open, stays_open);
    if (!list(registry, submitter)) {
        free_submitter(&submitter->retired);
        return NULL;
    }
    submitter->next = mine;
    mine = submitter;
    csched_check(pthread_setspecific(thread_exit, submitter) == 0,
                 "out of memory for a thread's exit handler");
    return submitter;
}

// R3. Several workers may get here with the same inbox; the exchange of its place decides.
static void unlist_if_left(csched_registry *registry, csched_registry_chunk *chunk, int place,
                           csched_submitter *submitter)
{
    if ((csched_load(&submitter->holders, acquire) & THREAD) != 0 ||
        !csched_inbox_is_empty(&submitter->inbox)) { // P17
        return;
    }
    csched_submitter *expected = submitter;
    // release: a thread that finds the place empty has seen what this one saw in the inbox (P8).
    if (csched_cas(&chunk->place[place], &expected, NULL, release, relaxed)) {
        csched_fetch_add(&registry->departed, csched_inbox_appended(&submitter->inbox), relaxed);
        csched_fetch_and(&chunk->occupied, ~(UINT64_C(1) << place), release);
        csched_reclaim_retire(registry->domain, &submitter->retired, free_submitter); // R2
    }
}

static size_t take_from_place(csched_registry *registry, csched_registry_chunk *chunk, int place,
                              csched_operation *operations, size_t room)
{
    csched_submitter *submitter = csched_load(&chunk->place[place], acquire);
    if (submitter == NULL) {
        return 0; // claimed, and not listed yet
    }
    size_t count = csched_inbox_take(&submitter->inbox, operations, room);
    if (count == 0) {
        unlist_if_left(registry, chunk, place, submitter);
    }
    return count;
}

size_t csched_registry_take(csched_registry *registry, uint64_t *cursor, csched_operation *operations,
                            size_t room)
{
    // Two passes over the places: first from the cursor to the end, then from the beginning.
    uint64_t from = *cursor;
    for (int pass = 0; pass < 2; pass++) {
        uint64_t base = 0;
        for (csched_registry_chunk *chunk = registry->first; chunk != NULL;
             chunk = csched_load(&chunk->next, acquire), base += PLACES) {
            uint64_t occupied = csched_load(&chunk->occupied, relaxed); // a hint; the places acquire
            if (from > base) {
                occupied &= from - base < PLACES ? ~UINT64_C(0) << (from - base) : 0;
            }
            for (; occupied != 0; occupied &= occupied - 1) {
                int place = __builtin_ctzll(occupied);
                size_t count = take_from_place(registry, chunk, place, operations, room);
                if (count != 0) {
                    *cursor = base + (uint64_t)place + 1;
                    return count;
                }
            }
        }
        if (from == 0) {
            break;
        }
        from = 0;
    }
    *cursor = 0;
    return 0;
}

bool csched_registry_is_empty(const csched_registry *registry)
{
    for (const csched_registry_chunk *chunk = registry->first; chunk != NULL;
         chunk = csched_load(&chunk->next, seq_cst)) {
        for (uint64_t occupied = csched_load(&chunk->occupied, seq_cst); occupied != 0;
             occupied &= occupied - 1) {
            const csched_submitter *submitter =
                csched_load(&chunk->place[__builtin_ctzll(occupied)], seq_cst);
            if (submitter != NULL && !csched_inbox_is_empty(&submitter->inbox)) {
                return false;
            }
        }
    }
    return true;
}

void csched_registry_close(csched_registry *registry)
{
    for (csched_registry_chunk *chunk = registry->first; chunk != NULL;
         chunk = csched_load(&chunk->next, seq_cst)) {                                  // P16
        for (uint64_t occupied = csched_load(&chunk->occupied, seq_cst); occupied != 0; // P16
             occupied &= occupied - 1) {
            csched_submitter *submitter =
                csched_load(&chunk->place[__builtin_ctzll(occupied)], seq_cst);       // P16
            if (submitter != NULL && !csched_load(&submitter->stays_open, seq_cst)) { // P16
                csched_inbox_close(&submitter->inbox);
            }
        }
    }
}

// Sums over all listed inboxes.
static uint64_t sum_of(const csched_registry *registry, uint64_t (*of)(const csched_inbox *inbox))
{
    uint64_t sum = 0;
    for (const csched_registry_chunk *chunk = registry->first; chunk != NULL;
         chunk = csched_load(&chunk->next, acquire)) {
        for (uint64_t occupied = csched_load(&chunk->occupied, relaxed); occupied != 0;
             occupied &= occupied - 1) {
            const csched_submitter *submitter =
                csched_load(&chunk->place[__builtin_ctzll(occupied)], acquire);
            sum += submitter == NULL ? 0 : of(&submitter->inbox);
        }
    }
    return sum;
}

uint64_t csched_registry_appended(const csched_registry *registry)
{
    uint64_t departed = csched_load(&registry->departed, relaxed);
    return departed + sum_of(registry, csched_inbox_appended);
}

uint64_t csched_registry_waiting(const csched_registry *registry)
{
    return sum_of(registry, csched_inbox_waiting);
}
