// life.h - shared code of the scenarios of a scheduler's life: bodies, ends, and expectations.

#ifndef LIFE_H
#define LIFE_H

#include "world.h"

// MARK: Bodies

void passes_gate(void *context, void *extra, csched_disposition disposition);
void opens_gate(void *context, void *extra, csched_disposition disposition);
void opens_gate_2(void *context, void *extra, csched_disposition disposition);
/// Opens gate 0, and waits for gate 1.
void tells_and_waits_for_gate_1(void *context, void *extra, csched_disposition disposition);
/// Submits four more operations, with the body below.
void submits_many(void *context, void *extra, csched_disposition disposition);

/// Plain: written while no body may start.
extern int quiet;
/// Checks whether it may run, and runs.
void looks_around(int number, csched_disposition disposition);
void stays_quiet(void *context, void *extra, csched_disposition disposition);
/// For a moment nothing may start: if stays_quiet starts meanwhile, it fails.
void be_quiet(void);
/// Checks the promise of suspend: if nothing is running, nothing starts.
void suspends_and_resumes(void);

/// Lets time pass, so that the watch checks. Other threads may continue at any time meanwhile, and so
/// may the caller.
void pass_time(void);

// MARK: The end

/// Whether a submission was accepted, where it may be refused.
extern bool accepted[ITEMS_MOST];
void submits_0_and_1(void);
void submits_operation_0(void);
void submits_operation_1(void);
void expect_accepted(int count, bool cancelling);
void shut_down(uint64_t timeout_ns);
void shuts_down(void);
void closes(void);
/// Opens gate 0 when a worker has ended.
void watch_the_end_of_a_worker(void);

#endif
