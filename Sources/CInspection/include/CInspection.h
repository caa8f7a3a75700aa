// CInspection.h - whether what begins is kept for dumps: a word that code of any module reads without a call.
// And how a signal has something done outside of its handler.

#ifndef CINSPECTION_H
#define CINSPECTION_H

#include <stdbool.h>

#pragma clang assume_nonnull begin

/// Not to be used but by the functions below.
extern unsigned char inspection_switch;

/// Whether what begins is kept. Barrier: none, as what is kept is under locks of its own, which ask again.
static inline bool inspection_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&inspection_switch, __ATOMIC_RELAXED), 0);
}

/// Switches it. It is on from the beginning where COOPERATIONS_INSPECT is 1 in the environment.
/// Barrier: none.
void inspection_turn(bool is_on);

/// Has `call` called after each arrival of a signal, on a thread of its own that does nothing else. Once in a
/// process.
///
/// Returns 0, or an errno: EALREADY: it was called before.
int inspection_on_signal(int signal, void (*call)(void));

/// The kernel's number of the calling thread.
long inspection_thread(void);

#pragma clang assume_nonnull end

#endif
