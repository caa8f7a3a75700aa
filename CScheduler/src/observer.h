// observer.h - who is told what workers do.

#ifndef CSCHEDULER_OBSERVER_H
#define CSCHEDULER_OBSERVER_H

#include "cscheduler/scheduler.h"
#include "port.h"
#include "reclaim.h"

typedef struct csched_observer_snapshot csched_observer_snapshot;

/// Tells the observer, if there is one. A reader, outside every read section.
void csched_observer_notify(csched_scheduler *scheduler, csched_event event, uint32_t worker);
/// Lets go of the observer that a scheduler ends with. No worker may be left.
void csched_observer_dispose(csched_scheduler *scheduler);

#endif
