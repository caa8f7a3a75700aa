// tuning.h - constants that trade one cost for another; correctness does not depend on them.
//
// A port may set each of them: under the explorer they are small, so that what is rare here is common there.

#ifndef CSCHEDULER_TUNING_H
#define CSCHEDULER_TUNING_H

#include "port.h"

/// The most operations that are taken at once, from a deque or an inbox.
#ifndef CSCHED_BATCH
#define CSCHED_BATCH 32
#endif

/// The operations that fit into a new deque; a power of two.
#ifndef CSCHED_DEQUE_CAPACITY
#define CSCHED_DEQUE_CAPACITY 256
#endif

/// Likewise, for a deque of high or background priority, which many workers never use.
#ifndef CSCHED_RANKED_DEQUE_CAPACITY
#define CSCHED_RANKED_DEQUE_CAPACITY 8
#endif

/// The number of jobs of one body that go to its worker's deque, newest first (U4): enough for the branches
/// of a tree of tasks, and few enough that their order does not matter to a group.
#ifndef CSCHED_BURST
#define CSCHED_BURST 8
#endif

/// The most retired objects that are freed together, and how long they are allowed to gather: each collection
/// costs a system call that interrupts all running threads.
#ifndef CSCHED_COLLECTED_MOST
#define CSCHED_COLLECTED_MOST 1024
#endif
#ifndef CSCHED_GATHER_NS
#define CSCHED_GATHER_NS UINT64_C(10000000)
#endif

/// How far from the bottom of a deque thieves may take many at once (D3). Near it the owner would have to
/// close the deque often, and a close costs a cache miss, and takes one operation out of order.
#ifndef CSCHED_OPEN_DISTANCE
#define CSCHED_OPEN_DISTANCE 32
#endif

/// The operations that fit into the first segment of an inbox, and into the largest.
#ifndef CSCHED_SEGMENT_FIRST
#define CSCHED_SEGMENT_FIRST 32
#endif
#ifndef CSCHED_SEGMENT_MOST
#define CSCHED_SEGMENT_MOST 512
#endif

/// The most operations that a worker runs before it looks at the oldest ones (X4).
#ifndef CSCHED_FAIR_MOST
#define CSCHED_FAIR_MOST 61
#endif
/// Likewise, for a worker that has slept, or is new: its next operations may take long.
#ifndef CSCHED_FAIR_FIRST
#define CSCHED_FAIR_FIRST 4
#endif
/// Roughly how long operations from outside wait while a worker has its own. A look costs a thousandth of it.
#ifndef CSCHED_FAIR_NS
#define CSCHED_FAIR_NS UINT64_C(50000)
#endif
/// Of so many fair turns of a worker's own deque, one takes the oldest operation.
#ifndef CSCHED_OWN_TURNS
#define CSCHED_OWN_TURNS 4
#endif

/// The most operations of high priority in a row, while others wait (N4): few enough that the background,
/// which gets every other fair turn, gets one within CSCHED_FAIR_MOST operations.
#ifndef CSCHED_HIGH_MOST
#define CSCHED_HIGH_MOST (CSCHED_FAIR_MOST / 2 - 1)
#endif

/// Of so many looks for operations of a priority, one begins with the inboxes, one with the worker's own
/// oldest, and the rest with its newest (X4).
#ifndef CSCHED_RANKED_TURNS
#define CSCHED_RANKED_TURNS 16
#endif

/// A lone operation is left to its busy owner this long; then the sentry looks less and less often (W5).
#ifndef CSCHED_SENTRY_FIRST_NS
#define CSCHED_SENTRY_FIRST_NS UINT64_C(50000)
#endif
#ifndef CSCHED_SENTRY_LAST_NS
#define CSCHED_SENTRY_LAST_NS UINT64_C(1000000)
#endif

