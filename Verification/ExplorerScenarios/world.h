// world.h - what scenarios of the whole scheduler share: one scheduler, one counter, bodies that write down
// that they ran, gates, and threads.

#ifndef WORLD_H
#define WORLD_H

#include "scenario.h"

#include "cscheduler/completion.h"
#include "cscheduler/join.h"
#include "cscheduler/lane.h"
#include "cscheduler/scheduler.h"

extern csched_scheduler *scheduler;
extern csched_completion *counter;

/// Forgets the world of the last execution. First of all in a setup.
void world_begin(void);
/// Calm: makes the scheduler and the counter; its workers have looked around, and sleep.
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
/// The same, and time stands still: what has a wake-up does not wait for the sentry to look again.
void world_explore_without_time(void);
/// Calm: looks whether everything is counted as it should when nothing happens any more, and shuts the
/// scheduler down; unless a thread is stopped for ever.
void world_close(void);

/// Waits for the counter, expects that operations [0, count) were run, and closes.
void world_end(int count);
/// Lets others go first, without a departure. In a calm part the running thread goes on: so that a worker is
/// still in its body when the exploration begins, it gives way to the one it has told.
void give_way(void);

/// Operation `number`: its body writes down that it ran.
csched_operation operation(int number);
/// The same with another body, which is to call `ran`.
csched_operation operation_with(int number, csched_function body);
/// The number of the operation that a body belongs to.
int number_of(void *context);
/// Writes down that the operation was run, or cancelled.
void ran(int number, csched_disposition disposition);

/// Operations [0, IN_TURN), which were submitted from outside in this order, begin: fails (S11) when one does
/// before more older ones than two batches have.
enum { IN_TURN = 8 * CSCHED_BATCH };
void begins_in_turn(int number);

/// Must be accepted.
void submit(csched_operation what);
/// The same as a job: of one body the first lies in the deque of its worker, the others in its inbox (U4).
void submit_job(csched_operation what);
/// Bodies of which no scenario asks whether they ran.
void does_nothing(void *context, void *extra, csched_disposition disposition);
/// Takes so long that a fair turn follows (X4). Undisturbed: nobody else runs meanwhile.
void take_long(void);
/// Waits for the counter.
void wait_for_all(void);

/// Fails (S1) unless operations [0, count) were each run once. Plain reads: the thread has to know of it.
void expect_ran(int count);
/// Fails (S13) unless each of [0, count) was run once, or cancelled once.
void expect_settled(int count);
/// At the end of an execution, from outside of all threads: how often an operation was run.
int times_run(int number);
int times_cancelled(int number);

/// How often the core has printed a warning.
int times_warned(void);

/// Whether `call` stops the process, with this sentence. Another sentence is a failure.
bool stops(const char *sentence, void (*call)(void));

/// A gate is closed at first. Who passes has seen what was written before it was opened.
typedef struct {
    csched_atomic(uint32_t) open;
} gate;
void gate_open(gate *which);
void gate_pass(gate *which);
bool gate_is_open(gate *which);
extern gate gates[4];

/// A thread of a scenario, whose inboxes go at its end.
int thread_start(const char *name, void (*body)(void));
void thread_join(int thread);
/// The setup of nearly every scenario: one thread that runs `body`.
void world_setup(void (*body)(void));

#endif
