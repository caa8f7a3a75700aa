// memory.h - what a load may see.

#ifndef EXPLORER_MEMORY_H
#define EXPLORER_MEMORY_H

#include "clock.h"

/// Forgets everything, for a new execution.
void explorer_memory_begin(bool sequentially_consistent);

/// A new thread knows what `parent` knows (-1: the setup).
void explorer_memory_spawn(int parent, int child);
/// `thread` learns what `ended` knew at its end.
void explorer_memory_join(int thread, int ended);

/// The bytes of an object, in a word.
uint64_t explorer_word_at(const void *object, size_t size);
/// How many stores a load may see: the newest, its predecessor, ...
int explorer_memory_visible(int thread, const void *object, size_t size, explorer_order order);
/// The value `back` stores before the newest.
uint64_t explorer_memory_peek(const void *object, size_t size, int back);
/// Loads that value.
uint64_t explorer_memory_load(int thread, const void *object, size_t size, explorer_order order, int back);
void explorer_memory_store(int thread, void *object, size_t size, uint64_t value, explorer_order order);
/// Sees the newest value, and replaces it in the same step. Returns the previous value.
uint64_t explorer_memory_modify(int thread, void *object, size_t size, uint64_t value, explorer_order order);
void explorer_memory_fence(int thread, explorer_order order);
/// A fence of every thread, between two fences of this one.
void explorer_memory_fence_all(int thread);
/// A new object in place of what was there. `thread` -1: before all threads.
void explorer_memory_init(int thread, void *object, size_t size, uint64_t value);

/// A step of the thread.
void explorer_memory_tick(int thread);
/// All that a thread knows.
const vector_clock *explorer_memory_known(int thread);

/// NULL, or what is wrong with an access to a shared word.
const char *explorer_memory_is_known(int thread, const void *object, size_t size);
/// NULL, or what is wrong with a plain access to what may be a shared word.
const char *explorer_memory_is_stored_to(int thread, const void *object);

#endif
