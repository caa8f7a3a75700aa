// main.h - used by every part of the program: how it stops, and how it reports.

#ifndef STRESS_MAIN_H
#define STRESS_MAIN_H

#include <stdint.h>

#include "ledger.h"
#include "options.h"

/// Ends the program with a message, as a failure.
_Noreturn void stress_stop(const char *sentence);

/// The monotonic clock.
uint64_t stress_now_ns(void);

void stress_sleep_ns(uint64_t duration_ns);

/// One line of JSON on stdout: the options, the tally, and `more`, members of the object that begin with a
/// comma, or "".
void stress_report(const stress_tally *tally, const char *more, const char *verdict);

// The workloads. Each reports, and returns whether it passed.
bool stress_mixed(const stress_options *options);
bool stress_oversubscribed(const stress_options *options);
bool stress_memory(const stress_options *options);
bool stress_reclaim(const stress_options *options);

#endif
