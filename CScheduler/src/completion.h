// completion.h - a leave in two steps, for workers that hold an operation when a generation ends.

#ifndef CSCHEDULER_SRC_COMPLETION_H
#define CSCHEDULER_SRC_COMPLETION_H

#include "cscheduler/completion.h"

/// The work that is left to the last leave of a generation.
typedef struct {
    bool last;
    csched_notification *notifications; // to be called
    csched_completion *released;        // to be freed after that
} csched_conclusion;

/// As csched_completion_leave, but calls no user code.
csched_conclusion csched_completion_leave_only(csched_completion *counter, uint32_t count);
/// Does the remaining work.
void csched_completion_conclude(csched_conclusion conclusion);

#endif
