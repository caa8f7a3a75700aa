// CInspection.h - whether new work is kept for dumps, has a span, and has a slice in recordings: a word that
// code of any module reads without a call. Also calls a function after a signal, outside its handler.

#ifndef CINSPECTION_H
#define CINSPECTION_H

#include <stdbool.h>

#pragma clang assume_nonnull begin

/// To be used only by the functions below.
extern unsigned char inspection_switch;

/// Bits of the switch.
enum { INSPECTION_KEEPS = 1, INSPECTION_TRACES = 2, INSPECTION_RECORDS = 4 };

/// Whether new work is kept for dumps. Barrier: none; kept work has its own locks, and the switch is read
/// again under them.
static inline bool inspection_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & INSPECTION_KEEPS, 0);
}

/// Whether new work has a span. Barrier: none; the tracer has its own lock.
static inline bool inspection_traces(void)
{
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & INSPECTION_TRACES, 0);
}

/// Whether running work has a slice in the recording of its thread. Barrier: none; readers accept a slice
/// that is missing or has no end.
static inline bool inspection_records(void)
{
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & INSPECTION_RECORDS, 0);
}

/// Whether new work is kept or has a span: a single branch for both.
static inline bool inspection_is_on_or_traces(void)
{
    unsigned char both = INSPECTION_KEEPS | INSPECTION_TRACES;
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED) & both, 0);
}

/// Switches keeping. Initially on if COOPERATIONS_INSPECT is 1 in the environment.
/// Barrier: none.
void inspection_turn(bool is_on);

/// Switches whether new work has a span. Barrier: none.
void inspection_turn_traces(bool are_on);

/// Switches whether running work has a slice. Barrier: none.
void inspection_turn_records(bool are_on);

/// Calls `call` after each arrival of a signal, on a dedicated thread. Once per process.
///
/// Returns 0, or an errno. EALREADY: it was called before.
int inspection_on_signal(int signal, void (*call)(void));

/// The kernel's id of the calling thread.
long inspection_thread(void);

#pragma clang assume_nonnull end

#endif
