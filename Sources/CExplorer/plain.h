// plain.h - races of plain accesses.

#ifndef EXPLORER_PLAIN_H
#define EXPLORER_PLAIN_H

#include "clock.h"

/// Forgets everything, for a new execution.
void explorer_plain_begin(void);

/// The time of a plain access by a thread that knows `known`: after its last step, and before its next one.
static inline uint32_t plain_time(int thread, const vector_clock *known) { return known->at[thread] + 1; }

/// NULL, or what is wrong with an access to `size` bytes.
const char *explorer_plain_access(int thread, const vector_clock *known, const void *object, size_t size,
                                  bool writes);
/// NULL, or what is wrong with a step of a thread on an object of `size` bytes.
const char *explorer_plain_is_known(int thread, const vector_clock *known, const void *object, size_t size);

#endif
