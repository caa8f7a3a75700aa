// scenario.h - what a scenario is, and what scenarios share.

#ifndef SCENARIO_H
#define SCENARIO_H

#include "port_relacy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;
    const char *sentence;
    int threads; // 2 ... 4, or with workers 1 ... 2
    int workers; // how many threads the scheduler may start: 0 or 2
    void (*setup)(void);
    void (*thread)(int index);
    void (*check)(void);
} relacy_scenario;

/// All scenarios of one part; ends with a name that is NULL.
extern const relacy_scenario deque_scenarios[];
extern const relacy_scenario inbox_scenarios[];
extern const relacy_scenario idle_scenarios[];
extern const relacy_scenario completion_scenarios[];
extern const relacy_scenario capacity_scenarios[];
extern const relacy_scenario registry_scenarios[];
extern const relacy_scenario scheduler_scenarios[];
extern const relacy_scenario join_scenarios[];
extern const relacy_scenario lane_scenarios[];

/// Before every execution.
void reclaim_model_begin(void);
void scheduler_model_begin(void);
void items_begin(void);
/// At the end of every thread of a scenario.
void pthread_relacy_thread_ends(void);

#ifdef __cplusplus
}
#else

#include "port.h"

#include "cscheduler/operation.h"

enum { ITEMS_MOST = 16 };

/// Before an item is pushed: writes its plain payload, which whoever takes it reads.
csched_operation item_put(int number);
/// Fails when it was torn, not put, or taken before. Returns its number.
int item_taken(const csched_operation *operation);
/// At the end: fails unless [0, count) were taken.
void items_check(int count);

/// Threads other than the first say that they are done, and the first one waits for `count` of them.
void others_done(void);
void others_wait(uint32_t count);

#endif
#endif
