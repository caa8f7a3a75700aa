/// operation.h - an operation: what a scheduler runs.

#ifndef CSCHEDULER_OPERATION_H
#define CSCHEDULER_OPERATION_H

#include "annotations.h"

CSCHED_ASSUME_NONNULL_BEGIN

typedef struct csched_completion csched_completion;

/// How an operation ends. Every accepted operation is called exactly once, with exactly one of the two.
typedef enum CSCHED_CLOSED_ENUM {
    /// Do the work.
    CSCHED_RUN CSCHED_SWIFT_NAME(run) = 0,
    /// The scheduler was shut down first: release what `context` and `extra` own, and do nothing more.
    CSCHED_CANCEL CSCHED_SWIFT_NAME(cancel) = 1,
} csched_disposition;

/// The body of an operation. Runs on a worker, outside every lock and read section of the scheduler.
typedef void (*csched_function)(void *CSCHED_NULLABLE context, void *CSCHED_NULLABLE extra,
                                csched_disposition disposition);

/// When an operation begins, relative to other waiting operations.
typedef enum CSCHED_CLOSED_ENUM {
    /// In turn.
    CSCHED_PRIORITY_DEFAULT CSCHED_SWIFT_NAME(default) = 0,
    /// Next, before any number of other operations: for operations that a caller is waiting for. When many
    /// wait, other operations still get at least one turn in 30.
    CSCHED_PRIORITY_HIGH CSCHED_SWIFT_NAME(high) = 1,
    /// When nothing else is waiting. Under load it still gets at least one turn in 61.
    CSCHED_PRIORITY_BACKGROUND CSCHED_SWIFT_NAME(background) = 2,
    /// The priority of the running body; CSCHED_PRIORITY_DEFAULT outside any body. For submissions only.
    CSCHED_PRIORITY_INHERITED CSCHED_SWIFT_NAME(inherited) = 3,
} csched_priority;

/// An operation is a value of four words. Submitting copies it: nothing is allocated for it, and only what
/// `context` and `extra` point to must outlive the call.
typedef struct {
    csched_function run;
    void *CSCHED_NULLABLE context;
    /// A second word for the body, so that a closure (code and context) needs no box.
    void *CSCHED_NULLABLE extra;
    /// Entered by the submission, left when the body has returned. NULL: the operation is not counted.
    csched_completion *CSCHED_NULLABLE counter;
} csched_operation;

CSCHED_ASSUME_NONNULL_END

#endif
