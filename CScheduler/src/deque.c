// deque.c - work-stealing deque with inline operations, and thieves that take many at once.
//
// Indices are 64 bits wide and never wrap. The slots [top, bottom) hold the waiting operations.
//
//   D1  top only grows, by compare-exchange; only the owner writes bottom.
//   D2  A slot is overwritten only after top has passed it. So a thief whose compare-exchange on top succeeds
//       has read intact the slots it takes.
//   D3  Thieves take several at once only below `open`. The owner pops below `open` only after closing it:
//       it stores 0, and then moves top itself.
//   D4  Closing moves top by taking the oldest operation, which the pop returns. Every thief that read `open`
//       before it was closed had read an older top, so its compare-exchange fails. Hence the deque may be
//       opened again after a close, even less far.
//   D5  When top shows that at most one operation is left, the owner does not change bottom, and takes the
//       operation as thieves do. The value it reads may be stale, but then top is larger, and its
//       compare-exchange fails.
//
// Orderings:
//   P1  push: bottom (release) -> steal: bottom (acquire). Publishes the slots' contents, and the submitter's
//       writes. pop stores bottom with release too: a thief may read the bottom of a pop, and since C++20 a
//       relaxed store does not continue the release sequence of an earlier one.
//   P2  pop: bottom, fence, top <-> steal: top, fence, bottom (seq_cst fences both). Of an owner and a thief
//       that want the same last operation, at least one sees the other. Without the fences the operation runs
//       twice.
//   P3  push: open (release) -> steal: open (acquire). As P1, for thieves that do not read bottom.
//   P4  close: open = 0, then top (release) -> steal: top (acquire), then open. A thief that saw the moved
//       top sees that the deque is closed.
//   P5  grow: buffer (release) -> steal: buffer (acquire). Publishes the copied slots. The old buffer is
//       retired: a thief inside its read section may still read it. D2 holds for it as well, since it is
//       never written again.
//
// Sources: Chase and Lev: Dynamic Circular Work-Stealing Deque (2005); Le, Pop, Cohen, Zappa Nardelli:
// Correct and Efficient Work-Stealing for Weak Memory Models (2013). D3 and D4 are this project's.

#include "deque.h"

struct csched_buffer {
    csched_retired retired;
    int64_t capacity;
    csched_slot slots[];
};

// The owner opens a deque, or opens it further, only if it is at least this deep.
enum { OPEN_DEPTH = 3 * CSCHED_OPEN_DISTANCE, OPEN_STEP = CSCHED_OPEN_DISTANCE };

static csched_buffer *allocate(int64_t capacity)
{
    csched_buffer *buffer =
        csched_allocate(sizeof *buffer + (size_t)capacity * sizeof(csched_slot), sizeof(csched_slot));
    if (buffer != NULL) {
        buffer->capacity = capacity;
    }
    return buffer;
}

static csched_slot *slot(csched_buffer *buffer, int64_t index)
{
    return &buffer->slots[index & (buffer->capacity - 1)];
}

static void free_buffer(csched_retired *object) { csched_free(object); }

bool csched_deque_init(csched_deque *deque, csched_reclaim *domain, int64_t capacity)
{
    csched_buffer *buffer = allocate(capacity);
    if (buffer == NULL) {
        return false;
    }
    csched_init(&deque->top, 0);
    csched_init(&deque->bottom, 0);
    csched_init(&deque->open, 0);
    csched_init(&deque->buffer, buffer);
    deque->top_seen = 0;
    deque->opened = 0;
    deque->open_next = OPEN_DEPTH;
    deque->domain = domain;
    return true;
}

void csched_deque_destroy(csched_deque *deque) { csched_free(csched_load(&deque->buffer, relaxed)); }

// Replaces the buffer with one of another capacity that holds [top, bottom).
static csched_buffer *replace(csched_deque *deque, int64_t top, int64_t bottom, int64_t capacity)
{
    csched_buffer *old = csched_load(&deque->buffer, relaxed);
    csched_buffer *new = allocate(capacity);
    if (new == NULL) {
        return NULL;
    }
    for (int64_t index = top; index < bottom; index++) {
        csched_operation operation = csched_slot_read(slot(old, index));
        csched_slot_write(slot(new, index), &operation);
    }
    csched_store(&deque->buffer, new, release); // P5
    csched_reclaim_retire(deque->domain, &old->retired, free_buffer);
    return new;
}

static void open_up_to(csched_deque *deque, int64_t index)
{
    deque->opened = index;
    csched_store(&deque->open, index, release); // P3
}

// Lets thieves take many operations at once from the part far from the bottom.
static void open_further(csched_deque *deque, int64_t bottom)
{
    deque->top_seen = csched_load(&deque->top, acquire); // D2: push overwrites up to it
    if (bottom - deque->top_seen >= OPEN_DEPTH) {
        open_up_to(deque, bottom - CSCHED_OPEN_DISTANCE);
    }
    deque->open_next = bottom + OPEN_STEP;
}

// After a close. The owner pops the upper half before it has to close again, so closes are rare even if it
// only pops.
static void open_half(csched_deque *deque, int64_t top, int64_t bottom)
{
    if (bottom - top >= OPEN_DEPTH) {
        open_up_to(deque, top + (bottom - top) / 2); // D4: a thief with an older `top` fails
        deque->open_next = bottom + OPEN_STEP;
    } else {
        deque->open_next = bottom + OPEN_DEPTH;
    }
}

