// observer.h - the observer, which is notified of what workers do.

#ifndef CSCHEDULER_OBSERVER_H
#define CSCHEDULER_OBSERVER_H

#include "cscheduler/scheduler.h"
#include "port.h"
#include "reclaim.h"

typedef struct csched_observer_snapshot csched_observer_snapshot;

/// Notifies the observer, if there is one. Called by a reader, outside every read section.
void csched_observer_notify(csched_scheduler *scheduler, csched_event event, uint32_t worker);
/// Releases the observer of a scheduler that is being destroyed. No worker may be left.
void csched_observer_dispose(csched_scheduler *scheduler);

#endif
