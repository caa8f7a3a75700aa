/// sizing.h - how many CPUs the cgroups leave to a process. Internals: for tests, not stable.

#ifndef CSCHEDULER_INTERNALS_SIZING_H
#define CSCHEDULER_INTERNALS_SIZING_H

#include <stdint.h>

#include "../annotations.h"

CSCHED_ASSUME_NONNULL_BEGIN

/// `membership` has the format of /proc/self/cgroup, `mount` is where the hierarchies are mounted.
/// UINT32_MAX: no limit.
uint32_t csched_sizing_quota(const char *membership, const char *mount);

/// Quota over period, both in microseconds, rounded up. UINT32_MAX: no limit.
uint32_t csched_sizing_parse_quota(const char *quota, const char *period);

CSCHED_ASSUME_NONNULL_END

#endif
