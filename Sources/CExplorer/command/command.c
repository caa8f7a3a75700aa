// command.c - the command of a program that explores: lists, runs, replays and shrinks what it is given.

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "explorer.h"
#include "json.h"
#include "run.h"

enum { USAGE = 64 }; // sysexits.h

static const explorer_program *programs;
static size_t program_count;
static const char *name_of_command;

static const char usage[] =
    "  list                      the programs\n"
    "  run [NAME...] [OPTIONS]   runs those whose names begin so, else all; exits with 1 after a violation\n"
    "  replay NAME SCHEDULE      runs one schedule, and prints its steps\n"
    "  shrink NAME SCHEDULE      leaves out of a failing schedule what it does not need\n"
    "\n"
    "  --exact           the names are whole names\n"
    "  --bound N         changes of the running thread in a schedule (1)\n"
    "  --stale N         stale loads, and failures without a reason, in a schedule (1)\n"
    "  --frozen-bound N  changes beside a thread that stops for ever (0)\n"
    "  --no-frozen       no thread is stopped for ever\n"
    "  --random N        random schedules beside those (0), by PCT\n"
    "  --seed N          of the first of them (1)\n"
    "  --limit N         schedules of a program at most, and then it is not complete (100000; 0: no limit)\n"
    "  --steps N         steps of a schedule at most: more are a livelock (5000)\n"
    "  --sequential      sequentially consistent memory\n"
    "  --first           ends with the first violation\n"
    "  --jobs N          processes (as many as there are processors)\n"
    "  --json FILE       also writes what was found there\n"
    "\n"
    "A schedule is its departures from the default: t2@14, thread 2 goes on before step 14; r1@20, the load\n"
    "of step 20 sees the last store but one; w1@30, something fails there without a reason; s1@40, not the\n"
    "first waiter is woken there, but the next; f1@7, thread 1 stops for ever before its 7th step. \"-\" is "
    "the default itself.\n";

static void print_usage(FILE *file)
{
    (void)fprintf(file, "%s: small concurrent programs under every schedule within bounds.\n\n%s",
                  name_of_command, usage);
}

static _Noreturn void misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "%s: ", name_of_command);
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, " '%s --help' says more.\n", name_of_command);
    va_end(arguments);
    exit(USAGE);
}

static uint64_t number_of(const char *option, const char *text, uint64_t most)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value > most) {
        misuse("--%s needs a number up to %llu, and '%s' is none.", option, (unsigned long long)most, text);
    }
    return value;
}

// MARK: Run

static uint64_t schedules;
static int violations;
static char options_of_replay[64]; // the options that a schedule depends on
static int complete;

static void print_search(const char *name, const search_report *search)
{
    const explorer_result *result = &search->result;
    if (search->ran && search->signal == 0) {
        (void)printf("  %s %llu%s in %.2f s", name, (unsigned long long)result->executions,
                     result->complete || strcmp(name, "random") == 0 ? "" : " (not all)", search->seconds);
        schedules += result->executions;
    }
}

static void print_violation(const run_report *report, const search_report *search)
{
    if (search->signal != 0) {
        (void)printf("    VIOLATION: the process was ended by signal %d\n", search->signal);
    } else if (search->result.failed) {
        char schedule[4096];
        (void)explorer_schedule_write(&search->result.schedule, schedule, sizeof schedule);
        (void)printf("    VIOLATION: %s\n    with %u departure%s: %s replay %s '%s'%s\n",
                     search->result.message, search->departures, search->departures == 1 ? "" : "s",
                     name_of_command, report->program->name, schedule, options_of_replay);
    }
}

static const char *properties_of(const explorer_program *program)
{
    return program->properties != NULL ? program->properties : "";
}

static void print_report(const run_report *report)
{
    (void)printf("%-32s %-16s", report->program->name, properties_of(report->program));
    print_search("schedules", &report->exhaustive);
    print_search("random", &report->random);
    print_search("with a stopped thread", &report->frozen);
    (void)printf("%s\n", explorer_report_failed(report) ? "" : "  holds");
    print_violation(report, &report->exhaustive);
    print_violation(report, &report->random);
    print_violation(report, &report->frozen);
    (void)fflush(stdout);
    violations += explorer_report_failed(report);
    complete += report->exhaustive.result.complete;
}

static bool is_selected(const explorer_program *program, const run_report *reports, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (reports[index].program == program) {
            return true;
        }
    }
    return false;
}