bool csched_deque_push(csched_deque *deque, const csched_operation *operations, size_t count)
{
    int64_t bottom = csched_load(&deque->bottom, relaxed);
    csched_buffer *buffer = csched_load(&deque->buffer, relaxed);
    int64_t wanted = bottom + (int64_t)count;
    if (csched_unlikely(wanted - deque->top_seen > buffer->capacity)) {
        // acquire: the thread that moved top has read the slots that are written now (D2).
        deque->top_seen = csched_load(&deque->top, acquire);
        int64_t capacity = buffer->capacity;
        while (wanted - deque->top_seen > capacity) {
            capacity *= 2;
        }
        if (capacity != buffer->capacity) {
            buffer = replace(deque, deque->top_seen, bottom, capacity);
            if (buffer == NULL) {
                return false;
            }
        }
    }
    for (size_t offset = 0; offset < count; offset++) {
        csched_slot_write(slot(buffer, bottom + (int64_t)offset), &operations[offset]);
    }
    csched_store(&deque->bottom, wanted, release); // P1
    if (csched_unlikely(wanted >= deque->open_next)) {
        open_further(deque, wanted);
    }
    return true;
}

// D4. True: `operation` is the oldest one. False: the thieves have taken everything below `open`.
static bool close_and_take_oldest(csched_deque *deque, int64_t bottom, csched_operation *operation)
{
    int64_t opened = deque->opened;
    csched_buffer *buffer = csched_load(&deque->buffer, relaxed);
    csched_store(&deque->open, 0, relaxed); // P4 by the compare-exchange below
    deque->opened = 0;
    int64_t top = csched_load(&deque->top, relaxed);
    while (top < opened) { // at or above it no thief that saw it open can succeed
        *operation = csched_slot_read(slot(buffer, top));
        if (csched_cas(&deque->top, &top, top + 1, seq_cst, relaxed)) { // P4
            open_half(deque, top + 1, bottom + 1);
            return true;
        }
    }
    deque->open_next = bottom + OPEN_DEPTH;
    return false;
}

// D5
static bool take_last(csched_deque *deque, csched_buffer *buffer, int64_t top, csched_operation *operation)
{
    *operation = csched_slot_read(slot(buffer, top));
    return csched_cas(&deque->top, &top, top + 1, seq_cst, relaxed);
}

bool csched_deque_pop(csched_deque *deque, csched_operation *operation)
{
    int64_t bottom = csched_load(&deque->bottom, relaxed) - 1;
    if (csched_unlikely(bottom < deque->opened) && close_and_take_oldest(deque, bottom, operation)) {
        return true;
    }
    csched_buffer *buffer = csched_load(&deque->buffer, relaxed);
    int64_t top = csched_load(&deque->top, relaxed);
    if (top >= bottom) { // D5
        return top == bottom && take_last(deque, buffer, top, operation);
    }
    csched_store(&deque->bottom, bottom, release); // P1
    csched_fence(seq_cst);                         // P2
    top = csched_load(&deque->top, relaxed);
    if (csched_likely(top < bottom)) {
        *operation = csched_slot_read(slot(buffer, bottom));
        return true;
    }
    bool taken = false;
    if (top == bottom) { // the last one: thieves want it as well
        *operation = csched_slot_read(slot(buffer, bottom));
        taken = csched_cas(&deque->top, &top, top + 1, seq_cst, relaxed);
    }
    csched_store(&deque->bottom, bottom + 1, relaxed); // empty: a thief that sees it finds nothing
    return taken;
}

void csched_deque_trim(csched_deque *deque)
{
    int64_t bottom = csched_load(&deque->bottom, relaxed);
    csched_buffer *buffer = csched_load(&deque->buffer, relaxed);
    if (buffer->capacity > 16 * CSCHED_DEQUE_CAPACITY && csched_load(&deque->top, relaxed) == bottom) {
        (void)replace(deque, bottom, bottom, CSCHED_DEQUE_CAPACITY); // out of memory: keep the large one
    }
}

size_t csched_deque_steal(csched_deque *deque, csched_operation *operations, size_t room)
{
    int64_t top = csched_load(&deque->top, acquire);   // P4
    int64_t open = csched_load(&deque->open, acquire); // P3
    int64_t count = 1;
    if (open - top >= 2) {
        count = (open - top + 1) / 2;
        count = count < (int64_t)room ? count : (int64_t)room;
    } else {
        csched_fence(seq_cst);                                 // P2
        int64_t bottom = csched_load(&deque->bottom, acquire); // P1
        if (top >= bottom) {
            return 0;
        }
    }
    csched_buffer *buffer = csched_load(&deque->buffer, acquire); // P5
    for (int64_t offset = 0; offset < count; offset++) {
        operations[offset] = csched_slot_read(slot(buffer, top + offset)); // D2
    }
    // seq_cst success: release keeps the reads above before it (D2), and P2 wants it in the one total order.
    return csched_cas(&deque->top, &top, top + count, seq_cst, relaxed) ? (size_t)count : 0;
}

// As steal, for one: what was read before the compare-exchange is trusted only if that succeeds (D2).
bool csched_deque_steal_if(csched_deque *deque,
                           bool (*wanted)(const void *context, const csched_operation *operation),
                           const void *context, csched_operation *operation)
{
    int64_t top = csched_load(&deque->top, relaxed);   // no look at open, so no P4; the fence acquires
    csched_fence(seq_cst);                             // P2
    if (top >= csched_load(&deque->bottom, acquire)) { // P1
        return false;
    }
    csched_buffer *buffer = csched_load(&deque->buffer, acquire); // P5
    *operation = csched_slot_read(slot(buffer, top));
    return wanted(context, operation) && csched_cas(&deque->top, &top, top + 1, seq_cst, relaxed);
}

int64_t csched_deque_depth(const csched_deque *deque)
{
    int64_t top = csched_load(&deque->top, seq_cst);
    int64_t bottom = csched_load(&deque->bottom, seq_cst);
    return bottom > top ? bottom - top : 0;
}
