// watchdog.h - ends a program that makes no progress, or that was told to end, and says where it stood.

#ifndef STRESS_WATCHDOG_H
#define STRESS_WATCHDOG_H

#include <stdint.h>

/// Exit status of a program that hung, or was interrupted.
#define STRESS_HUNG 3

/// The questions of the watchdog: how far the work is (any number that changes), and where it stands (called
/// once, before the end; prints).
typedef struct {
    uint64_t (*progress)(void);
    void (*describe)(void);
} stress_watched;

/// To be called before any other thread exists: it blocks the signals that the watchdog waits for.
void stress_watchdog_start(uint32_t patience_seconds);
void stress_watchdog_stop(void);

/// Begins and ends (NULL) the watch. After the return nothing of the one before is called any more.
void stress_watch(const stress_watched *watched);

/// Progress that no statistics show.
void stress_beat(void);

#endif
