// ledger.h - which operations were submitted, and how each of them ended: all but "exactly once" is counted.
//
// Every operation has a number. It selects a word, plain memory that the operation's submitter writes and
// its body inverts, and a byte that counts its ends. So three things are checked for each operation: that
// it ended once; that its body saw what its submitter wrote; and that its waiter saw what its body wrote.
// The words are not atomic on purpose: ThreadSanitizer then reports a missing order.
//
// Synchronisation: only one thread calls begin, expect and check, and check comes after all have ended.

#ifndef STRESS_LEDGER_H
#define STRESS_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The kind of work that an operation belongs to; at most 16.
typedef enum {
    STRESS_SINGLE,
    STRESS_BULK,
    STRESS_TREE,
    STRESS_FAN,
    STRESS_BURST,
    STRESS_CHAIN,
    STRESS_JOIN,
    STRESS_RANGE,
    STRESS_LANE,
    STRESS_WAITED,
    STRESS_HELPED,
    STRESS_NOTIFICATION,
    STRESS_SUSPENDED,
    STRESS_VISITOR,
    STRESS_LIFE,
    STRESS_KINDS,
} stress_kind;

const char *stress_kind_name(stress_kind kind);

/// The findings of a check. All but the first three are defects.
typedef struct {
    uint64_t operations;
    uint64_t ran;
    uint64_t cancelled;  ///< or refused: ended, and did not run
    uint64_t lost;       ///< never ended
    uint64_t duplicated; ///< ends beyond the first
    uint64_t stale;      ///< did not see what their submitter wrote, or were not seen by the waiter
    uint64_t disordered; ///< overtook an earlier operation of their lane
    uint64_t wrong;      ///< cancelled where nothing cancels, started while suspended, miscounted
    uint64_t injected;   ///< defects that the program made itself
} stress_tally;

void stress_tally_add(stress_tally *sum, const stress_tally *more);
bool stress_tally_is_clean(const stress_tally *tally);

typedef struct {
    uint32_t *words;
    _Atomic(uint8_t) *ends;
    uint32_t capacity;
    uint32_t used;
    uint32_t salt;
    _Atomic(uint64_t) stale;
    _Atomic(uint64_t) disordered;
    _Atomic(uint64_t) wrong;
} stress_ledger;

enum { STRESS_RAN = 1, STRESS_CANCELLED = 16 }; // a nibble of the byte for each

/// Stops the program when memory is exhausted.
void stress_ledger_create(stress_ledger *ledger, uint32_t capacity);
void stress_ledger_destroy(stress_ledger *ledger);

/// Begins a new round, in which the numbers of the last one are invalid.
void stress_begin(stress_ledger *ledger, uint32_t salt);

/// Announces `count` operations; returns the number of the first.
uint32_t stress_expect(stress_ledger *ledger, stress_kind kind, uint32_t count);

/// Adds the results of the round to `tally`, and prints which operations are missing.
void stress_check(stress_ledger *ledger, stress_tally *tally);

static inline uint32_t stress_word(const stress_ledger *ledger, uint32_t number)
{
    return ((number + ledger->salt) * UINT32_C(0x9E3779B1)) & ~UINT32_C(15);
}

static inline void stress_note(_Atomic(uint64_t) *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/// Called by the body of an operation.
static inline void stress_ran(stress_ledger *ledger, uint32_t number)
{
    uint32_t word = ledger->words[number];
    if ((word & ~UINT32_C(15)) != stress_word(ledger, number)) {
        stress_note(&ledger->stale);
    }
    ledger->words[number] = ~word;
    atomic_fetch_add_explicit(&ledger->ends[number], STRESS_RAN, memory_order_relaxed);
}

/// The operation was refused, or notified of its cancellation.
static inline void stress_did_not_run(stress_ledger *ledger, uint32_t number)
{
    atomic_fetch_add_explicit(&ledger->ends[number], STRESS_CANCELLED, memory_order_relaxed);
}

/// Called by a waiter of operations: those that it does not see ended count as stale.
void stress_must_have_run(stress_ledger *ledger, uint32_t first, uint32_t count);

#endif