/// The watch looks after this time, then less and less often while no worker is blocked (W7).
#ifndef CSCHED_WATCH_FIRST_NS
#define CSCHED_WATCH_FIRST_NS UINT64_C(100000)
#endif
#ifndef CSCHED_WATCH_LAST_NS
#define CSCHED_WATCH_LAST_NS UINT64_C(6400000)
#endif
/// A body counts as blocked if it has run for at most this fraction (1/n) of the time since the previous look
/// (Z3).
#ifndef CSCHED_BLOCKED_SHARE
#define CSCHED_BLOCKED_SHARE 4
#endif
/// Needless looks before the watch disarms itself, so that it need not be armed often.
#ifndef CSCHED_CALM_LOOKS
#define CSCHED_CALM_LOOKS 8
#endif
/// How long workers without a seat are kept (Z5).
#ifndef CSCHED_RESERVE_NS
#define CSCHED_RESERVE_NS UINT64_C(250000000)
#endif

/// Looks before sleep: a wake-up costs more than a few of them.
#ifndef CSCHED_LOOKS
#define CSCHED_LOOKS 4
#endif
/// Likewise, for a join whose second branch was taken: two workers that share a tree often wait for each
/// other, usually not for long. With 4 looks W9 took 1.2 times as long on two CPUs.
#ifndef CSCHED_JOIN_LOOKS
#define CSCHED_JOIN_LOOKS 64
#endif

/// How long such a join sleeps before it announces that it blocks.
#ifndef CSCHED_JOIN_NAP_NS
#define CSCHED_JOIN_NAP_NS UINT64_C(200000)
#endif

/// A yield that takes this long has probably let another thread run (pace.c).
#ifndef CSCHED_SLOW_YIELD_NS
#define CSCHED_SLOW_YIELD_NS UINT64_C(2000)
#endif
/// A run of this many operations between two searches is worth a slow yield.
#ifndef CSCHED_WORTHWHILE
#define CSCHED_WORTHWHILE 4
#endif
/// If the operations of a run take this long on average, no search yields: a sleep and a wake-up cost as much
/// as one or two of them. More than half of the last CSCHED_SLOW_RUNS runs have to be that slow.
#ifndef CSCHED_SLOW_OPERATION_NS
#define CSCHED_SLOW_OPERATION_NS UINT64_C(2000)
#endif
#ifndef CSCHED_SLOW_RUNS
#define CSCHED_SLOW_RUNS 7
#endif
/// The searches without a yield after a slow one: at first, and at most. The next yield may cost a kernel
/// slice, 3 ms: it is to be spread over many searches.
#ifndef CSCHED_HASTY_FIRST
#define CSCHED_HASTY_FIRST 64
#endif
#ifndef CSCHED_HASTY_MOST
#define CSCHED_HASTY_MOST 16384
#endif

/// The most leaves held back, and the number of enters made in advance (X2). Both still count against
/// CSCHED_COMPLETION_MAX.
#ifndef CSCHED_DEBT_MOST
#define CSCHED_DEBT_MOST 1024
#endif
#ifndef CSCHED_ADVANCE
#define CSCHED_ADVANCE 64
#endif

/// The notifications of a counter before its list is swept for the first time (C6).
#ifndef CSCHED_SWEEP_LEAST
#define CSCHED_SWEEP_LEAST 64
#endif

/// The operations that a drain of a lane runs before it yields the worker (L3).
#ifndef CSCHED_TURN
#define CSCHED_TURN 64
#endif

/// The nodes of each region of children except the first: with the header, a page.
#ifndef CSCHED_CHILDREN_MORE
#define CSCHED_CHILDREN_MORE 63
#endif

/// A tick of the timers is 2^this nanoseconds, 33 us: they may be late by that much, and wake their thread no
/// more often.
#ifndef CSCHED_TICK_SHIFT
#define CSCHED_TICK_SHIFT 15
#endif
/// A level of the timers' wheel has 2^this slots. A timer moves once for each level below its own: a timer of
/// half a minute, twice.
#ifndef CSCHED_WHEEL_BITS
#define CSCHED_WHEEL_BITS 8
#endif
/// The number of timers that are sorted before their thread reads the clock again (T7), and of cancelled ones
/// that are kept in any case (T5).
#ifndef CSCHED_TIMER_PIECE
#define CSCHED_TIMER_PIECE 256
#endif
#ifndef CSCHED_TIMER_SWEEP_LEAST
#define CSCHED_TIMER_SWEEP_LEAST 1024
#endif
/// How long a timer waits whose submission found no memory: 1 ms.
#ifndef CSCHED_TIMER_RETRY_TICKS
#define CSCHED_TIMER_RETRY_TICKS 32
#endif

#endif
