/// operation.h - an operation: what a scheduler runs.

#ifndef CSCHEDULER_OPERATION_H
#define CSCHEDULER_OPERATION_H

#include "annotations.h"

CSCHED_ASSUME_NONNULL_BEGIN

typedef struct csched_completion csched_completion;

/// How an operation ends. Every accepted operation is told exactly one of the two, exactly once.
typedef enum CSCHED_CLOSED_ENUM {
    /// Do the work.
    CSCHED_RUN CSCHED_SWIFT_NAME(run) = 0,
    /// The scheduler was shut down first: release what `context` and `extra` own, and do nothing else.
    CSCHED_CANCEL CSCHED_SWIFT_NAME(cancel) = 1,
} csched_disposition;

/// The body of an operation. Runs on a worker, outside every lock and read section of the scheduler.
typedef void (*csched_function)(void *CSCHED_NULLABLE context, void *CSCHED_NULLABLE extra,
                                csched_disposition disposition);

/// When an operation begins, among those that wait.
typedef enum CSCHED_CLOSED_ENUM {
    /// In turn.
    CSCHED_PRIORITY_DEFAULT CSCHED_SWIFT_NAME(default) = 0,
    /// Next, before any number of others: for what somebody waits for. When many of them wait, others still
    /// get at least one turn in 30.
    CSCHED_PRIORITY_HIGH CSCHED_SWIFT_NAME(high) = 1,
    /// When nothing else waits. When much does, it still gets at least one turn in 61.
    CSCHED_PRIORITY_BACKGROUND CSCHED_SWIFT_NAME(background) = 2,
    /// That of the running body; outside of all, CSCHED_PRIORITY_DEFAULT. For submissions alone.
    CSCHED_PRIORITY_INHERITED CSCHED_SWIFT_NAME(inherited) = 3,
} csched_priority;

/// An operation is a value of four words. Submitting copies it: nothing is allocated for it, and nothing of
/// it needs to outlive the call but what `context` and `extra` point to.
typedef struct {
    csched_function run;
    void *CSCHED_NULLABLE context;
    /// A second word for the body, so that a closure (code and context) needs no box.
    void *CSCHED_NULLABLE extra;
    /// Entered by the submission, left when the body has returned; NULL: the operation counts nowhere.
    csched_completion *CSCHED_NULLABLE counter;
} csched_operation;

CSCHED_ASSUME_NONNULL_END

#endif
