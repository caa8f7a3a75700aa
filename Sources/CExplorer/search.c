// search.c - which executions are run: all within bounds, random ones, or one; and how a schedule is shrunk.
//
//   F1  A schedule is the list of its departures from the default. An execution is a function of its
//       schedule. So leaving out a departure gives another schedule, and shrinking means leaving departures
//       out.
//   F2  The exhaustive search is depth first over the decisions, in the order in which they occur. A decision
//       whose departures the bounds forbid does not count as one.
//   F3  PCT: every thread has a random priority, and the thread with the highest one runs. At random steps
//       the running thread drops below all others, as does a thread that yields.

#include <stdlib.h>
#include <string.h>

#include "engine.h"

enum { DECISIONS_MOST = 1 << 16, VALUES_MOST = 16, CHANGES_MOST = 8 };

typedef struct {
    uint8_t values;
    uint8_t chosen;
} decision;

static struct {
    const explorer_options *options;
    explorer_schedule taken; // of this execution
    bool too_long;
    uint32_t departures[2]; // of kind t, and of the others
    // Exhaustive
    decision *path;
    uint32_t depth;
    uint32_t position;
    // PCT
    uint64_t random;
    int32_t priority[EXPLORER_THREADS];
    int32_t lowest;
    uint32_t change_at[CHANGES_MOST];
    uint32_t turns;      // decisions of kind t in this execution
    uint32_t turns_most; // the most in any execution so far
} search;

static void take(char kind, uint32_t step, uint8_t value)
{
    search.departures[kind != 't']++;
    if (search.taken.count == EXPLORER_DEVIATIONS_MOST) {
        search.too_long = true;
        return;
    }
    search.taken.at[search.taken.count++] = (explorer_deviation){.step = step, .kind = kind, .value = value};
}

// MARK: Exhaustive

static int choose_exhaustively(char kind, uint32_t step, const uint8_t *values, int count)
{
    bool spent = kind == 't' ? search.departures[0] >= search.options->bound
                             : search.departures[1] >= search.options->stale_bound;
    if (spent) {
        return 0; // F2
    }
    if (search.position == search.depth) {
        if (search.depth == DECISIONS_MOST) {
            explorer_fail("more decisions than the explorer has room for");
        }
        search.path[search.depth++] =
            (decision){.values = (uint8_t)(count < VALUES_MOST ? count : VALUES_MOST), .chosen = 0};
    }
    int choice = search.path[search.position++].chosen;
    if (choice != 0) {
        take(kind, step, values[choice]);
    }
    return choice;
}

// False: there is no further path.
static bool next_path(void)
{
    search.depth = search.position; // decisions beyond it are left over from a failure
    while (search.depth > 0) {
        decision *last = &search.path[search.depth - 1];
        if (++last->chosen < last->values) {
            return true;
        }
        search.depth--;
    }
    return false;
}

// MARK: PCT

static uint64_t draw(uint64_t limit)
{
    search.random ^= search.random << 13;
    search.random ^= search.random >> 7;
    search.random ^= search.random << 17;
    return search.random % limit;
}

static void begin_random(uint64_t seed)
{
    search.random = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (int round = 0; round < 4; round++) {
        (void)draw(2);
    }
    for (int thread = 0; thread < EXPLORER_THREADS; thread++) {
        search.priority[thread] = (int32_t)draw(1000) + 1;
    }
    search.lowest = 0;
    for (int change = 0; change < CHANGES_MOST; change++) {
        search.change_at[change] = (uint32_t)draw(search.turns_most + 1);
    }
}

static int choose_thread_by_priority(const uint8_t *values, int count)
{
    int self = explorer_self();
    for (uint32_t change = 0; self >= 0 && change < search.options->bound && change < CHANGES_MOST;
         change++) {
        if (search.change_at[change] == search.turns) {
            search.priority[self] = --search.lowest;
        }
    }
    if (self >= 0 && values[0] != self) { // it yields, waits or has ended
        search.priority[self] = --search.lowest;
    }
    int best = 0;
    for (int index = 1; index < count; index++) {
        best = search.priority[values[index]] > search.priority[values[best]] ? index : best;
    }
    return best;
}

static int choose_randomly(char kind, uint32_t step, const uint8_t *values, int count)
{
    int choice = 0;
    if (kind == 't') {
        choice = choose_thread_by_priority(values, count);
        search.turns++;
    } else if (draw(kind == 'r' ? 4 : 16) == 0) {
        choice = (int)draw((uint64_t)count);
    }
    if (choice != 0) {
        take(kind, step, values[choice]);
    }
    return choice;
}

// MARK: Replay

static int choose_as_before(char kind, uint32_t step, const uint8_t *values, int count)
{
    const explorer_schedule *schedule = &search.options->schedule;
    for (uint32_t index = 0; index < schedule->count; index++) {
        const explorer_deviation *each = &schedule->at[index];
        for (int choice = 1; each->step == step && each->kind == kind && choice < count; choice++) {
            if (values[choice] == each->value) {
                take(kind, step, values[choice]);
                return choice;
            }
        }
    }
    return 0;
}

// MARK: The whole

static engine_outcome run_once(const explorer_program *program, const explorer_options *options, FILE *trace)
{
    engine_chooser *const choosers[] = {
        [EXPLORER_EXHAUSTIVE] = choose_exhaustively,
        [EXPLORER_PCT] = choose_randomly,
        [EXPLORER_REPLAY] = choose_as_before,
    };
    search.options = options;
    search.taken.count = 0;
    search.taken.frozen = options->schedule.frozen;
    search.taken.frozen_at = options->schedule.frozen_at;
    search.too_long = false;
    search.departures[0] = search.departures[1] = 0;
    search.position = 0;
    search.turns = 0;
    engine_outcome outcome = explorer_execute(program, options, choosers[options->strategy], trace);
    search.turns_most = search.turns > search.turns_most ? search.turns : search.turns_most;
    return outcome;
}

