// range.c - one operation for each index of a range, with one allocation for all of them.
//
//   F1  remaining counts the indices that have not ended; every piece that ends subtracts its own. The thread
//       that subtracts the last one calls `finally`, then frees the range.
//   F2  A piece of more than `grain` indices submits its upper half before it continues with the lower. So
//       thieves get the large pieces, and no more than log2(count / grain) pieces of one worker wait at a
//       time.
//
// Orderings:
//   P20  a piece ends (release) -> the last piece (acquire): the bodies' writes are visible to `finally`.

#include "scheduler_internal.h"

typedef struct {
    csched_scheduler *scheduler;
    csched_index_function body;
    csched_range_function finally;
    void *context;
    csched_completion *counter;
    uint64_t grain;
    uint64_t count;
    uint32_t pieces; // of `grain` indices; the last one may be shorter
    csched_atomic(uint64_t) remaining;
    csched_atomic(bool) cut_short;
} range;

// A piece is two words: the range, and where the piece begins and ends, in units of grain.
typedef struct {
    uint32_t low, high;
} piece;

_Static_assert(sizeof(piece) <= sizeof(void *), "a piece fits into a word");

static void *pack(piece part) { return (void *)(uintptr_t)((uint64_t)part.high << 32 | part.low); }

static piece unpack(void *word)
{
    return (piece){.low = (uint32_t)(uintptr_t)word, .high = (uint32_t)((uint64_t)(uintptr_t)word >> 32)};
}

// The index at which a piece begins; for `pieces`, the end of the last one.
static uint64_t boundary(const range *whole, uint32_t number)
{
    return number == whole->pieces ? whole->count : number * whole->grain;
}

static void end(range *whole, uint64_t indices)
{
    if (csched_fetch_sub(&whole->remaining, indices, acq_rel) == indices) { // F1, P20
        if (whole->finally != NULL) {
            whole->finally(whole->context, !csched_load(&whole->cut_short, relaxed)); // P20 orders it
        }
        csched_free(whole);
    }
}

static void run_piece(void *context, void *extra, csched_disposition disposition);

static csched_operation operation_of(range *whole, piece part)
{
    return (csched_operation){
        .run = run_piece, .context = whole, .extra = pack(part), .counter = whole->counter};
}

static void run_piece(void *context, void *extra, csched_disposition disposition)
{
    range *whole = context;
    piece part = unpack(extra);
    uint64_t low = boundary(whole, part.low);
    uint64_t high = boundary(whole, part.high);
    if (disposition == CSCHED_CANCEL) {
        csched_store(&whole->cut_short, true, relaxed);
        end(whole, high - low);
        return;
    }
    while (part.high - part.low > 1) { // F2
        uint32_t middle = part.low + (part.high - part.low) / 2;
        csched_operation upper = operation_of(whole, (piece){middle, part.high});
        if (csched_submit(whole->scheduler, &upper) != CSCHED_OK) {
            break; // out of memory: run the whole piece here
        }
        part.high = middle;
        high = boundary(whole, middle);
    }
    for (uint64_t index = low; index < high; index++) {
        if (csched_unlikely(csched_is_cancelling(whole->scheduler))) {
            csched_store(&whole->cut_short, true, relaxed);
            break;
        }
        whole->body(whole->context, index);
    }
    end(whole, high - low);
}

bool csched_scheduler_is_cancelling(const csched_scheduler *scheduler)
{
    return csched_is_cancelling(scheduler);
}

csched_status csched_submit_range(csched_scheduler *scheduler, uint64_t count, uint64_t grain,
                                  csched_index_function body, csched_range_function finally, void *context,
                                  csched_completion *counter)
{
    if (count == 0) {
        if ((csched_load(&scheduler->control, relaxed) & CSCHED_CLOSING) != 0) {
            return CSCHED_CLOSED;
        }
        if (finally != NULL) {
            finally(context, true);
        }
        return CSCHED_OK;
    }
    if (grain == 0) {
        // About 32 pieces per worker even out their different costs; more would only be overhead.
        uint64_t workers = csched_scheduler_workers(scheduler);
        grain = count / (32 * (workers + (workers == 0))) + 1; // 0: shut down, and about to be refused
    }
    uint64_t least = count / UINT32_MAX + 1; // piece has 32 bits for its ends
    grain = grain < least ? least : grain;
    grain = grain > count ? count : grain;
    range *whole = csched_allocate(sizeof *whole, 0);
    if (whole == NULL) {
        return CSCHED_OUT_OF_MEMORY;
    }
    whole->scheduler = scheduler;
    whole->body = body;
    whole->finally = finally;
    whole->context = context;
    whole->counter = counter;
    whole->grain = grain;
    whole->count = count;
    whole->pieces = (uint32_t)(count / grain + (count % grain != 0));
    csched_init(&whole->remaining, count);
    csched_init(&whole->cut_short, false);
    piece all = {.low = 0, .high = whole->pieces};
    csched_operation operation = operation_of(whole, all);
    csched_status status = csched_submit(scheduler, &operation);
    if (status != CSCHED_OK) {
        csched_free(whole);
    }
    return status;
}
