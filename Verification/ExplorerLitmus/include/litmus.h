/// litmus.h - the explorer's own tests: small programs, and whether C++20 allows their weak outcome.

#ifndef LITMUS_H
#define LITMUS_H

#include <explorer.h>

typedef struct {
    explorer_program program;
    /// Whether the memory model allows the outcome that the check reports as a failure.
    bool allowed;
    /// Whether the explorer reaches that outcome. Differs from `allowed` only for load buffering.
    bool reachable;
} litmus_test;

extern const size_t litmus_count;
const litmus_test *litmus_test_at(size_t index);

/// Programs with one defect each, which the explorer has to find.
typedef struct {
    explorer_program program;
    /// The first words of the explorer's message.
    const char *violation;
    /// Whether the defect shows only when a thread stops for ever.
    bool frozen;
} defect_test;

extern const size_t defect_count;
const defect_test *defect_test_at(size_t index);

#endif
