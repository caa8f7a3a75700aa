/// queues.h - the deque and the inbox in isolation. Internals: for tests and micro-benchmarks, not stable.

#ifndef CSCHEDULER_INTERNALS_QUEUES_H
#define CSCHEDULER_INTERNALS_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../annotations.h"
#include "../operation.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// A worker's deque with its own reclamation domain. Thieves must be inside csched_reader_begin ...
/// csched_reader_end.
typedef struct csched_test_deque csched_test_deque;
csched_test_deque *csched_test_deque_create(void);
void csched_test_deque_destroy(csched_test_deque *deque);
bool csched_test_deque_push(csched_test_deque *deque, const csched_operation *operations, size_t count);
bool csched_test_deque_pop(csched_test_deque *deque, csched_operation *operation);
size_t csched_test_deque_steal(csched_test_deque *deque, csched_operation *operations, size_t room);
/// Objects that are retired, and not freed yet.
uint64_t csched_test_deque_unreclaimed(const csched_test_deque *deque);

/// Waits until all retired objects of every deque and inbox are freed: some ms. Must not be called in a read
/// section.
void csched_test_reclaim_flush(void);

/// Likewise, the inbox of an outside thread. Append returns false when the inbox is closed.
typedef struct csched_test_inbox csched_test_inbox;
csched_test_inbox *csched_test_inbox_create(void);
void csched_test_inbox_destroy(csched_test_inbox *inbox);
bool csched_test_inbox_append(csched_test_inbox *inbox, const csched_operation *operations, size_t count);
void csched_test_inbox_close(csched_test_inbox *inbox);
size_t csched_test_inbox_take(csched_test_inbox *inbox, csched_operation *operations, size_t room);
bool csched_test_inbox_is_empty(csched_test_inbox *inbox);

/// The calling thread is a reader between these two calls.
void csched_reader_begin(void);
void csched_reader_end(void);
/// A read section of such a thread: an object that it can see published is not freed before the section ends.
void csched_read_section_begin(void);
void csched_read_section_end(void);

CSCHED_ASSUME_NONNULL_END

#endif
