// bodies.h - in debug builds: the bodies on a worker's stack, so that a wait that could never end is
// detected.
//
// A waiting body may run other bodies on its stack. A body can continue only after all bodies above it have
// returned.

#ifndef CSCHEDULER_BODIES_H
#define CSCHEDULER_BODIES_H

#include <stdio.h>

#include "scheduler_internal.h"
#include "worker.h"

#ifdef DEBUG
enum { CSCHED_KNOWS_BODIES = true };
#else
enum { CSCHED_KNOWS_BODIES = false };
#endif

/// A body that has not returned. Lives in the stack frame that called the body.
typedef struct csched_body {
    const csched_completion *counter; // it is counted here, or NULL
    const struct csched_body *below;
} csched_body;

static inline void csched_body_begins(csched_worker *worker, csched_body *body,
                                      const csched_completion *counter)
{
    if (CSCHED_KNOWS_BODIES) {
        *body = (csched_body){.counter = counter, .below = worker->innermost};
        worker->innermost = body;
    }
}

static inline void csched_body_ends(csched_worker *worker, const csched_body *body)
{
    if (CSCHED_KNOWS_BODIES) {
        worker->innermost = body->below;
    }
}

/// Stops the process before a wait without a time limit for the waiting body itself, or for one below it on
/// the stack.
static inline void csched_check_wait(const csched_worker *worker, const csched_completion *counter)
{
    const csched_body *body = CSCHED_KNOWS_BODIES ? worker->innermost : NULL;
    unsigned below = 0;
    while (body != NULL && body->counter != counter) {
        body = body->below;
        below++;
    }
    if (csched_unlikely(body != NULL)) {
        char sentence[256];
        (void)snprintf(
            sentence, sizeof sentence,
            "on worker %u of '%s' a body waits for a counter in which %s%.0u%s is counted: the wait "
            "could never end",
            worker->index, worker->scheduler->name, below == 0 ? "that body itself" : "the body ", below,
            below == 0 ? "" : " below it on the stack");
        csched_fatal("csched_completion_wait", sentence);
    }
}

#endif
