// shots.c - which shot comes next; the ways to submit that need nothing but the scheduler and a counter.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cscheduler/join.h"
#include "load.h"

enum { USAGE = 64, SUSPENDED_MOST_NS = 50000 };
enum { BULK_MOST = 64, TREE_MOST = 127, CHAIN_MOST = 64, RANGE_MOST = 512 };

void stress_run_leaf(void *context, void *extra, csched_disposition disposition)
{
    stress_end(context, stress_number(extra), disposition);
}

static void submit(stress_producer *producer, csched_function run, uint32_t number, uint32_t span)
{
    csched_operation operation = stress_operation(producer, run, number, span);
    stress_expect_ok(csched_submit(producer->scheduler, &operation), "csched_submit");
}

static void submit_bulk(stress_producer *producer, uint32_t first, uint32_t count)
{
    csched_operation operations[BULK_MOST];
    for (uint32_t index = 0; index < count; index++) {
        operations[index] = stress_operation(producer, stress_run_leaf, first + index, 1);
    }
    stress_expect_ok(csched_submit_bulk(producer->scheduler, operations, count), "csched_submit_bulk");
}

static void run_late(void *context, void *extra, csched_disposition disposition)
{
    (void)disposition;
    stress_end(context, stress_number(extra), CSCHED_CANCEL);
}

void stress_shot_single(stress_producer *producer)
{
    uint32_t number = stress_expect(&producer->ledger, STRESS_SINGLE, 1);
    if (stress_errs(producer, STRESS_LOSE)) {
        return;
    }
    if (stress_errs(producer, STRESS_HANG)) {
        csched_completion_enter(producer->round, 1);
    }
    if (stress_errs(producer, STRESS_DUPLICATE)) {
        submit(producer, stress_run_leaf, number, 1);
    }
    if (stress_errs(producer, STRESS_CANCEL)) {
        submit(producer, run_late, number, 1);
        return;
    }
    if (stress_errs(producer, STRESS_STALE)) {
        uint32_t word = producer->ledger.words[number];
        producer->ledger.words[number] = 0;
        submit(producer, stress_run_leaf, number, 1);
        (void)csched_completion_wait(producer->round, CSCHED_FOREVER);
        producer->ledger.words[number] = ~word; // only the body is to notice the defect
        return;
    }
    submit(producer, stress_run_leaf, number, 1);
}

void stress_shot_bulk(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, BULK_MOST);
    submit_bulk(producer, stress_expect(&producer->ledger, STRESS_BULK, count), count);
}

// A binary tree, numbered in preorder: a node, its left half, its right half.
static void run_tree(void *context, void *extra, csched_disposition disposition)
{
    uint32_t number = stress_number(extra);
    stress_end(context, number, disposition);
    uint32_t below = stress_span(extra) - 1;
    uint32_t left = below - below / 2;
    if (left > 0) {
        submit(context, run_tree, number + 1, left);
    }
    if (below > left) {
        submit(context, run_tree, number + 1 + left, below - left);
    }
}

void stress_shot_tree(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, TREE_MOST);
    submit(producer, run_tree, stress_expect(&producer->ledger, STRESS_TREE, count), count);
}

// One operation that submits the others at once, from a worker.
static void run_fan(void *context, void *extra, csched_disposition disposition)
{
    uint32_t number = stress_number(extra);
    stress_end(context, number, disposition);
    submit_bulk(context, number + 1, stress_span(extra) - 1);
}

void stress_shot_fan(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, BULK_MOST + 1); // 1: an empty bulk
    submit(producer, run_fan, stress_expect(&producer->ledger, STRESS_FAN, count), count);
}

// Enough operations at once from one worker that its deque has to grow while others steal from it.
static void run_burst(void *context, void *extra, csched_disposition disposition)
{
    uint32_t number = stress_number(extra);
    uint32_t end = number + stress_span(extra);
    stress_end(context, number, disposition);
    for (number++; number < end; number++) {
        submit(context, stress_run_leaf, number, 1);
    }
}

void stress_shot_burst(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, STRESS_SHOT);
    submit(producer, run_burst, stress_expect(&producer->ledger, STRESS_BURST, count), count);
}

static void run_chain(void *context, void *extra, csched_disposition disposition)
{
    uint32_t number = stress_number(extra);
    stress_end(context, number, disposition);
    if (stress_span(extra) > 1) {
        submit(context, run_chain, number + 1, stress_span(extra) - 1);
    }
}

void stress_shot_chain(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, CHAIN_MOST);
    submit(producer, run_chain, stress_expect(&producer->ledger, STRESS_CHAIN, count), count);
}

typedef struct {
    stress_producer *producer;
    uint32_t number;
    uint32_t span;
} branch;

// A tree as above, but of joins: a branch, with everything below it, has ended when its join returns.
static void join(void *context)
{
    const branch *node = context;
    stress_ledger *ledger = &node->producer->ledger;
    stress_ran(ledger, node->number);
    uint32_t below = node->span - 1;
    uint32_t left = below - below / 2;
    branch halves[2] = {{node->producer, node->number + 1, left},
                        {node->producer, node->number + 1 + left, below - left}};
    if (below == 1) {
        join(&halves[0]);
    } else if (below > 1 && node->number % 2 == 0) {
        csched_status status = csched_join(node->producer->scheduler, (csched_branch){join, &halves[0]},
                                           (csched_branch){join, &halves[1]});
        stress_expect_ok(status, "csched_join");
    } else if (below > 1) {
        csched_fork fork;
        bool begun = csched_fork_begin(&fork, (csched_branch){join, &halves[1]});
        join(&halves[0]);
        if (!begun || csched_fork_end(&fork)) {
            join(&halves[1]);
        }
    }
    if (below > 1) {
        stress_must_have_run(ledger, node->number + 1, 1);
        stress_must_have_run(ledger, node->number + left + below - left, 1); // the last of the second half
    }
}

