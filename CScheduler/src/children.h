// children.h - what a worker knows of cascades.

#ifndef CSCHEDULER_CHILDREN_H
#define CSCHEDULER_CHILDREN_H

#include "cscheduler/internals/children.h"

/// What a worker has had in hand, as an operation: the next step of a cascade, or the rest of a range.
csched_operation csched_children_in_hand(uintptr_t in_hand);

#endif
