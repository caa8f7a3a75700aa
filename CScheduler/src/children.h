// children.h - what a worker knows of cascades.

#ifndef CSCHEDULER_CHILDREN_H
#define CSCHEDULER_CHILDREN_H

#include "cscheduler/internals/children.h"

/// The step that a worker has had in hand, as an operation: it has begun, for all that others can see.
csched_operation csched_children_in_hand(csched_children *children);

#endif
