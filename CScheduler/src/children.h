// children.h - what a worker knows of cascades and ranges.

#ifndef CSCHEDULER_CHILDREN_H
#define CSCHEDULER_CHILDREN_H

#include "cscheduler/internals/children.h"

/// Turns what a worker has in hand into an operation: the next step of a cascade, or the rest of a range.
csched_operation csched_children_in_hand(uintptr_t in_hand);

#endif
