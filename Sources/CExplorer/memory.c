// memory.c - what a load may see: C++20 without load buffering.
//
// Every location keeps its last stores in the order of their execution, which is its modification order.
//
//   M1  Coherence. A load sees no store older than one that happens before it, and none older than one that
//       the thread has seen or made. A read-modify-write sees the newest.
//   M2  An acquire that sees a store learns what its release knew; a relaxed load keeps that until the next
//       acquire fence. A release fence lends what it knew to the relaxed stores that follow.
//   M3  Only read-modify-writes continue a release sequence (C++20; C++11 let the same thread's stores do
//       so).
//   M4  seq_cst operations and fences have one order, that of their execution. A seq_cst load sees no store
//       older than the last seq_cst one, or than what was known before the last fence of any thread; a load
//       after a seq_cst fence sees no store older than a seq_cst one before that fence.
//
// Happens-before decides about races; the view, which also has what M4 adds, decides about visibility.

#include "memory.h"

#include <string.h>

enum { HISTORY = 16, LOCATIONS = 1 << 13 };

typedef struct {
    uint64_t value;
    vector_clock released; // M2: what an acquire load of this store learns
    vector_clock released_view;
    int thread; // -1: the setup
    uint32_t at;
    uint32_t sc; // M4: its place in that order, or 0
} store;

typedef struct {
    const void *address;
    uint32_t execution;
    uint32_t count;                  // stores since the beginning; the last HISTORY of them are kept
    uint32_t seen[EXPLORER_THREADS]; // M1: index of the newest that the thread has seen
    int made_by;                     // the thread that initialised it, and when
    uint32_t made_at;
    store history[HISTORY];
} location;

typedef struct {
    vector_clock happened;
    vector_clock view;
    vector_clock lent; // M2: what the last release fence knew
    vector_clock lent_view;
    vector_clock kept; // M2: what the next acquire fence learns
    vector_clock kept_view;
    uint32_t sc_fence; // M4: the place of its last seq_cst fence
} knowledge;

static location locations[LOCATIONS];
static knowledge threads[EXPLORER_THREADS];
static vector_clock sc_view;
static uint32_t sc_place;
static uint32_t execution = 1; // never that of an unused place
static uint32_t used;          // locations
static bool is_strong;

void explorer_memory_begin(bool sequentially_consistent)
{
    execution++;
    used = 0;
    memset(threads, 0, sizeof threads);
    memset(&sc_view, 0, sizeof sc_view);
    sc_place = 0;
    is_strong = sequentially_consistent;
}

void explorer_memory_tick(int thread)
{
    if (thread >= 0) {
        threads[thread].view.at[thread] = ++threads[thread].happened.at[thread];
    }
}

static uint32_t now(int thread) { return thread >= 0 ? threads[thread].happened.at[thread] : 0; }

void explorer_memory_spawn(int parent, int child)
{
    if (parent >= 0) {
        explorer_memory_tick(parent);
        threads[child].happened = threads[parent].happened;
        threads[child].view = threads[parent].view;
    }
    explorer_memory_tick(child);
}

void explorer_memory_join(int thread, int ended)
{
    clock_join(&threads[thread].happened, &threads[ended].happened);
    clock_join(&threads[thread].view, &threads[ended].view);
}

uint64_t explorer_word_at(const void *object, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, object, size);
    return value;
}

static void write_word(void *object, size_t size, uint64_t value) { memcpy(object, &value, size); }

// The place of an object, or the free one where it would be; its `execution` distinguishes them.
static location *find(const void *object)
{
    size_t index = ((uintptr_t)object >> 2) * UINT64_C(0x9E3779B97F4A7C15) >> 51;
    while (locations[index].execution == execution && locations[index].address != object) {
        index = (index + 1) % LOCATIONS;
    }
    return &locations[index];
}

static location *place_of(const void *object)
{
    location *place = find(object);
    if (place->execution != execution) {
        if (++used == LOCATIONS) {
            explorer_fail("the program has more atomic objects than the explorer watches: %d", LOCATIONS);
        }
        memset(place, 0, offsetof(location, history));
        place->execution = execution;
        place->address = object;
        place->made_by = -1;
    }
    return place;
}

static store *store_at(location *place, uint32_t index) { return &place->history[index % HISTORY]; }
static store *newest(location *place) { return store_at(place, place->count - 1); }

static void begin_history(location *place, int thread, uint64_t value)
{
    place->made_by = thread;
    place->made_at = now(thread);
    place->count = 1;
    memset(place->seen, 0, sizeof place->seen);
    store *first = store_at(place, 0);
    memset(first, 0, sizeof *first);
    first->value = value;
    first->thread = thread;
    first->at = place->made_at;
}

// A value written there by plain code counts as written before all threads.
static location *location_of(const void *object, size_t size)
{
    location *place = place_of(object);
    uint64_t value = explorer_word_at(object, size);
    if (place->count == 0 || newest(place)->value != value) {
        begin_history(place, -1, value);
    }
    return place;
}

static void learn(int thread, const store *seen, bool acquires)
{
    knowledge *mine = &threads[thread];
    clock_join(acquires ? &mine->happened : &mine->kept, &seen->released);
    clock_join(acquires ? &mine->view : &mine->kept_view, &seen->released_view);
}

