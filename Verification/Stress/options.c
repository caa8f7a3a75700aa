// options.c - the command line, and its errors.

#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USAGE = 64, THREADS_MOST = 256 };

static const char usage[] =
    "usage: stress <workload> [--operations N] [--threads T] [--workers W] [--seed S] [--hogs H]\n"
    "              [--seconds S] [--patience S] [--only SHOT] [--inject DEFECT]\n"
    "shots:     single, bulk, tree, fan, burst, chain, join, outside-join, range, lane, wait, help, "
    "suspended,\n"
    "           visitor, life\n"
    "workloads: mixed, sparse, oversubscribed, memory, reclaim\n"
    "defects:   lost, duplicated, stale, early, disordered, cancelled, hang (mixed); leak (memory)\n";

static const struct {
    const char *name;
    stress_injection injection;
} injections[] = {
    {"none", STRESS_NO_INJECTION}, {"lost", STRESS_LOSE},   {"duplicated", STRESS_DUPLICATE},
    {"stale", STRESS_STALE},       {"early", STRESS_EARLY}, {"disordered", STRESS_DISORDER},
    {"cancelled", STRESS_CANCEL},  {"hang", STRESS_HANG},   {"leak", STRESS_LEAK},
};

static _Noreturn void refuse(const char *what, const char *why)
{
    fprintf(stderr, "stress: '%s' %s.\n%s", what, why, usage);
    exit(USAGE);
}

/// Whole numbers, also in the form 1e9.
static uint64_t number(const char *text, double least, double most, const char *range)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least && value <= most) ||
        (double)(uint64_t)value != value) {
        refuse(text, range);
    }
    return (uint64_t)value;
}

static stress_injection injection(const char *text)
{
    for (size_t index = 0; index < sizeof injections / sizeof injections[0]; index++) {
        if (strcmp(text, injections[index].name) == 0) {
            return injections[index].injection;
        }
    }
    refuse(text, "is not a defect that can be injected");
}

static void take(stress_options *options, const char *name, const char *text)
{
    if (strcmp(name, "--operations") == 0) {
        options->operations = number(text, 1, 1e15, "is not a number of operations (1 ... 1e15)");
    } else if (strcmp(name, "--seed") == 0) {
        options->seed = number(text, 0, 1e15, "is not a seed (0 ... 1e15)");
    } else if (strcmp(name, "--threads") == 0) {
        options->threads = (uint32_t)number(text, 1, THREADS_MOST, "is not a number of threads (1 ... 256)");
    } else if (strcmp(name, "--workers") == 0) {
        options->workers = (uint32_t)number(text, 1, 250, "is not a number of workers (1 ... 250)");
    } else if (strcmp(name, "--hogs") == 0) {
        options->hogs = (uint32_t)number(text, 0, THREADS_MOST, "is not a number of hogs (0 ... 256)");
    } else if (strcmp(name, "--seconds") == 0) {
        options->seconds = (uint32_t)number(text, 1, 1e6, "is not a number of seconds (1 ... 1e6)");
    } else if (strcmp(name, "--patience") == 0) {
        options->patience = (uint32_t)number(text, 1, 1e6, "is not a number of seconds (1 ... 1e6)");
    } else if (strcmp(name, "--only") == 0) {
        options->only = text;
    } else if (strcmp(name, "--inject") == 0) {
        options->injection = injection(text);
    } else {
        refuse(name, "is not an option");
    }
}

stress_options stress_parse(int count, char **arguments)
{
    stress_options options = {
        .operations = 10000000,
        .seed = 1,
        .threads = 4,
        .workers = 2,
        .seconds = UINT32_MAX,
        .patience = 60,
    };
    if (count < 2) {
        fprintf(stderr, "stress: a workload is missing.\n%s", usage);
        exit(USAGE);
    }
    options.workload = arguments[1];
    for (int index = 2; index < count; index += 2) {
        if (index + 1 == count) {
            refuse(arguments[index], "needs a value");
        }
        take(&options, arguments[index], arguments[index + 1]);
    }
    return options;
}
