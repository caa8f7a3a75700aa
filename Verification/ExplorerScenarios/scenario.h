// scenario.h - what scenarios share: the core under the explorer's port, and operations that carry numbers.

#ifndef SCENARIO_H
#define SCENARIO_H

#include "port_explorer.h"

#include "port.h"

#include "cscheduler/operation.h"

struct csched_scheduler;

/// Before every execution.
void reclaim_model_begin(void);
void scheduler_model_begin(void);
/// Whether its workers have told that threads outnumber CPUs (W8).
bool scheduler_model_is_crowded(struct csched_scheduler *scheduler);
/// As if a worker had told that they do no more.
void scheduler_model_end_crowd(struct csched_scheduler *scheduler);
/// NULL, or what is counted wrong in a scheduler whose workers all sleep, or have ended.
const char *scheduler_model_at_rest(struct csched_scheduler *scheduler);

const char *scheduler_model_name(const struct csched_scheduler *scheduler);
bool scheduler_model_is_suspended(struct csched_scheduler *scheduler);
bool scheduler_model_has_stopped(struct csched_scheduler *scheduler);
/// The index of the calling worker.
uint32_t scheduler_model_worker(void);
/// Whether its watch sleeps until it is armed.
bool watch_model_is_silent(struct csched_scheduler *scheduler);
/// As if it were suspended once less than as often as it can be.
void scheduler_model_suspend_often(struct csched_scheduler *scheduler);

enum { ITEMS_MOST = 16 };

/// Operations that carry numbers, in words that belong together.
csched_operation item(int number);
/// Forgets what was put and taken.
void items_begin(void);
/// Before an item is pushed: writes its plain payload, which whoever takes it reads.
csched_operation item_put(int number);
/// Fails when it was torn, not put, or taken before. Returns its number.
int item_taken(const csched_operation *operation);
/// Whether the item was taken.
bool item_was_taken(int number);
/// At the end: fails unless [0, count) were taken.
void items_check(int count);

// The setup of a scenario that is one thread at first, `test`_main.
#define MAIN(test)                                                                                           \
    static void test##_setup(void) { world_setup(test##_main); }
// With its checks: .check at the end, .check_frozen where it goes on when any of its threads stops for ever.
#define SCENARIO(part, test, of, what, ...)                                                                  \
    {.name = part "-" #test, .sentence = what, .properties = of, .setup = test##_setup, __VA_ARGS__}

#endif