static bool acquires(explorer_order order)
{
    return order == explorer_acquire || order == explorer_acq_rel || order == explorer_seq_cst;
}

static bool releases(explorer_order order)
{
    return order == explorer_release || order == explorer_acq_rel || order == explorer_seq_cst;
}

int explorer_memory_visible(int thread, const void *object, size_t size, explorer_order order)
{
    location *place = location_of(object, size);
    const knowledge *mine = &threads[thread];
    vector_clock view = mine->view;
    if (order == explorer_seq_cst) {
        clock_join(&view, &sc_view); // M4: for this load only
    }
    if (is_strong) {
        return 1;
    }
    uint32_t oldest = place->seen[thread];
    if (place->count > HISTORY && oldest < place->count - HISTORY) {
        oldest = place->count - HISTORY;
    }
    uint32_t index = place->count - 1;
    for (; index > oldest; index--) {
        const store *each = store_at(place, index);
        bool known = each->thread < 0 || view.at[each->thread] >= each->at;                        // M1
        bool ordered = each->sc != 0 && (order == explorer_seq_cst || each->sc <= mine->sc_fence); // M4
        if (known || ordered) {
            break;
        }
    }
    return (int)(place->count - index);
}

uint64_t explorer_memory_peek(const void *object, size_t size, int back)
{
    location *place = location_of(object, size);
    return store_at(place, place->count - 1 - (uint32_t)back)->value;
}

uint64_t explorer_memory_load(int thread, const void *object, size_t size, explorer_order order, int back)
{
    location *place = location_of(object, size);
    uint32_t index = place->count - 1 - (uint32_t)back;
    const store *seen = store_at(place, index);
    place->seen[thread] = index;
    learn(thread, seen, acquires(order));
    return seen->value;
}

static void append(int thread, void *object, size_t size, uint64_t value, explorer_order order,
                   const store *continued)
{
    location *place = location_of(object, size);
    knowledge *mine = &threads[thread];
    explorer_memory_tick(thread);
    store added = {.thread = thread, .at = now(thread)};
    added.sc = order == explorer_seq_cst ? ++sc_place : 0;
    added.released = releases(order) ? mine->happened : mine->lent;
    added.released_view = releases(order) ? mine->view : mine->lent_view;
    if (continued != NULL) { // M3
        clock_join(&added.released, &continued->released);
        clock_join(&added.released_view, &continued->released_view);
    }
    write_word(object, size, value);
    added.value = explorer_word_at(object, size);
    place->seen[thread] = place->count++;
    *newest(place) = added;
}

void explorer_memory_store(int thread, void *object, size_t size, uint64_t value, explorer_order order)
{
    append(thread, object, size, value, order, NULL);
}

uint64_t explorer_memory_modify(int thread, void *object, size_t size, uint64_t value, explorer_order order)
{
    store before = *newest(location_of(object, size));
    learn(thread, &before, acquires(order));
    append(thread, object, size, value, order, &before);
    return before.value;
}

void explorer_memory_fence(int thread, explorer_order order)
{
    knowledge *mine = &threads[thread];
    explorer_memory_tick(thread);
    if (acquires(order)) {
        clock_join(&mine->happened, &mine->kept);
        clock_join(&mine->view, &mine->kept_view);
    }
    if (order == explorer_seq_cst) {
        clock_join(&mine->view, &sc_view);
        clock_join(&sc_view, &mine->view);
        mine->sc_fence = ++sc_place;
    }
    if (releases(order)) {
        mine->lent = mine->happened;
        mine->lent_view = mine->view;
    }
}

void explorer_memory_fence_all(int thread)
{
    explorer_memory_fence(thread, explorer_seq_cst);
    for (int other = 0; other < EXPLORER_THREADS; other++) {
        if (other != thread) {
            explorer_memory_fence(other, explorer_seq_cst);
        }
    }
    explorer_memory_fence(thread, explorer_seq_cst);
}

void explorer_memory_init(int thread, void *object, size_t size, uint64_t value)
{
    write_word(object, size, value);
    explorer_memory_tick(thread);
    begin_history(place_of(object), thread, explorer_word_at(object, size));
}

const vector_clock *explorer_memory_known(int thread) { return &threads[thread].happened; }

const char *explorer_memory_is_known(int thread, const void *object, size_t size)
{
    const location *place = location_of(object, size);
    bool known = place->made_by < 0 || threads[thread].happened.at[place->made_by] >= place->made_at;
    return known ? NULL
                 : "a data race (R4): the word was initialised by a thread, and this one does not know of it";
}

const char *explorer_memory_is_stored_to(int thread, const void *object)
{
    const location *place = find(object);
    if (place->execution != execution || place->count == 0) {
        return NULL;
    }
    const store *last = &place->history[(place->count - 1) % HISTORY];
    bool known =
        last->thread < 0 || last->thread == thread || threads[thread].happened.at[last->thread] >= last->at;
    return known ? NULL
                 : "a data race (R4): a plain access to an atomic object that another thread stores to; an "
                   "operator "
                   "on it is plain here, its functions are not";
}
