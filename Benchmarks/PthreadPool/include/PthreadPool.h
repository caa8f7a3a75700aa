// PthreadPool.h - the thread pool that a good engineer writes in an afternoon: one mutex, two condition
// variables, one ring that grows. It is the peer `pthread` of the benchmarks and shows what the simple
// solution costs, so it stays simple.
//
// Every function may be called from any thread, including from an operation, unless its comment says
// otherwise.

#ifndef PTHREAD_POOL_H
#define PTHREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

// An operation is a function and the two words to call it with. A Swift closure has the same form, so it
// needs no box in addition to its own context.
typedef void (*pthread_pool_function)(void *_Nullable first, void *_Nullable second);

typedef struct pthread_pool pthread_pool;

// Starts `threads` (at least 1) threads. Returns NULL, and leaves nothing behind, when memory or threads
// are exhausted.
pthread_pool *_Nullable pthread_pool_create(size_t threads);

// Appends an operation. Returns false when the ring cannot grow; the operation is then not run.
bool pthread_pool_submit(pthread_pool *_Nonnull pool, pthread_pool_function _Nonnull run,
                         void *_Nullable first, void *_Nullable second);

// Blocks until no operation is queued or running. Must not be called on a thread of the pool, which would
// wait for itself.
void pthread_pool_wait(pthread_pool *_Nonnull pool);

// Runs the operations that are still queued, joins the threads and frees the pool. Must not be called on a
// thread of the pool.
void pthread_pool_destroy(pthread_pool *_Nonnull pool);

// Calls `run` at once, through this translation unit, which is opaque to the optimiser: the closure must
// exist. This is the peer `floor`.
void pthread_pool_call(pthread_pool_function _Nonnull run, void *_Nullable first, void *_Nullable second);

#endif
