// CInspection.h - whether what begins is kept for dumps, has a span, and has a slice in recordings: a word
// that code of any module reads without a call.
// And how a signal has something done outside of its handler.

#ifndef CINSPECTION_H
#define CINSPECTION_H

#include <stdbool.h>

#pragma clang assume_nonnull begin

/// Not to be used but by the functions below.
extern unsigned char inspection_switch;

/// Bits of the switch.
enum { INSPECTION_KEEPS = 1, INSPECTION_TRACES = 2, INSPECTION_RECORDS = 4 };

/// Whether what begins is kept. Barrier: none, as what is kept is under locks of its own, which ask again.
static inline bool inspection_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & INSPECTION_KEEPS, 0);
}

/// Whether what begins has a span. Barrier: none, as the tracer is under a lock of its own.
static inline bool inspection_traces(void)
{
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & INSPECTION_TRACES, 0);
}

/// Whether what runs has a slice in the recording of its thread. Barrier: none: one that is missing, or has
/// no end, is read as what it is.
static inline bool inspection_records(void)
{
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & INSPECTION_RECORDS, 0);
}

/// Whether what begins is kept or has a span: one branch where both are asked for.
static inline bool inspection_is_on_or_traces(void)
{
    unsigned char both = INSPECTION_KEEPS | INSPECTION_TRACES;
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & both, 0);
}

/// Switches it. It is on from the beginning where COOPERATIONS_INSPECT is 1 in the environment.
/// Barrier: none.
void inspection_turn(bool is_on);

/// Switches whether what begins has a span. Barrier: none.
void inspection_turn_traces(bool are_on);

/// Switches whether what runs has a slice. Barrier: none.
void inspection_turn_records(bool are_on);

/// Has `call` called after each arrival of a signal, on a thread of its own that does nothing else. Once in a
/// process.
///
/// Returns 0, or an errno: EALREADY: it was called before.
int inspection_on_signal(int signal, void (*call)(void));

/// The kernel's number of the calling thread.
long inspection_thread(void);

#pragma clang assume_nonnull end

#endif
