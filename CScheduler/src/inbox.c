// inbox.c - single-producer, multi-consumer FIFO in linked segments.
//
// Indices count operations since the beginning; a segment holds [base, base + capacity). The owner never
// removes anything, so a consumer can take any number at once with one compare-exchange.
//
//   B1  published counts what consumers may take; only the owner raises it, by compare-exchange, and only
//       while its CLOSED bit is clear. So an append either precedes the close or is refused: there is no
//       third case.
//   B2  A segment's taken index only grows. A slot is written once. So a consumer whose compare-exchange
//       succeeds has read its slots intact, and there is no ABA.
//   B3  A segment is linked before anything beyond it is published. So a consumer that finds its segment used
//       up, and more published, finds the next one.
//   B4  The thread that moves head past a segment retires the segment; head passes each one once.
//
// Orderings:
//   P6  append: published (seq_cst, so release) -> take: published (acquire). Publishes the slots, the links,
//       and the submitter's writes.
//   P7  append: published, then the idle words <-> park: idle words, then published; all seq_cst. See idle.c,
//       W1.
//   P8  take: taken (release) -> a look that finds nothing: taken (acquire). A worker that sees that an
//       operation was taken sees that its taker is busy, and does not stop the scheduler under it (X6).
//
// Nothing here waits for another thread: a submitter stopped anywhere has either published all of its append
// or none.

#include "inbox.h"

#include "tuning.h"

#define CLOSED (UINT64_C(1) << 63)

struct csched_segment {
    csched_retired retired;
    uint64_t base;
    uint64_t capacity;
    csched_atomic(csched_segment *) next;
    csched_aligned_to_line csched_atomic(uint64_t) taken;
    csched_aligned_to_line csched_slot slots[];
};

static uint64_t end(const csched_segment *segment) { return segment->base + segment->capacity; }

static csched_segment *allocate(uint64_t base, uint64_t capacity)
{
    csched_segment *segment = csched_allocate(sizeof *segment + capacity * sizeof(csched_slot), CSCHED_LINE);
    if (segment != NULL) {
        segment->base = base;
        segment->capacity = capacity;
        csched_init(&segment->next, NULL);
        csched_init(&segment->taken, base);
    }
    return segment;
}

static void free_segment(csched_retired *object) { csched_free(object); }

bool csched_inbox_init(csched_inbox *inbox, csched_reclaim *domain)
{
    csched_segment *segment = allocate(0, CSCHED_SEGMENT_FIRST);
    if (segment == NULL) {
        return false;
    }
    csched_init(&inbox->head, segment);
    csched_init(&inbox->published, 0);
    inbox->tail = segment;
    inbox->domain = domain;
    return true;
}

void csched_inbox_destroy(csched_inbox *inbox)
{
    for (csched_segment *segment = csched_load(&inbox->head, relaxed), *next; segment != NULL;
         segment = next) {
        next = csched_load(&segment->next, relaxed);
        csched_free(segment);
    }
}

// Links the missing segments so that [published, published + count) has slots. The links are invisible until
// published (B3).
static bool reserve(csched_inbox *inbox, uint64_t published, size_t count)
{
    csched_segment *last = inbox->tail;
    for (csched_segment *next; (next = csched_load(&last->next, relaxed)) != NULL;) {
        last = next; // left by an append that was refused, or that ran out of memory
    }
    while (end(last) < published + count) {
        uint64_t capacity = last->capacity < CSCHED_SEGMENT_MOST ? last->capacity * 2 : last->capacity;
        csched_segment *segment = allocate(end(last), capacity);
        if (segment == NULL) {
            return false;
        }
        csched_store(&last->next, segment, relaxed); // P6 publishes it
        last = segment;
    }
    return true;
}

csched_append_result csched_inbox_append(csched_inbox *inbox, const csched_operation *operations,
                                         size_t count)
{
    uint64_t published = csched_load(&inbox->published, relaxed);
    if (csched_unlikely((published & CLOSED) != 0)) {
        return CSCHED_APPEND_CLOSED;
    }
    if (csched_unlikely(end(inbox->tail) < published + count) && !reserve(inbox, published, count)) {
        return CSCHED_APPEND_NO_MEMORY;
    }
    csched_segment *segment = inbox->tail;
    for (size_t offset = 0; offset < count; offset++) {
        uint64_t index = published + offset;
        if (csched_unlikely(index == end(segment))) {
            segment = csched_load(&segment->next, relaxed);
        }
        csched_slot_write(&segment->slots[index - segment->base], &operations[offset]);
    }
    if (!csched_cas(&inbox->published, &published, published + count, seq_cst, relaxed)) { // B1, P6, P7
        return CSCHED_APPEND_CLOSED;
    }
    inbox->tail = segment;
    return CSCHED_APPENDED;
}

// relaxed: the word itself decides between an append and a close (B1).
void csched_inbox_close(csched_inbox *inbox) { csched_fetch_or(&inbox->published, CLOSED, relaxed); }

size_t csched_inbox_take(csched_inbox *inbox, csched_operation *operations, size_t room)
{
    csched_segment *segment = csched_load(&inbox->head, acquire);
    for (;;) {
        uint64_t taken = csched_load(&segment->taken, relaxed);                 // B2: the exchange checks
        uint64_t published = csched_load(&inbox->published, acquire) & ~CLOSED; // P6
        if (taken >= published) {
            return 0;
        }
        if (taken == end(segment)) {                                     // used up, and more is published: B3
            csched_segment *next = csched_load(&segment->next, relaxed); // P6
            csched_segment *seen = segment;
            if (csched_cas(&inbox->head, &seen, next, acq_rel, acquire)) {
                csched_reclaim_retire(inbox->domain, &segment->retired, free_segment); // B4
                segment = next;
            } else {
                segment = seen;
            }
            continue;
        }
        uint64_t available = (published < end(segment) ? published : end(segment)) - taken;
        uint64_t count = available < room ? available : room;
        for (uint64_t offset = 0; offset < count; offset++) {
            operations[offset] = csched_slot_read(&segment->slots[taken + offset - segment->base]);
        }
        // B2, P8
        return csched_cas(&segment->taken, &taken, taken + count, release, relaxed) ? (size_t)count : 0;
    }
}

bool csched_inbox_is_empty(const csched_inbox *inbox)
{
    uint64_t published = csched_load(&inbox->published, seq_cst) & ~CLOSED; // P7
    const csched_segment *segment = csched_load(&inbox->head, acquire);
    // `taken` may lag when head has just moved: the segments after head hold only operations not yet taken.
    return csched_load(&segment->taken, acquire) >= published; // P8
}

uint64_t csched_inbox_waiting(const csched_inbox *inbox)
{
    const csched_segment *segment = csched_load(&inbox->head, acquire);
    uint64_t taken = csched_load(&segment->taken, relaxed);
    uint64_t appended = csched_inbox_appended(inbox);
    return taken < appended ? appended - taken : 0; // the two were read at different times
}

uint64_t csched_inbox_appended(const csched_inbox *inbox)
{
    return csched_load(&inbox->published, relaxed) & ~CLOSED;
}
