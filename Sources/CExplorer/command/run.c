// run.c - a process for each program: a crash is a result, and all cores are used.

#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

bool explorer_report_failed(const run_report *report)
{
    return report->exhaustive.result.failed || report->random.result.failed || report->frozen.result.failed ||
           report->exhaustive.signal != 0;
}

// A fault of the explored program is a violation like any other, with a schedule. The handler has its own
// stack: the fibre's may be the cause.
static void fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *what = number == SIGFPE   ? "a division by zero"
                       : number == SIGILL ? "an instruction that is none"
                       : number == SIGABRT
                           ? "the program aborted: an assertion, or an exception that nobody catches"
                       : explorer_is_below_a_stack(info->si_addr) ? "a thread has used up its stack of 128 KB"
                                                                  : "an access to memory that is none";
    explorer_fail("%s (R3)", what);
}

// Detects code that keeps running without reaching a step.
static void watch(int number)
{
    (void)number;
    static uint64_t seen = UINT64_MAX;
    if (explorer_progress() == seen) {
        explorer_fail("an endless loop without a step (S2)");
    }
    seen = explorer_progress();
}

void explorer_catch_faults(void)
{
    static char stack[64 * 1024];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    (void)sigaltstack(&own, NULL);
    const struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO};
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all; // a process that was started by a thread of Dispatch's pool has them blocked
    (void)sigemptyset(&all);
    (void)sigaddset(&all, SIGVTALRM);
    for (size_t index = 0; index < sizeof faults / sizeof faults[0]; index++) {
        (void)sigaction(faults[index], &action, NULL);
        (void)sigaddset(&all, faults[index]);
    }
    (void)sigprocmask(SIG_UNBLOCK, &all, NULL);
    const struct sigaction tick = {.sa_handler = watch, .sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART};
    const struct itimerval second = {.it_interval = {.tv_sec = 1}, .it_value = {.tv_sec = 1}};
    (void)sigaction(SIGVTALRM, &tick, NULL);
    (void)setitimer(ITIMER_VIRTUAL, &second, NULL); // CPU time: a stopped process is not stuck
}

typedef explorer_result search(const explorer_program *program, const explorer_options *options);

static void run_one(search_report *report, const explorer_program *program, const explorer_options *options,
                    search *run)
{
    double began = now();
    report->ran = true;
    report->result = run(program, options);
    if (report->result.failed) {
        if (run == explorer_run) {
            explorer_simplify(program, options, &report->result);
        } else {
            report->result.schedule = explorer_shrink(program, options, &report->result);
        }
        report->departures = report->result.schedule.count + (report->result.schedule.frozen != 0);
    }
    report->seconds = now() - began;
}

static void run_program(const run_plan *plan, run_report *report)
{
    run_one(&report->exhaustive, report->program, &plan->options, explorer_run);
    if (plan->random != 0 && !explorer_report_failed(report)) {
        explorer_options random = plan->options;
        random.strategy = EXPLORER_PCT;
        random.bound = random.bound + 1;
        random.executions_most = plan->random;
        run_one(&report->random, report->program, &random, explorer_run);
    }
    if (!plan->without_frozen && report->program->check_frozen != NULL && !explorer_report_failed(report)) {
        explorer_options frozen = plan->options;
        uint32_t least = report->program->frozen_bound;
        frozen.bound = plan->frozen_bound > least ? plan->frozen_bound : least;
        frozen.stale_bound = 0;
        run_one(&report->frozen, report->program, &frozen, explorer_run_frozen);
    }
}

enum { JOBS_MOST = 64 };

typedef struct {
    pid_t process;
    int pipe;
    run_report *report;
} job;

static void start(const run_plan *plan, run_report *report, job *started)
{
    int ends[2];
    (void)fflush(NULL); // else parent and child would both print it
    if (pipe(ends) != 0 || (started->process = fork()) < 0) {
        perror("explore: cannot start a process");
        exit(EXIT_FAILURE);
    }
    if (started->process == 0) {
        explorer_catch_faults();
        run_program(plan, report);
        (void)fflush(NULL); // the program's output, which _exit would discard
        bool written = write(ends[1], report, sizeof *report) == (ssize_t)sizeof *report;
        _exit(written ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    (void)close(ends[1]);
    started->pipe = ends[0];
    started->report = report;
}

// A report fits into a pipe, so a process that has ended has written its own.
static void finish(job *ended)
{
    char *into = (char *)ended->report;
    const explorer_program *program = ended->report->program;
    size_t have = 0;
    for (ssize_t count; have < sizeof *ended->report &&
                        (count = read(ended->pipe, into + have, sizeof *ended->report - have)) > 0;) {
        have += (size_t)count;
    }
    (void)close(ended->pipe);
    int status = 0;
    (void)waitpid(ended->process, &status, 0);
    if (have < sizeof *ended->report) {
        memset(ended->report, 0, sizeof *ended->report);
        ended->report->exhaustive.ran = true;
        ended->report->exhaustive.signal = WIFSIGNALED(status) ? WTERMSIG(status) : -1;
    }
    ended->report->program = program;
    ended->process = 0;
}

size_t explorer_run_all(const run_plan *plan, run_report *reports, size_t count,
                        void (*ended)(const run_report *report))
{
    job jobs[JOBS_MOST] = {{.process = 0}};
    size_t most = plan->jobs < JOBS_MOST ? plan->jobs : JOBS_MOST;
    size_t next = 0;
    for (size_t done = 0; done < count;) {
        for (size_t place = 0; place < most && next < count; place++) {
            if (jobs[place].process == 0) {
                start(plan, &reports[next++], &jobs[place]);
            }
        }
        siginfo_t which;
        if (waitid(P_ALL, 0, &which, WEXITED | WNOWAIT) != 0) {
            perror("explore: cannot wait for a process");
            exit(EXIT_FAILURE);
        }
        for (size_t place = 0; place < most; place++) {
            if (jobs[place].process == which.si_pid) {
                finish(&jobs[place]);
                ended(jobs[place].report);
                done++;
                count = plan->first && explorer_report_failed(jobs[place].report) ? next : count;
            }
        }
    }
    return next;
}
