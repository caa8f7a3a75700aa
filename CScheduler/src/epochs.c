// epochs.c - grace periods by epochs (`period`) that readers record.
//
//   E1  An object is returned by `collect` only when each section that could have found it has ended. The
//       collector takes objects, begins a period, and waits until every reader is in no section, or in one
//       that began in that period or later.
//   E2  Every retired object is taken once, in the order in which the objects were retired.
//   E3  The collector sleeps only while nothing can be taken (rest), or while a section of an earlier period
//       lasts (collect); the thread that changes this wakes it.
//   E4  A reader has one thread at a time. Readers stay listed permanently: as many as were ever in use at
//       once.
//
// The cost lies with the collector, whose fence is a system call that makes every running thread of the
// process execute a barrier (membarrier(2)); a section costs plain stores. If the system has no such call,
// both sides have a fence.
//
// Orderings:
//   P60  unpublish, retire (release) -> collector takes (acquire), new period (release) -> enter: period
//        (acquire). A section that records the new period does not find the object.
//   P61  enter: `began`, fence, reads <-> collector: period, fence, `began` of all readers. If the collector
//        does not wait for a section, the section sees everything that was unpublished before. The list of
//        readers is read after that fence, too: either the collector sees a new reader, or the reader's
//        sections see what was unpublished.
//   P62  reads in a section -> exit: `began` (release) -> collector: `began` (acquire) -> free. The same
//        holds when the collector reads what a later section of the same reader has recorded.
//   P63  exit: `began`, fence, look at `awaited` <-> collector: `awaited`, fence, look at `began`. Either the
//        exit sees that the collector waits, or the collector sees that the section has ended.
//   P64  retire: link (seq_cst), look at `resting` (seq_cst) <-> rest: `resting` (seq_cst), look at the link
//        (seq_cst). Either `retire` sees that the collector rests, or the collector sees the object.
//   P65  leave (release) -> join (acquire): what the reader's previous thread did with it.
//   P66  exit: `began`, signal (release) -> collector: signals (acquire), look at `began`. A collector that
//        sleeps on a count that includes the signal has seen the end of that section.
//
// Sources: Fraser: Practical Lock-Freedom (2004), for epochs; Desnoyers, McKenney, Stern, Dagenais, Walpole:
// User-Level Implementations of Read-Copy Update (2012), for the fence on the collector's side; Vyukov:
// intrusive MPSC node-based queue, for retired objects.

#include "epochs.h"

#include "tuning.h"

void csched_epochs_init(csched_epochs *epochs)
{
    csched_init(&epochs->period, 1);
    csched_init(&epochs->readers, NULL);
    csched_init(&epochs->stub.link.next, NULL);
    csched_init(&epochs->newest, &epochs->stub);
    csched_init(&epochs->resting, 0);
    csched_init(&epochs->signals, 0);
    epochs->oldest = &epochs->stub;
}

csched_reader *csched_epochs_join(csched_epochs *epochs)
{
    csched_reader *newest = csched_load(&epochs->readers, acquire);
    for (csched_reader *reader = newest; reader != NULL; reader = reader->older) {
        uint32_t free = 0;
        if (csched_load(&reader->taken, relaxed) == 0 &&
            csched_cas(&reader->taken, &free, 1, acquire, relaxed)) { // P65
            return reader;
        }
    }
    csched_reader *reader = csched_allocate(sizeof *reader, CSCHED_LINE);
    if (reader == NULL) {
        return NULL;
    }
    csched_init(&reader->began, 0);
    csched_init(&reader->awaited, 0);
    csched_init(&reader->taken, 1);
    reader->depth = 0;
    do {
        reader->older = newest;
    } while (!csched_cas_weak(&epochs->readers, &newest, reader, release, relaxed));
    return reader;
}

void csched_epochs_leave(csched_reader *reader) { csched_store(&reader->taken, 0, release); } // P65

void csched_epochs_enter(csched_epochs *epochs, csched_reader *reader)
{
    if (reader->depth++ == 0) {
        csched_store(&reader->began, csched_load(&epochs->period, acquire), release); // P60, P62
        csched_fence_light();                                                         // P61
    }
}

// E3. Out of line, so that the fast path of exit saves no registers for it.
csched_aside static void wake(csched_epochs *epochs)
{
    csched_fetch_add(&epochs->signals, 1, release); // P66
    csched_futex_wake(&epochs->signals, 1);
}