explorer_options explorer_options_default(void)
{
    return (explorer_options){
        .strategy = EXPLORER_EXHAUSTIVE, .bound = 2, .stale_bound = 1, .steps_most = 5000};
}

explorer_result explorer_run(const explorer_program *program, const explorer_options *options)
{
    explorer_result result = {.executions = 0};
    search.path = malloc(DECISIONS_MOST * sizeof *search.path);
    if (search.path == NULL) {
        result.failed = true;
        (void)snprintf(result.message, sizeof result.message, "no memory for the search");
        return result;
    }
    search.depth = 0;
    search.turns_most = 64;
    bool more = true;
    while (more && !result.failed &&
           (options->executions_most == 0 || result.executions < options->executions_most)) {
        if (options->strategy == EXPLORER_PCT) {
            begin_random(options->seed + result.executions);
        }
        engine_outcome outcome = run_once(program, options, NULL);
        result.executions++;
        result.steps += outcome.steps;
        result.steps_longest = outcome.steps > result.steps_longest ? outcome.steps : result.steps_longest;
        result.frozen |= outcome.frozen;
        result.threads = explorer_threads();
        result.failed = outcome.failed;
        memcpy(result.message, outcome.message, sizeof result.message);
        if (outcome.failed && search.too_long) {
            size_t length = strlen(result.message);
            (void)snprintf(result.message + length, sizeof result.message - length,
                           " (with more than %d departures: it cannot be replayed)",
                           EXPLORER_DEVIATIONS_MOST);
        }
        more = options->strategy == EXPLORER_PCT || (options->strategy == EXPLORER_EXHAUSTIVE && next_path());
    }
    result.complete = !more && !result.failed;
    result.schedule = search.taken;
    free(search.path);
    return result;
}

explorer_result explorer_run_frozen(const explorer_program *program, const explorer_options *options)
{
    explorer_result sum = explorer_run(program, options); // determines how many threads there are
    explorer_options each = *options;
    for (int thread = 0; thread < sum.threads; thread++) {
        explorer_result result = {.frozen = true};
        each.schedule.frozen = thread + 1;
        for (each.schedule.frozen_at = 1; result.frozen && !sum.failed; each.schedule.frozen_at++) {
            result = explorer_run(program, &each);
            sum.executions += result.executions;
            sum.steps += result.steps;
            sum.complete &= result.complete;
            sum.failed = result.failed;
            sum.schedule = result.schedule;
            memcpy(sum.message, result.message, sizeof sum.message);
        }
    }
    return sum;
}

// MARK: Shrinking

// Whether the schedule fails in the same way. Reduces it to the departures that were actually taken.
static bool still_fails(const explorer_program *program, explorer_options *options, const char *message)
{
    engine_outcome outcome = run_once(program, options, NULL);
    if (!outcome.failed || strcmp(outcome.message, message) != 0) {
        return false;
    }
    options->schedule = search.taken;
    return true;
}

static explorer_schedule without(const explorer_schedule *schedule, uint32_t first, uint32_t count)
{
    explorer_schedule shorter = *schedule;
    memmove(&shorter.at[first], &shorter.at[first + count],
            (schedule->count - first - count) * sizeof shorter.at[0]);
    shorter.count -= count;
    return shorter;
}

explorer_schedule explorer_shrink(const explorer_program *program, const explorer_options *options,
                                  const explorer_result *failure)
{
    explorer_options replay = *options;
    replay.strategy = EXPLORER_REPLAY;
    replay.schedule = failure->schedule;
    uint32_t chunk = replay.schedule.count;
    while (chunk > 0) {
        bool cut = false;
        for (uint32_t first = 0; first + chunk <= replay.schedule.count;) {
            explorer_schedule before = replay.schedule;
            replay.schedule = without(&before, first, chunk);
            if (still_fails(program, &replay, failure->message) && replay.schedule.count < before.count) {
                cut = true;
            } else {
                replay.schedule = before;
                first++;
            }
        }
        chunk = cut ? (chunk < replay.schedule.count ? chunk : replay.schedule.count) : chunk / 2;
    }
    return replay.schedule;
}

void explorer_print(FILE *file, const explorer_program *program, const explorer_options *options,
                    const explorer_schedule *schedule)
{
    explorer_options replay = *options;
    replay.strategy = EXPLORER_REPLAY;
    replay.schedule = *schedule;
    (void)run_once(program, &replay, file);
}

// Replaces the failure with one within the bounds, if there is one.
static bool replace(const explorer_program *program, explorer_options options, explorer_result *failure)
{
    options.executions_most = failure->executions;
    explorer_result found = explorer_run(program, &options);
    if (found.failed) {
        found.executions = failure->executions;
        *failure = found;
    }
    return found.failed;
}

void explorer_simplify(const explorer_program *program, const explorer_options *options,
                       explorer_result *failure)
{
    failure->schedule = explorer_shrink(program, options, failure);
    bool simpler = options->strategy != EXPLORER_EXHAUSTIVE;
    for (uint32_t departures = 0; departures < failure->schedule.count && !simpler; departures++) {
        for (uint32_t stale = 0; stale <= departures && stale <= options->stale_bound && !simpler; stale++) {
            explorer_options smaller = *options;
            smaller.stale_bound = stale;
            smaller.bound = departures - stale;
            simpler = smaller.bound <= options->bound && replace(program, smaller, failure);
        }
    }
}
