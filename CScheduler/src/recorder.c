// recorder.c - events with timestamps, in the ring of the thread that records them.
//
// Reading the clock takes longer than everything else that is done for an event. So the processor's tick
// counter is read, which takes less than half of that, and converted when the events are read; and a body
// that begins immediately after the previous one has ended gets the same tick. If the counter does not run
// steadily, the clock is read.

#include "recorder.h"

#include <pthread.h>
#include <string.h>

#include "ring.h"

// The low bits of an event's first word; above them are the ticks since the first start.
enum { KIND_BITS = 6, KINDS = 1 << KIND_BITS };
enum { EVENTS_LEAST = 64, EVENTS_USUAL = 1 << 13, EVENTS_MOST = 1 << 20 };
enum { RINGS_ENOUGH = 64 }; // from here on, rings of ended threads are reused

csched_atomic(uint32_t) csched_recorder_on; // which start this is, from 1; 0: off

// Written at the first start, before `csched_recorder_on`, and never again.
static csched_atomic(uint64_t) origin_ticks;
static csched_atomic(uint64_t) origin_ns;
static csched_atomic(bool) are_ticks_steady;

static csched_atomic(uint32_t) starts;
static csched_atomic(uint32_t) capacity;
static csched_rings rings;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_exit;

csched_thread_local csched_ring *mine;
csched_thread_local uint64_t last_ticks;
csched_thread_local uint32_t last_kind;
csched_thread_local uint32_t last_start;

static uint64_t ticks(void)
{
    return csched_likely(csched_load(&are_ticks_steady, relaxed)) ? csched_ticks() : csched_now_ns();
}

static void give_back(void *ring)
{
    mine = NULL;
    csched_ring_give_back(&rings, ring);
}

static void begin(void)
{
    csched_check(pthread_key_create(&thread_exit, give_back) == 0, "no pthread key is left");
    csched_store(&are_ticks_steady, csched_ticks_are_steady(), relaxed);
    csched_store(&origin_ns, csched_now_ns(), relaxed);
    csched_store(&origin_ticks, ticks(), relaxed);
}

static csched_ring_owner owner_here(void)
{
    char name[16] = "";
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    csched_ring_owner owner = {.words = {(uint32_t)csched_thread_id()}};
    memcpy(&owner.words[1], name, sizeof name);
    return owner;
}

static bool take_ring(void)
{
    csched_ring_owner owner = owner_here();
    mine = csched_rings_take(&rings, &owner, csched_load(&capacity, relaxed), RINGS_ENOUGH);
    return mine != NULL && pthread_setspecific(thread_exit, mine) == 0;
}

// A body begins at the tick at which the previous one ended, if nothing was recorded in between.
static void stamp(uint32_t kind)
{
    if (kind != CSCHED_RECORDED_BEGIN || last_kind != CSCHED_RECORDED_END) {
        last_ticks = ticks();
    }
    last_kind = kind;
}

static void record(uint32_t kind, uint64_t run, uint64_t context, uint64_t extra)
{
    uint64_t since = last_ticks - csched_load(&origin_ticks, relaxed);
    csched_ring_write(mine, since << KIND_BITS | kind, run, context, extra);
}

// The thread's first event since the recorder was started: earlier begins have no matching end.
static void resume(uint32_t start)
{
    last_start = start;
    last_kind = CSCHED_RECORDED_RESUME;
    last_ticks = ticks();
    record(CSCHED_RECORDED_RESUME, 0, 0, 0);
}

void csched_recorder_note(uint32_t kind, csched_function run, const void *context, const void *extra)
{
    uint32_t start = csched_load(&csched_recorder_on, acquire);
    if (start == 0 || (csched_unlikely(mine == NULL) && !take_ring())) {
        return;
    }
    if (csched_unlikely(start != last_start)) {
        resume(start);
    }
    stamp(kind);
    record(kind, (uint64_t)(uintptr_t)run, (uint64_t)(uintptr_t)context, (uint64_t)(uintptr_t)extra);
}

void csched_recorder_start(uint32_t events)
{
    uint32_t wanted = events == 0 ? EVENTS_USUAL : events > EVENTS_MOST ? EVENTS_MOST : events;
    uint32_t rounded = EVENTS_LEAST;
    while (rounded < wanted) {
        rounded *= 2;
    }
    csched_store(&capacity, rounded, relaxed);
    pthread_once(&once, begin);
    uint32_t off = 0;
    uint32_t start = csched_fetch_add(&starts, 1, relaxed) + 1;
    (void)csched_cas(&csched_recorder_on, &off, start, release, relaxed); // publishes begin()'s writes
}

void csched_recorder_stop(void) { csched_store(&csched_recorder_on, 0, relaxed); }

bool csched_recorder_is_on(void) { return csched_is_recording(); }

void csched_record(uint32_t kind, uint64_t subject, uint64_t extra)
{
    csched_check(kind >= CSCHED_RECORDED_OWN && kind < KINDS, "a caller's own kind must be from 32 to 63");
    if (csched_is_recording()) {
        csched_recorder_note(kind, NULL, (const void *)(uintptr_t)subject, (const void *)(uintptr_t)extra);
    }
}

// Nanoseconds per tick, measured since the first start.
static double ns_of_tick(void)
{
    uint64_t passed = ticks() - csched_load(&origin_ticks, relaxed);
    uint64_t passed_ns = csched_now_ns() - csched_load(&origin_ns, relaxed);
    return passed == 0 ? 1 : (double)passed_ns / (double)passed;
}

static csched_recorded_event event_of(const csched_ring_event *event, double ns)
{
    return (csched_recorded_event){
        .at_ns = csched_load(&origin_ns, relaxed) + (uint64_t)((double)(event->words[0] >> KIND_BITS) * ns),
        .run = event->words[1],
        .subject = event->words[2],
        .extra = event->words[3],
        .kind = (uint32_t)(event->words[0] % KINDS),
    };
}

static bool read_ring(const csched_ring *ring, double ns, csched_recorder_visit visit, void *context)
{
    csched_ring_event *copied = csched_allocate((size_t)ring->capacity * sizeof *copied, 0);
    csched_recorded_event *events = csched_allocate((size_t)ring->capacity * sizeof *events, 0);
    bool has_memory = copied != NULL && events != NULL;
    if (has_memory) {
        csched_ring_contents contents = csched_ring_read(ring, copied);
        for (uint64_t index = 0; index < contents.count; index++) {
            events[index] = event_of(&copied[index], ns);
        }
        csched_recorded_thread thread = {.kernel_id = (int32_t)contents.owner.words[0],
                                         .lost = contents.lost};
        memcpy(thread.name, &contents.owner.words[1], sizeof thread.name);
        if (contents.count != 0) {
            visit(context, &thread, events, (size_t)contents.count);
        }
    }
    csched_free(copied);
    csched_free(events);
    return has_memory;
}

bool csched_recorder_read(int32_t kernel_id, csched_recorder_visit visit, void *context)
{
    bool has_memory = true;
    double ns = ns_of_tick();
    for (const csched_ring *ring = csched_load(&rings.newest, acquire); ring != NULL; ring = ring->older) {
        if (kernel_id != 0 && csched_load(&ring->owner[0], relaxed) != (uint32_t)kernel_id) {
            continue;
        }
        has_memory = read_ring(ring, ns, visit, context) && has_memory;
    }
    return has_memory;
}