// In the order of the names, each program once.
static size_t select_programs(char **names, int count, bool exact, run_report *reports)
{
    size_t selected = 0;
    char *everything[] = {""};
    for (int name = 0; name < (count == 0 ? 1 : count); name++) {
        const char *prefix = count == 0 ? everything[0] : names[name];
        bool matches = false;
        for (size_t index = 0; index < program_count; index++) {
            const explorer_program *program = &programs[index];
            bool match = strncmp(program->name, prefix, strlen(prefix) + (exact ? 1 : 0)) == 0;
            matches |= match;
            if (match && !is_selected(program, reports, selected)) {
                reports[selected++].program = program;
            }
        }
        if (!matches) {
            misuse(exact ? "no program's name is '%s'." : "no program's name begins with '%s'.", prefix);
        }
    }
    return selected;
}

static void write_json(const char *path, const run_report *reports, size_t count)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (file == NULL) {
        (void)fprintf(stderr, "%s: %s cannot be written: %s\n", name_of_command, path, strerror(errno));
        exit(EXIT_FAILURE);
    }
    explorer_write_json(file, reports, count);
    if (file != stdout) {
        (void)fclose(file);
    }
}

static int run(char **names, int count, bool exact, const run_plan *plan, const char *json)
{
    run_report *reports = calloc(program_count, sizeof *reports);
    if (reports == NULL) {
        perror(name_of_command);
        return EXIT_FAILURE;
    }
    size_t selected = select_programs(names, count, exact && count > 0, reports);
    struct timespec began;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    selected = explorer_run_all(plan, reports, selected, print_report);
    struct timespec ended;
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    (void)printf("%zu programs, of which %d are complete within the bound; %llu schedules in %lld s; "
                 "%d violations\n",
                 selected, complete, (unsigned long long)schedules, (long long)(ended.tv_sec - began.tv_sec),
                 violations);
    if (json != NULL) {
        write_json(json, reports, selected);
    }
    free(reports);
    return violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// MARK: One schedule

static const explorer_program *program_named(const char *name)
{
    for (size_t index = 0; index < program_count; index++) {
        if (strcmp(programs[index].name, name) == 0) {
            return &programs[index];
        }
    }
    misuse("there is no program '%s'.", name);
}

static void read_schedule(const explorer_program *program, const char *text, explorer_options *options)
{
    if (!explorer_schedule_read(&options->schedule, text)) {
        misuse("'%s' is no schedule.", text);
    }
    if (options->schedule.frozen != 0 && program->check_frozen == NULL) {
        misuse("%s does not claim that it goes on without a thread, so none can be stopped.", program->name);
    }
    options->strategy = EXPLORER_REPLAY;
}

static int replay(const char *name, const char *schedule, explorer_options options)
{
    const explorer_program *program = program_named(name);
    read_schedule(program, schedule, &options);
    explorer_catch_faults();
    explorer_print(stdout, program, &options, &options.schedule);
    explorer_result result = explorer_run(program, &options);
    (void)printf("%s, %llu steps: %s\n", name, (unsigned long long)result.steps,
                 result.failed ? result.message : "holds");
    if (result.schedule.count < options.schedule.count) {
        (void)printf("%u of the departures were not there to be taken\n",
                     options.schedule.count - result.schedule.count);
    }
    return result.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int shrink(const char *name, const char *schedule, explorer_options options)
{
    const explorer_program *program = program_named(name);
    read_schedule(program, schedule, &options);
    options.executions_most = 1;
    explorer_catch_faults();
    explorer_result result = explorer_run(program, &options);
    if (!result.failed) {
        (void)fprintf(stderr, "%s: %s holds under this schedule, so it cannot be shrunk.\n", name_of_command,
                      name);
        return EXIT_FAILURE;
    }
    explorer_schedule least = explorer_shrink(program, &options, &result);
    char text[4096];
    (void)explorer_schedule_write(&least, text, sizeof text);
    (void)printf("%s\n", text);
    return EXIT_SUCCESS;
}

// MARK: Others

static int list(void)
{
    for (size_t index = 0; index < program_count; index++) {
        const explorer_program *program = &programs[index];
        (void)printf("%-32s %-16s %s%s\n", program->name, properties_of(program),
                     program->sentence != NULL ? program->sentence : "",
                     program->check_frozen != NULL ? "; any thread may stop for ever" : "");
    }
    return EXIT_SUCCESS;
}

int explorer_main(int count, char **arguments, const explorer_program *given, size_t given_count)
{
    programs = given;
    program_count = given_count;
    const char *slash = count > 0 ? strrchr(arguments[0], '/') : NULL;
    name_of_command = slash != NULL ? slash + 1 : count > 0 ? arguments[0] : "explore";
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    run_plan plan = {.options = explorer_options_default(),
                     .jobs = processors > 0 ? (uint32_t)processors : 1};
    plan.options.bound = 1;
    plan.options.executions_most = 100000;
    plan.options.seed = 1;
    const char *json = NULL;
    bool exact = false;
    enum {
        EXACT = 1,
        BOUND,
        STALE,
        FROZEN,
        NO_FROZEN,
        RANDOM,
        SEED,
        LIMIT,
        STEPS,
        SEQUENTIAL,
        FIRST,
        JOBS,
        JSON,
        HELP
    };
    const struct option options[] = {
        {"exact", no_argument, NULL, EXACT},
        {"bound", required_argument, NULL, BOUND},
        {"stale", required_argument, NULL, STALE},
        {"frozen-bound", required_argument, NULL, FROZEN},
        {"no-frozen", no_argument, NULL, NO_FROZEN},
        {"random", required_argument, NULL, RANDOM},
        {"seed", required_argument, NULL, SEED},
        {"limit", required_argument, NULL, LIMIT},
        {"steps", required_argument, NULL, STEPS},
        {"sequential", no_argument, NULL, SEQUENTIAL},
        {"first", no_argument, NULL, FIRST},
        {"jobs", required_argument, NULL, JOBS},
        {"json", required_argument, NULL, JSON},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int which, index = 0; (which = getopt_long(count, arguments, "", options, &index)) != -1;) {
        switch (which) {
        case EXACT:
            exact = true;
            break;
        case BOUND:
            plan.options.bound = (uint32_t)number_of("bound", optarg, 100);
            break;
        case STALE:
            plan.options.stale_bound = (uint32_t)number_of("stale", optarg, 100);
            break;
        case FROZEN:
            plan.frozen_bound = (uint32_t)number_of("frozen-bound", optarg, 100);
            break;
        case NO_FROZEN:
            plan.without_frozen = true;
            break;
        case RANDOM:
            plan.random = number_of("random", optarg, UINT64_MAX);
            break;
        case SEED:
            plan.options.seed = number_of("seed", optarg, UINT64_MAX);
            break;
        case LIMIT:
            plan.options.executions_most = number_of("limit", optarg, UINT64_MAX);
            break;
        case STEPS:
            plan.options.steps_most = (uint32_t)number_of("steps", optarg, UINT32_MAX);
            break;
        case SEQUENTIAL:
            plan.options.sequentially_consistent = true;
            break;
        case FIRST:
            plan.first = true;
            break;
        case JOBS:
            plan.jobs = (uint32_t)number_of("jobs", optarg, 64);
            if (plan.jobs == 0) {
                misuse("--jobs needs at least 1.");
            }
            break;
        case JSON:
            json = optarg;
            break;
        case HELP:
            print_usage(stdout);
            return EXIT_SUCCESS;
        default:
            misuse("'%s' is no option, or needs a value.", arguments[optind - 1]);
        }
    }
    if (plan.options.steps_most != explorer_options_default().steps_most) {
        (void)snprintf(options_of_replay, sizeof options_of_replay, " --steps %u", plan.options.steps_most);
    }
    if (plan.options.sequentially_consistent) {
        size_t length = strlen(options_of_replay);
        (void)snprintf(options_of_replay + length, sizeof options_of_replay - length, " --sequential");
    }
    char **words = arguments + optind;
    int left = count - optind;
    if (left >= 1 && strcmp(words[0], "run") == 0) {
        return run(words + 1, left - 1, exact, &plan, json);
    }
    if (left == 1 && strcmp(words[0], "list") == 0) {
        return list();
    }
    if (left == 3 && strcmp(words[0], "replay") == 0) {
        return replay(words[1], words[2], plan.options);
    }
    if (left == 3 && strcmp(words[0], "shrink") == 0) {
        return shrink(words[1], words[2], plan.options);
    }
    if (left == 0) {
        print_usage(stderr);
        return USAGE;
    }
    misuse("'%s' is no command, or it lacks something.", words[0]);
}
