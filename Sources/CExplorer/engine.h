// engine.h - one execution of a program.

#ifndef EXPLORER_ENGINE_H
#define EXPLORER_ENGINE_H

#include "explorer.h"

typedef struct {
    bool failed;
    bool frozen;
    uint32_t steps;
    char message[sizeof((explorer_result *)NULL)->message];
} engine_outcome;

/// The chooser, called at every decision: `values[0]` is the default. Returns the index of the choice.
typedef int engine_chooser(char kind, uint32_t step, const uint8_t *values, int count);

/// `trace`: where to print the steps, or NULL.
engine_outcome explorer_execute(const explorer_program *program, const explorer_options *options,
                                engine_chooser *choose, FILE *trace);

/// A plain access in code that the compiler watches, at `place` in it.
void explorer_watch(const void *address, size_t size, bool writes, const void *place);

#endif
