/// fairness.h - fair turns where time is not what it is. Internals: for benchmarks, no promise.

#ifndef CSCHEDULER_INTERNALS_FAIRNESS_H
#define CSCHEDULER_INTERNALS_FAIRNESS_H

/// From now on fair turns come by the number of operations alone, however long these take: for a process in
/// a simulator, whose instructions are counted. Before the first scheduler is created.
void csched_fair_by_count(void);

#endif
