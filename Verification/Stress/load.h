// load.h - the load: outside threads that submit in every possible way, in rounds, and check each round.
//
// A producer is an outside thread with its own ledger and counter. A round is some ten thousand operations,
// in shots: a shot picks a way to submit, announces its operations, and submits them. At the end of a round
// the producer waits for its counter, then checks its ledger. A round is either a flood or sparse. In a
// sparse round the producer waits or pauses between its shots, so that workers fall asleep and are woken
// again.

#ifndef STRESS_LOAD_H
#define STRESS_LOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cscheduler/completion.h"
#include "cscheduler/lane.h"
#include "cscheduler/scheduler.h"
#include "ledger.h"
#include "main.h"
#include "random.h"

enum { STRESS_LANES = 3 };

typedef struct stress_load stress_load;
typedef struct stress_producer stress_producer;

/// A lane, and data that only its operations touch: two at a time would be a race, and a wrong number.
typedef struct {
    csched_lane *lane;
    uint64_t runs;
    _Atomic(uint64_t) expected;
} stress_lane;

/// The context of a lane's operations.
typedef struct {
    stress_producer *producer;
    stress_lane *lane;
    uint64_t last; ///< the highest number of this producer's operations that have run on the lane
} stress_seat;

struct stress_producer {
    stress_load *load;
    csched_scheduler *scheduler;
    csched_completion *round; ///< all that was submitted in this round
    csched_completion *phase; ///< used for many generations
    stress_ledger ledger;
    stress_random random;
    stress_tally tally;
    stress_seat seats[STRESS_LANES];
    uint64_t submitted;      ///< by this producer, in all rounds
    uint64_t next_injection; ///< the value of `submitted` at which it is due
    uint32_t rounds;
};

struct stress_load {
    const stress_options *options;
    csched_scheduler *scheduler;
    stress_lane lanes[STRESS_LANES];
    stress_producer *producers;
    uint32_t count; ///< of producers
    uint32_t workers;
    uint32_t shots; ///< a bit for each kind that is used
    uint32_t round; ///< the approximate number of operations in a round
    bool sparse;    ///< every round is sparse, and nothing else touches the scheduler: a lost wake-up hangs
    _Atomic(uint64_t) left;   ///< operations that no producer has taken on
    _Atomic(uint64_t) lives;  ///< schedulers that shots have created, and are not destroyed yet
    _Atomic(uint32_t) active; ///< producers that have not ended
    _Atomic(uint64_t) wrong;
    pthread_mutex_t mutex;
    pthread_cond_t idle; ///< no producer is active, or no life is left
};

/// A scheduler with `workers` workers, and `producers` that submit to it.
void stress_load_create(stress_load *load, const stress_options *options, uint32_t producers,
                        uint32_t workers);

/// Submits and checks about `operations`, until `end_ns` at the latest, and waits for them. May be called
/// again.
void stress_load_run(stress_load *load, uint64_t operations, uint64_t end_ns);

/// Drains the scheduler, checks its statistics, and adds everything to `tally`.
void stress_load_destroy(stress_load *load, stress_tally *tally);

/// Called by the watchdog.
uint64_t stress_load_progress(const stress_load *load);
void stress_load_describe(const stress_load *load);

// Used by the shots.

/// One shot, of at most STRESS_SHOT operations.
enum { STRESS_SHOT = 4096 };
void stress_shoot(stress_producer *producer);

/// A bit for each shot that the options allow. Exits with 64 and a message when there is none.
uint32_t stress_choose_shots(const stress_options *options);

/// Whether the producer has to inject its next defect now, if it injects defects of this kind.
bool stress_errs(stress_producer *producer, stress_injection injection);

/// Stops the program with a message unless `status` is CSCHED_OK.
void stress_expect_ok(csched_status status, const char *call);

/// An operation number, and how many it stands for, in one word.
static inline void *stress_pack(uint32_t number, uint32_t span)
{
    return (void *)(uintptr_t)((uint64_t)number << 32 | span);
}
static inline uint32_t stress_number(const void *word) { return (uint32_t)((uint64_t)(uintptr_t)word >> 32); }
static inline uint32_t stress_span(const void *word) { return (uint32_t)(uintptr_t)word; }

/// An operation of the round.
static inline csched_operation stress_operation(stress_producer *producer, csched_function run,
                                                uint32_t number, uint32_t span)
{
    return (csched_operation){
        .run = run, .context = producer, .extra = stress_pack(number, span), .counter = producer->round};
}

/// Records the end of an operation: it ran, or was cancelled.
static inline void stress_end(stress_producer *producer, uint32_t number, csched_disposition disposition)
{
    if (disposition == CSCHED_RUN) {
        stress_ran(&producer->ledger, number);
    } else {
        stress_did_not_run(&producer->ledger, number);
    }
}

/// A body that only records its end.
void stress_run_leaf(void *context, void *extra, csched_disposition disposition);

// The shots, by file.
void stress_shot_single(stress_producer *producer);
void stress_shot_bulk(stress_producer *producer);
void stress_shot_tree(stress_producer *producer);
void stress_shot_fan(stress_producer *producer);
void stress_shot_burst(stress_producer *producer);
void stress_shot_chain(stress_producer *producer);
void stress_shot_join(stress_producer *producer);
void stress_shot_outside_join(stress_producer *producer);
void stress_shot_range(stress_producer *producer);
void stress_shot_lane(stress_producer *producer);
void stress_shot_wait(stress_producer *producer);
void stress_shot_help(stress_producer *producer);
void stress_shot_suspended(stress_producer *producer);
void stress_shot_visitor(stress_producer *producer);
void stress_shot_life(stress_producer *producer);

#endif
