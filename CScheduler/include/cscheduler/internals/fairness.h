/// fairness.h - fair turns where clocks cannot be trusted. Internals: for benchmarks, not stable.

#ifndef CSCHEDULER_INTERNALS_FAIRNESS_H
#define CSCHEDULER_INTERNALS_FAIRNESS_H

/// From now on fair turns depend on the number of operations only, however long these take: for a process in
/// a simulator that counts its instructions. Call it before the first scheduler is created.
void csched_fair_by_count(void);

#endif
