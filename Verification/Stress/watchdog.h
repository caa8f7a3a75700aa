// watchdog.h - ends a program that makes no progress, or that a signal asks to end, and reports its state.

#ifndef STRESS_WATCHDOG_H
#define STRESS_WATCHDOG_H

#include <stdint.h>

/// Exit status of a program that hung or was interrupted.
#define STRESS_HUNG 3

/// The watchdog's callbacks: the progress (any number that changes), and the state (called once, before the
/// end; prints).
typedef struct {
    uint64_t (*progress)(void);
    void (*describe)(void);
} stress_watched;

/// To be called before any other thread exists: it blocks the signals that the watchdog waits for.
void stress_watchdog_start(uint32_t patience_seconds);
void stress_watchdog_stop(void);

/// Begins and ends (NULL) the watch. After the return, no callback of the previous one is called any more.
void stress_watch(const stress_watched *watched);

/// Reports progress that the statistics do not show.
void stress_beat(void);

#endif