static void run_join(void *context, void *extra, csched_disposition disposition)
{
    if (disposition == CSCHED_RUN) {
        branch root = {context, stress_number(extra), stress_span(extra)};
        join(&root);
    }
}

void stress_shot_join(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, TREE_MOST);
    submit(producer, run_join, stress_expect(&producer->ledger, STRESS_JOIN, count), count);
}

void stress_shot_outside_join(stress_producer *producer)
{
    uint32_t count = 2 + stress_below(&producer->random, TREE_MOST);
    uint32_t number = stress_expect(&producer->ledger, STRESS_JOIN, count);
    branch halves[2] = {{producer, number, 1}, {producer, number + 1, count - 1}};
    csched_status status = csched_join(producer->scheduler, (csched_branch){join, &halves[0]},
                                       (csched_branch){join, &halves[1]});
    stress_expect_ok(status, "csched_join");
    stress_must_have_run(&producer->ledger, number, count);
}

typedef struct {
    stress_producer *producer;
    uint32_t first;
    uint32_t count;
} range;

static void run_index(void *context, uint64_t index)
{
    const range *whole = context;
    stress_ran(&whole->producer->ledger, whole->first + (uint32_t)index);
}

// The end of the range is an operation too, after all its indices.
static void run_finally(void *context, bool complete)
{
    range *whole = context;
    stress_ledger *ledger = &whole->producer->ledger;
    stress_must_have_run(ledger, whole->first, whole->count);
    stress_end(whole->producer, whole->first + whole->count, complete ? CSCHED_RUN : CSCHED_CANCEL);
    free(whole);
}

void stress_shot_range(stress_producer *producer)
{
    range *whole = malloc(sizeof *whole);
    if (whole == NULL) {
        stress_stop("memory is exhausted: a range could not be allocated");
    }
    uint32_t count = stress_below(&producer->random, RANGE_MOST);
    *whole = (range){producer, stress_expect(&producer->ledger, STRESS_RANGE, count + 1), count};
    csched_status status = csched_submit_range(producer->scheduler, count, stress_below(&producer->random, 9),
                                               run_index, run_finally, whole, producer->round);
    stress_expect_ok(status, "csched_submit_range");
}

// An outside thread that submits, and exits before its operations have run.
static void *visit(void *context)
{
    const range *visitor = context;
    for (uint32_t index = 0; index < visitor->count; index++) {
        submit(visitor->producer, stress_run_leaf, visitor->first + index, 1);
    }
    return NULL;
}

void stress_shot_visitor(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, BULK_MOST);
    range visitor = {producer, stress_expect(&producer->ledger, STRESS_VISITOR, count), count};
    pthread_t thread;
    if (pthread_create(&thread, NULL, visit, &visitor) != 0) {
        stress_stop("a thread could not be created for a visitor");
    }
    pthread_join(thread, NULL);
}

// Operations submitted after a suspension do not start before the resume; and the resume wakes a worker.
void stress_shot_suspended(stress_producer *producer)
{
    uint32_t count = 1 + stress_below(&producer->random, BULK_MOST);
    uint32_t first = stress_expect(&producer->ledger, STRESS_SUSPENDED, count);
    csched_scheduler_suspend(producer->scheduler);
    submit_bulk(producer, first, count);
    stress_sleep_ns(stress_below(&producer->random, SUSPENDED_MOST_NS));
    for (uint32_t number = first; number < first + count; number++) {
        if (atomic_load_explicit(&producer->ledger.ends[number], memory_order_relaxed) != 0) {
            stress_note(&producer->ledger.wrong);
        }
    }
    csched_scheduler_resume(producer->scheduler);
}

static const struct {
    const char *name;
    void (*shot)(stress_producer *producer);
    uint32_t weight; // of about 10,000
} shots[] = {
    {"single", stress_shot_single, 4000},
    {"bulk", stress_shot_bulk, 1000},
    {"tree", stress_shot_tree, 1000},
    {"fan", stress_shot_fan, 1000},
    {"burst", stress_shot_burst, 10},
    {"chain", stress_shot_chain, 900},
    {"join", stress_shot_join, 900},
    {"outside-join", stress_shot_outside_join, 40},
    {"range", stress_shot_range, 300},
    {"lane", stress_shot_lane, 500},
    {"wait", stress_shot_wait, 150},
    {"help", stress_shot_help, 200},
    {"suspended", stress_shot_suspended, 10},
    {"visitor", stress_shot_visitor, 4},
    {"life", stress_shot_life, 2},
};
enum { SHOTS = sizeof shots / sizeof shots[0] };

uint32_t stress_choose_shots(const stress_options *options)
{
    if (options->only == NULL) {
        return UINT32_MAX;
    }
    for (uint32_t index = 0; index < SHOTS; index++) {
        if (strcmp(options->only, shots[index].name) == 0) {
            return UINT32_C(1) << index;
        }
    }
    fprintf(stderr, "stress: '%s' is not a shot.\n", options->only);
    exit(USAGE);
}

void stress_shoot(stress_producer *producer)
{
    uint32_t allowed = producer->load->shots;
    uint32_t sum = 0;
    for (uint32_t index = 0; index < SHOTS; index++) {
        sum += (allowed >> index & 1) * shots[index].weight;
    }
    uint32_t choice = stress_below(&producer->random, sum);
    uint32_t index = 0;
    for (; (allowed >> index & 1) == 0 || choice >= shots[index].weight; index++) {
        choice -= (allowed >> index & 1) * shots[index].weight;
    }
    shots[index].shot(producer);
}
