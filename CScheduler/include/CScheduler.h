/// CScheduler - a lock-free operation queue, completion counter and work-stealing workers.
///
/// Includes the whole public API. DESIGN.md holds the correctness argument.

#ifndef CSCHEDULER_H
#define CSCHEDULER_H

#include "cscheduler/annotations.h"
#include "cscheduler/completion.h"
#include "cscheduler/inspection.h"
#include "cscheduler/join.h"
#include "cscheduler/lane.h"
#include "cscheduler/operation.h"
#include "cscheduler/recorder.h"
#include "cscheduler/scheduler.h"
#include "cscheduler/statistics.h"
#include "cscheduler/timer.h"

#endif
