/// queues.h - the deque and the inbox by themselves. Internals: for tests and micro-benchmarks, no promise.

#ifndef CSCHEDULER_INTERNALS_QUEUES_H
#define CSCHEDULER_INTERNALS_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../annotations.h"
#include "../operation.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// A worker's deque with a reclamation domain of its own. Thieves must be inside csched_reader_begin ...
/// csched_reader_end.
typedef struct csched_test_deque csched_test_deque;
csched_test_deque *csched_test_deque_create(void);
void csched_test_deque_destroy(csched_test_deque *deque);
bool csched_test_deque_push(csched_test_deque *deque, const csched_operation *operations, size_t count);
bool csched_test_deque_pop(csched_test_deque *deque, csched_operation *operation);
size_t csched_test_deque_steal(csched_test_deque *deque, csched_operation *operations, size_t room);
/// Objects handed to a grace period, and not freed yet.
uint64_t csched_test_deque_unreclaimed(const csched_test_deque *deque);

/// Waits until all that was handed to a grace period is freed, of every deque and inbox: some ms. Never
/// called in a read section.
void csched_test_reclaim_flush(void);

/// An outside thread's inbox, likewise. Append answers false when it is closed.
typedef struct csched_test_inbox csched_test_inbox;
csched_test_inbox *csched_test_inbox_create(void);
void csched_test_inbox_destroy(csched_test_inbox *inbox);
bool csched_test_inbox_append(csched_test_inbox *inbox, const csched_operation *operations, size_t count);
void csched_test_inbox_close(csched_test_inbox *inbox);
size_t csched_test_inbox_take(csched_test_inbox *inbox, csched_operation *operations, size_t room);
bool csched_test_inbox_is_empty(csched_test_inbox *inbox);

/// Makes the calling thread a reader, for the time between the two.
void csched_reader_begin(void);
void csched_reader_end(void);
/// A read section of such a thread: what it could see published is not freed before its end.
void csched_read_section_begin(void);
void csched_read_section_end(void);

CSCHED_ASSUME_NONNULL_END

#endif