void csched_epochs_exit(csched_epochs *epochs, csched_reader *reader)
{
    if (--reader->depth == 0) {
        csched_store(&reader->began, 0, release); // P62
        csched_fence_light();                     // P63
        if (csched_unlikely(csched_load(&reader->awaited, relaxed) != 0)) {
            wake(epochs);
        }
    }
}

// The object before this one cannot be taken until this one is linked.
static void append(csched_epochs *epochs, csched_retired *object)
{
    csched_store(&object->link.next, NULL, relaxed);
    csched_retired *before = csched_exchange(&epochs->newest, object, acq_rel);
    csched_store(&before->link.next, object, seq_cst); // P60, P64
}

void csched_epochs_retire(csched_epochs *epochs, csched_retired *object)
{
    append(epochs, object);
    if (csched_load(&epochs->resting, seq_cst) != 0) { // P64
        wake(epochs);
    }
}

// E2. NULL: there is none, or the thread that appends the next one has not linked it yet.
static csched_retired *take(csched_epochs *epochs)
{
    csched_retired *oldest = epochs->oldest;
    csched_retired *next = csched_load(&oldest->link.next, acquire); // P60
    if (oldest == &epochs->stub) {
        if (next == NULL) {
            return NULL;
        }
        epochs->oldest = oldest = next;
        next = csched_load(&oldest->link.next, acquire); // P60
    }
    if (next == NULL && csched_load(&epochs->newest, relaxed) == oldest) {
        // The last one: once the stub is behind it, no other thread links to it.
        append(epochs, &epochs->stub);
        next = csched_load(&oldest->link.next, acquire); // P60
    }
    if (next == NULL) {
        return NULL;
    }
    epochs->oldest = next;
    return oldest;
}

static bool has_ended(const csched_reader *reader, uint64_t period)
{
    uint64_t began = csched_load(&reader->began, acquire); // P62
    return began == 0 || began >= period;
}

// E1, E3.
static void wait_for(csched_epochs *epochs, csched_reader *reader, uint64_t period)
{
    if (has_ended(reader, period)) {
        return;
    }
    csched_store(&reader->awaited, 1, relaxed);
    csched_fence_heavy(); // P63
    for (;;) {
        uint32_t signals = csched_load(&epochs->signals, acquire); // P66
        if (has_ended(reader, period)) {
            break;
        }
        (void)csched_futex_wait(&epochs->signals, signals, UINT64_MAX);
    }
    csched_store(&reader->awaited, 0, relaxed);
}

csched_retired *csched_epochs_collect(csched_epochs *epochs, uint64_t *count)
{
    csched_retired *first = take(epochs), *last = first;
    if (first == NULL) {
        return NULL;
    }
    for (*count = 1; *count < CSCHED_COLLECTED_MOST; (*count)++) {
        csched_retired *object = take(epochs);
        if (object == NULL) {
            break;
        }
        csched_store(&last->link.next, object, relaxed);
        last = object;
    }
    csched_store(&last->link.next, NULL, relaxed);

    uint64_t period = csched_load(&epochs->period, relaxed) + 1;
    csched_store(&epochs->period, period, release); // P60
    csched_fence_heavy();                           // P61
    for (csched_reader *reader = csched_load(&epochs->readers, acquire); reader != NULL;
         reader = reader->older) {
        wait_for(epochs, reader, period);
    }
    return first;
}

void csched_epochs_rest(csched_epochs *epochs)
{
    uint32_t signals = csched_load(&epochs->signals, relaxed);
    csched_store(&epochs->resting, 1, seq_cst); // P64
    if (csched_load(&epochs->oldest->link.next, seq_cst) == NULL) {
        (void)csched_futex_wait(&epochs->signals, signals, UINT64_MAX);
    }
    csched_store(&epochs->resting, 0, relaxed);
}

uint64_t csched_epochs_after_fork(csched_epochs *epochs, csched_reader *mine)
{
    for (csched_reader *reader = csched_load(&epochs->readers, relaxed); reader != NULL;
         reader = reader->older) {
        if (reader != mine) {
            csched_store(&reader->began, 0, relaxed);
            csched_store(&reader->taken, 0, relaxed);
            reader->depth = 0;
        }
    }
    // Objects behind a link that a thread of the parent had not set by the fork are lost.
    csched_retired *last = epochs->oldest;
    uint64_t count = last != &epochs->stub;
    for (csched_retired *next; (next = csched_load(&last->link.next, relaxed)) != NULL; last = next) {
        count += next != &epochs->stub;
    }
    csched_store(&epochs->newest, last, relaxed);
    return count;
}
