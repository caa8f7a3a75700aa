// ring.c - the last events of each thread, read while they are written.
//
//   V1  A ring has one writer at a time: the thread that has taken it. `taken` passes it from one to the next
//       (P57), so the next one continues where the last one stopped.
//   V2  Event n lies in slot n modulo the capacity until event n + capacity is written there. A reader copies
//       first, then looks at `written`: its copy of event n is valid if `written` is still less than
//       n + capacity. At n + capacity the writer may have begun the newer event.
//   V3  Rings are only ever added, and live as long as the process: a reader needs no protection.
//   V4  A reader has copied one owner's events if `takings` is even, and the same before and after (P58).
//
// Orderings:
//   P55  writer: a word of event n + capacity (release) -> reader: that word (acquire). With it,
//        `written` = n + capacity becomes visible: a reader that has copied any word of the newer event sees
//        that the older one is gone.
//   P56  writer: `written` (release) -> reader: `written` (acquire). Publishes the words of all events so
//        far.
//   P57  give back: `taken` = 0 (release) -> take: compare-exchange (acquire). The next writer sees all
//        writes of the last one.
//   P58  take: `takings` odd, then the first event and the owner (release), then `takings` even (release) ->
//        reader: `takings` (acquire), then the first event and the owner (acquire), then `takings`. A reader
//        that sees a new first event or owner sees the odd `takings`, or a later one.
//
// Source: the argument of sequence locks (Boehm: Can Seqlocks Get Along with Programming Language Memory
// Models?, 2012), with the event's number as the sequence number.

#include "ring.h"

#include <string.h>

static void begin_owner(csched_ring *ring, const csched_ring_owner *owner)
{
    uint32_t takings = csched_load(&ring->takings, relaxed);
    csched_store(&ring->takings, takings + 1, relaxed);
    csched_store(&ring->first, csched_load(&ring->written, relaxed), release); // P58
    csched_store(&ring->owner[0], owner->words[0], release);                   // P58
    csched_store(&ring->owner[1], owner->words[1], release);                   // P58
    csched_store(&ring->owner[2], owner->words[2], release);                   // P58
    csched_store(&ring->takings, takings + 2, release);                        // P58
}

static csched_ring *add(csched_rings *rings, const csched_ring_owner *owner, uint64_t capacity)
{
    csched_ring *ring =
        csched_allocate(sizeof *ring + (size_t)capacity * sizeof(csched_ring_slot), CSCHED_LINE);
    if (ring == NULL) {
        return NULL;
    }
    csched_init(&ring->written, 0);
    csched_init(&ring->taken, 1);
    csched_init(&ring->left, 0);
    csched_init(&ring->takings, 0);
    csched_init(&ring->first, 0);
    csched_init(&ring->owner[0], owner->words[0]);
    csched_init(&ring->owner[1], owner->words[1]);
    csched_init(&ring->owner[2], owner->words[2]);
    ring->capacity = capacity;
    csched_fetch_add(&rings->count, 1, relaxed);
    csched_ring *newest = csched_load(&rings->newest, relaxed);
    do {
        ring->older = newest;
    } while (!csched_cas_weak(&rings->newest, &newest, ring, release, relaxed)); // V3
    return ring;
}

// The free ring that was given back longest ago, so that the oldest events are lost; NULL: there is none.
static csched_ring *find_free(const csched_rings *rings, uint64_t capacity)
{
    csched_ring *found = NULL;
    uint64_t left = 0;
    for (csched_ring *ring = csched_load(&rings->newest, acquire); ring != NULL; ring = ring->older) {
        uint64_t turn = csched_load(&ring->left, relaxed);
        if (ring->capacity >= capacity && csched_load(&ring->taken, relaxed) == 0 &&
            (found == NULL || turn < left)) {
            found = ring;
            left = turn;
        }
    }
    return found;
}

csched_ring *csched_rings_take(csched_rings *rings, const csched_ring_owner *owner, uint64_t capacity,
                               uint32_t enough)
{
    csched_ring *ring = NULL;
    while (csched_load(&rings->count, relaxed) >= enough && (ring = find_free(rings, capacity)) != NULL) {
        uint32_t nobody = 0;
        if (csched_cas(&ring->taken, &nobody, 1, acquire, relaxed)) { // P57
            begin_owner(ring, owner);
            return ring;
        }
    }
    return add(rings, owner, capacity);
}

void csched_ring_give_back(csched_rings *rings, csched_ring *ring)
{
    csched_store(&ring->left, csched_fetch_add(&rings->departures, 1, relaxed), relaxed);
    csched_store(&ring->taken, 0, release); // P57
}

void csched_ring_write(csched_ring *ring, uint64_t word0, uint64_t word1, uint64_t word2, uint64_t word3)
{
    uint64_t number = csched_load(&ring->written, relaxed);
    csched_ring_slot *slot = &ring->slots[number & (ring->capacity - 1)];
    csched_store(&slot->words[0], word0, release);     // P55
    csched_store(&slot->words[1], word1, release);     // P55
    csched_store(&slot->words[2], word2, release);     // P55
    csched_store(&slot->words[3], word3, release);     // P55
    csched_store(&ring->written, number + 1, release); // P56
}

csched_ring_contents csched_ring_read(const csched_ring *ring, csched_ring_event *events)
{
    csched_ring_contents contents = {.count = 0};
    uint32_t takings = csched_load(&ring->takings, acquire);         // P58
    uint64_t first = csched_load(&ring->first, acquire);             // P58
    contents.owner.words[0] = csched_load(&ring->owner[0], acquire); // P58
    contents.owner.words[1] = csched_load(&ring->owner[1], acquire); // P58
    contents.owner.words[2] = csched_load(&ring->owner[2], acquire); // P58
    uint64_t end = csched_load(&ring->written, acquire);             // P56
    uint64_t begin = end > first + ring->capacity ? end - ring->capacity : first;
    for (uint64_t number = begin; number < end; number++) {
        const csched_ring_slot *slot = &ring->slots[number & (ring->capacity - 1)];
        for (int word = 0; word < CSCHED_RING_WORDS; word++) {
            events[number - begin].words[word] = csched_load(&slot->words[word], acquire); // P55
        }
    }
    uint64_t written = csched_load(&ring->written, relaxed);
    if (takings % 2 != 0 || csched_load(&ring->takings, relaxed) != takings) { // V4
        return contents;
    }
    uint64_t standing = written < ring->capacity ? 0 : written - ring->capacity + 1; // V2
    standing = standing < begin ? begin : standing < end ? standing : end;
    contents.count = end - standing;
    contents.lost = standing - first;
    memmove(events, events + (standing - begin), (size_t)contents.count * sizeof *events);
    return contents;
}
