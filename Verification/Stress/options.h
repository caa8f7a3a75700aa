// options.h - the options of the command line.

#ifndef STRESS_OPTIONS_H
#define STRESS_OPTIONS_H

#include <stdint.h>

/// A defect that the program injects into its own use of the scheduler, to show that the checks can fail.
typedef enum {
    STRESS_NO_INJECTION,
    STRESS_LOSE,      ///< one submission in 1e6 is left out
    STRESS_DUPLICATE, ///< one in 1e6 is submitted twice
    STRESS_STALE,     ///< one in 1e6 gets its argument only after its submission
    STRESS_EARLY,     ///< one group in 1e6 operations is not waited for
    STRESS_DISORDER,  ///< one pair of a lane in 1e6 operations is submitted in the wrong order
    STRESS_CANCEL,    ///< one operation in 1e6 is reported as cancelled
    STRESS_HANG,      ///< a counter is entered, and never left
    STRESS_LEAK,      ///< 16 bytes for every 1,000 operations are not freed
} stress_injection;

typedef struct {
    const char *workload;
    uint64_t operations;
    uint64_t seed;
    uint32_t threads;
    uint32_t workers;
    uint32_t hogs;
    uint32_t seconds;  ///< ends the load early; UINT32_MAX: no limit
    uint32_t patience; ///< seconds without progress that count as a hang
    stress_injection injection;
    const char *only; ///< the one shot that is used, or NULL: all
} stress_options;

/// Exits with 64 and a message when an argument is not understood.
stress_options stress_parse(int count, char **arguments);

#endif
