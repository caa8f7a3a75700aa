// scenario.h - shared by scenarios: the core under the explorer's port, and operations that carry numbers.

#ifndef SCENARIO_H
#define SCENARIO_H

#include "port_explorer.h"

#include "port.h"

#include "cscheduler/operation.h"

struct csched_scheduler;

/// To be called before every execution.
void reclaim_model_begin(void);
void scheduler_model_begin(void);
/// Whether its workers have reported that threads outnumber CPUs (W8).
bool scheduler_model_is_crowded(struct csched_scheduler *scheduler);
/// As if a worker had reported that they no longer do.
void scheduler_model_end_crowd(struct csched_scheduler *scheduler);
/// NULL, or a description of the wrong count in a scheduler whose workers all sleep or have ended.
const char *scheduler_model_at_rest(struct csched_scheduler *scheduler);

const char *scheduler_model_name(const struct csched_scheduler *scheduler);
bool scheduler_model_is_suspended(struct csched_scheduler *scheduler);
bool scheduler_model_has_stopped(struct csched_scheduler *scheduler);
/// The index of the calling worker.
uint32_t scheduler_model_worker(void);
/// Whether its watch sleeps until it is armed.
bool watch_model_is_silent(struct csched_scheduler *scheduler);
/// As if it were suspended one time less than possible.
void scheduler_model_suspend_often(struct csched_scheduler *scheduler);

enum { ITEMS_MOST = 16 };

/// Operations that carry numbers, in matching words.
csched_operation item(int number);
/// Forgets what was put and taken.
void items_begin(void);
/// To be called before an item is pushed: writes its plain payload, which its taker reads.
csched_operation item_put(int number);
/// Fails if the operation is torn, was not put, or was taken before. Returns its number.
int item_taken(const csched_operation *operation);
/// Whether the item was taken.
bool item_was_taken(int number);
/// To be called at the end: fails unless [0, count) were taken.
void items_check(int count);

// The setup of a scenario that starts with one thread, `test`_main.
#define MAIN(test)                                                                                           \
    static void test##_setup(void) { world_setup(test##_main); }
// With its checks: .check at the end; .check_frozen if the other threads continue when any one of them stops
// for ever.
#define SCENARIO(part, test, of, what, ...)                                                                  \
    {.name = part "-" #test, .sentence = what, .properties = of, .setup = test##_setup, __VA_ARGS__}

#endif
