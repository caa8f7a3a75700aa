// scenario.h - what scenarios share.

#ifndef SCENARIO_H
#define SCENARIO_H

#include "port_explorer.h"

#include "port.h"

#include "cscheduler/operation.h"

/// Before every execution.
void reclaim_model_begin(void);
void scheduler_model_begin(void);

enum { ITEMS_MOST = 16 };

/// Operations that carry numbers, in words that belong together.
csched_operation item(int number);
/// Forgets what was put and taken.
void items_begin(void);
/// Before an item is pushed: writes its plain payload, which whoever takes it reads.
csched_operation item_put(int number);
/// Fails when it was torn, not put, or taken before.
void item_taken(const csched_operation *operation);
/// Whether the item was taken.
bool item_was_taken(int number);
/// At the end: fails unless [0, count) were taken.
void items_check(int count);

#endif
