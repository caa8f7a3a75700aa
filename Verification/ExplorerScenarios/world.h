// world.h - shared by scenarios of the whole scheduler: one scheduler, one counter, bodies that record that
// they ran, gates, and threads.

#ifndef WORLD_H
#define WORLD_H

#include "scenario.h"

#include "cscheduler/completion.h"
#include "cscheduler/join.h"
#include "cscheduler/lane.h"
#include "cscheduler/scheduler.h"

extern csched_scheduler *scheduler;
extern csched_completion *counter;

/// Forgets the world of the last execution. To be called first in a setup.
void world_begin(void);
/// Calm: creates the scheduler and the counter; its workers have checked for work, and sleep.
void world_open(csched_configuration configuration);
/// The default, but without a watch.
csched_configuration world_configuration(void);
void world_open_workers(uint32_t workers);
/// One worker, and a limited capacity.
void world_open_with_places(uint64_t places);
/// With a watch, which sleeps.
void world_open_with_spares(uint32_t workers, uint32_t spares);
/// From here on the scenario is explored.
void world_explore(void);
/// The same, and time stands still: an operation with a wake-up does not wait for the sentry's next check.
void world_explore_without_time(void);
/// Calm: checks that all counts are right at quiescence, and shuts the scheduler down; unless a thread is
/// stopped for ever.
void world_close(void);

/// Waits for the counter, expects that operations [0, count) were run, and closes.
void world_end(int count);
/// Lets other threads go first, without a departure. In a calm part the running thread continues by default.
/// A worker that is to be in its body when the exploration begins therefore gives way to the thread that it
/// has notified.
void give_way(void);

/// Operation `number`: its body records that it ran.
csched_operation operation(int number);
/// The same with another body, which has to call `ran`.
csched_operation operation_with(int number, csched_function body);
/// The number of the operation that a body belongs to.
int number_of(void *context);
/// Records that the operation was run, or cancelled.
void ran(int number, csched_disposition disposition);

/// Called when one of the operations [0, IN_TURN), which were submitted from outside in this order, begins:
/// fails (S11) if more older ones than two batches hold have not begun by then.
enum { IN_TURN = 8 * CSCHED_BATCH };
void begins_in_turn(int number);

/// Must be accepted.
void submit(csched_operation what);
/// The same as a job: the first job of a body goes to the deque of its worker, the others to its inbox (U4).
void submit_job(csched_operation what);
/// A body for operations whose run no scenario checks.
void does_nothing(void *context, void *extra, csched_disposition disposition);
/// Takes so long that a fair turn follows (X4). Undisturbed: no other thread runs meanwhile.
void take_long(void);
/// Waits for the counter.
void wait_for_all(void);

/// Fails (S1) unless operations [0, count) were each run once. Plain reads: the thread must be ordered after
/// them.
void expect_ran(int count);
/// Fails (S13) unless each of [0, count) was run once, or cancelled once.
void expect_settled(int count);
/// To be called at the end of an execution, outside all threads: how often an operation was run.
int times_run(int number);
int times_cancelled(int number);

/// How often the core has printed a warning.
int times_warned(void);

/// Whether `call` stops the process, with this sentence. Another sentence is a failure.
bool stops(const char *sentence, void (*call)(void));

/// A gate, closed at first. A thread that passes it sees what was written before it was opened.
typedef struct {
    csched_atomic(uint32_t) open;
} gate;
void gate_open(gate *which);
void gate_pass(gate *which);
bool gate_is_open(gate *which);
extern gate gates[4];

/// Starts a thread of a scenario, whose inboxes are released at its end.
int thread_start(const char *name, void (*body)(void));
void thread_join(int thread);
/// The setup of nearly every scenario: one thread that runs `body`.
void world_setup(void (*body)(void));

#endif
