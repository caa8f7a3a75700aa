// engine.c - one execution: fibres take turns, one step at a time, as the chooser decides.
//
//   E1  Before every step the chooser decides which thread runs. So any steps of other threads may lie
//       between two steps of a thread, and nothing else.
//   E2  A waiting thread continues only after a wake-up of its address, when its timeout expires, or
//       spuriously by a choice. When no thread can continue and not all have ended, a wake-up was lost, or
//       there is a cycle.
//   E3  The program's memory is that of heap.c, its thread-local variables are switched with the fibre, and
//       its clock is virtual: the same choices give the same execution, to the last address.
//   E4  A thread that keeps reading an unchanged value lets other threads run first, as if it yielded: at the
//       fifth read of the same value, in the same place, since a thread last changed something.

#include "execution.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "memory.h"
#include "plain.h"

// When a thread is stopped forever, other threads may poll forever, whenever their timeouts expire: after
// this many polls they will see nothing new.
enum { ALARMS_MOST = 12 };
// E4
enum { SAME_LOOKS_MOST = 5 };

execution explorer_engine = {.self = -1};
fibre explorer_fibres[EXPLORER_THREADS];

static _Thread_local bool is_exploring; // other threads of the process keep running

extern unsigned char start_of_locals[] __asm__("__start_explorer_tls") __attribute__((weak));
extern unsigned char end_of_locals[] __asm__("__stop_explorer_tls") __attribute__((weak));

// Part of the C++ run time, if the program has one.
extern exceptions *__cxa_get_globals(void) __attribute__((weak));
extern void __cxa_end_catch(void) __attribute__((weak));

static size_t size_of_locals(void) { return (size_t)(end_of_locals - start_of_locals); }

int explorer_threads(void) { return explorer_engine.count; }
int explorer_self(void) { return explorer_engine.self; }
bool explorer_is_running(void) { return is_exploring; }
bool explorer_is_waiting(int thread) { return explorer_engine.threads[thread].state != READY; }
void explorer_memory_ends(bool ends) { explorer_engine.out_of_memory = ends; }
void explorer_refuse_memory(uint32_t number) { explorer_engine.until_refused = number; }
size_t explorer_allocated(void) { return explorer_heap_live(); }
uint64_t explorer_progress(void) { return explorer_engine.progress; }

// MARK: The end of an execution

// Saves the exceptions of the running thread, which stops running.
static void keep_exceptions(void)
{
    const exceptions *thrown = __cxa_get_globals != NULL ? __cxa_get_globals() : NULL;
    explorer_engine.threads[explorer_engine.self].exceptions =
        thrown != NULL ? *thrown : (exceptions){NULL, 0};
}

static _Noreturn void leave(void)
{
    if (explorer_engine.self < 0) {
        longjmp(explorer_engine.given_up, 1);
    }
    keep_exceptions();
    explorer_fibre_switch(&explorer_fibres[explorer_engine.self], &explorer_engine.outside);
    abort();
}

void explorer_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(explorer_engine.outcome.message, sizeof explorer_engine.outcome.message, format,
                    arguments);
    va_end(arguments);
    explorer_engine.outcome.failed = true;
    if (explorer_engine.trace != NULL) {
        (void)fprintf(explorer_engine.trace, "=> %s\n", explorer_engine.outcome.message);
    }
    leave();
}

const char *explorer_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void explorer_fail_at(const explorer_site *site, const char *what)
{
    explorer_fail("%s, at %s:%d, %s", what, explorer_file_name(site->file), site->line, site->what);
}

// MARK: Whose turn it is

static void forget_looks_of(thread *each) { memset(each->looks, 0, sizeof each->looks); }
void explorer_forget_looks(void) { forget_looks_of(&explorer_engine.threads[explorer_engine.self]); }

static void change_to(int next)
{
    thread *to = &explorer_engine.threads[next];
    exceptions *thrown = __cxa_get_globals != NULL ? __cxa_get_globals() : NULL;
    if (explorer_engine.self >= 0) {
        memcpy(explorer_engine.threads[explorer_engine.self].locals, start_of_locals, size_of_locals());
        keep_exceptions();
    }
    if (thrown != NULL) {
        *thrown = to->exceptions;
    }
    forget_looks_of(to); // other threads may have changed what this one waits for
    fibre *from =
        explorer_engine.self >= 0 ? &explorer_fibres[explorer_engine.self] : &explorer_engine.outside;
    memcpy(start_of_locals, to->locals, size_of_locals());
    explorer_engine.self = next;
    to->yielded = 0;
    explorer_fibre_switch(from, &explorer_fibres[next]);
}

static bool may_time_out(const thread *each)
{
    return each->state == WAITING && each->deadline_ns != UINT64_MAX && !explorer_engine.timeless;
}

// In order of preference. A thread that settles continues only when no other can, except by a timeout.
typedef enum { GOES_ON, YIELDS, SETTLES, TIME_MAY_PASS, STAYS } kind;

static kind kind_of(const thread *each)
{
    if (each->state == READY) {
        return each->yields ? YIELDS : each->settles ? SETTLES : GOES_ON;
    }
    return may_time_out(each) ? TIME_MAY_PASS : STAYS;
}

// The threads that may run next, in turn after the running one, which comes last.
static int candidates(uint8_t *numbers)
{
    uint8_t of_kind[STAYS + 1][EXPLORER_THREADS];
    int counts[STAYS + 1] = {0};
    for (int offset = 1, number = explorer_engine.self; offset <= explorer_engine.count; offset++) {
        number = number + 1 == explorer_engine.count ? 0 : number + 1;
        kind found = kind_of(&explorer_engine.threads[number]);
        of_kind[found][counts[found]++] = (uint8_t)number;
    }
    int count = 0;
    for (kind wanted = GOES_ON; wanted < STAYS; wanted++) {
        for (int index = 0; index < counts[wanted] && (wanted != SETTLES || count == 0); index++) {
            numbers[count++] = of_kind[wanted][index];
        }
    }
    return count;
}

static bool daemons_stay(void) { return explorer_freezes() || explorer_engine.program->daemons; }

// A thread was stopped forever, every other one has ended or is a waiting daemon, and time alone changes
// nothing.
static bool is_at_rest(int next)
{
    bool alarm = explorer_engine.threads[next].state == WAITING;
    for (int number = 0; alarm && number < explorer_engine.count; number++) {
        alarm = explorer_engine.threads[number].state != READY;
    }
    explorer_engine.alarms = alarm ? explorer_engine.alarms + 1 : explorer_engine.alarms;
    return daemons_stay() && explorer_engine.alarms > ALARMS_MOST;
}

// E1. -1: no thread can continue.
static int next_thread(void)
{
    uint8_t numbers[EXPLORER_THREADS];
    int count = candidates(numbers);
    if (count == 0) {
        return -1;
    }
    for (int index = 1; index < count; index++) { // the default: the running thread continues
        const thread *self =
            explorer_engine.self >= 0 ? &explorer_engine.threads[explorer_engine.self] : NULL;
        if (numbers[index] == explorer_engine.self && self->state == READY && !self->yields) {
            memmove(numbers + 1, numbers, (size_t)index);
            numbers[0] = (uint8_t)explorer_engine.self;
        }
    }
    int choice = count > 1 && !explorer_engine.calm
                     ? explorer_engine.choose('t', explorer_engine.explored, numbers, count)
                     : 0;
    if (is_at_rest(numbers[choice])) {
        return -1;
    }
    thread *chosen = &explorer_engine.threads[numbers[choice]];
    if (chosen->state == WAITING) { // E2
        chosen->timed_out = true;
        chosen->state = READY;
        explorer_engine.now_ns =
            chosen->deadline_ns > explorer_engine.now_ns ? chosen->deadline_ns : explorer_engine.now_ns;
    }
    return numbers[choice];
}

static _Noreturn void finish(void)
{
    char waiters[192] = "";
    size_t length = 0;
    for (int number = 0; number < explorer_engine.count; number++) {
        const thread *each = &explorer_engine.threads[number];
        if (each->state == WAITING && !(daemons_stay() && each->daemon)) {
            size_t left = length < sizeof waiters ? sizeof waiters - length : 0;
            length += (size_t)snprintf(waiters + (sizeof waiters - left), left,
                                       "%s%s waits for ever, at %s:%d", length > 0 ? "; " : "", each->name,
                                       explorer_file_name(each->site->file), each->site->line);
        }
    }
    if (length > 0) {
        explorer_fail("%s: %s",
                      explorer_engine.outcome.frozen ? "not lock-free (S2), a stopped thread is waited for"
                                                     : "a lost wake-up or a deadlock (S3)",
                      waiters);
    }
    leave();
}

void explorer_hand_over(void)
{
    int next = next_thread();
    if (next < 0) {
        finish();
    }
    if (next != explorer_engine.self) {
        change_to(next);
    }
    explorer_engine.threads[explorer_engine.self].yields = false;
    explorer_engine.threads[explorer_engine.self].settles = false;
}

bool explorer_step(const explorer_site *site)
{
    if (explorer_engine.self < 0) {
        return false;
    }
    thread *self = &explorer_engine.threads[explorer_engine.self];
    self->site = site;
    self->yields = self->yields || self->spins;
    self->spins = false;
    explorer_engine.progress++;
    explorer_engine.explored += !explorer_engine.calm;
    if (++explorer_engine.outcome.steps > explorer_engine.options->steps_most) {
        explorer_fail_at(site, "a livelock (S2)");
    }
    const explorer_schedule *schedule = &explorer_engine.options->schedule;
    if (!explorer_engine.calm && schedule->frozen == explorer_engine.self + 1 &&
        schedule->frozen_at == ++self->steps) {
        self->state = FROZEN;
        explorer_engine.outcome.frozen = true;
        explorer_note(site, "stops for ever");
    }
    explorer_hand_over();
    return true;
}

void explorer_wait_on(const void *address, uint64_t deadline_ns)
{
    thread *self = &explorer_engine.threads[explorer_engine.self];
    self->state = WAITING;
    self->address = address;
    self->deadline_ns = deadline_ns;
    self->timed_out = false;
    explorer_hand_over();
}

bool explorer_fails_here(void)
{
    static const uint8_t values[] = {0, 1};
    return !explorer_engine.calm && explorer_engine.choose('w', explorer_engine.explored, values, 2) != 0;
}

void explorer_note_look(const explorer_site *site, const void *object, uint64_t value)
{
    thread *self = &explorer_engine.threads[explorer_engine.self];
    look *least = &self->looks[0];
    for (int index = 0; index < LOOKS_MOST; index++) {
        look *each = &self->looks[index];
        if (each->site == site && each->object == object && each->value == value) {
            self->spins = ++each->times >= SAME_LOOKS_MOST;
            return;
        }
        least = each->times < least->times ? each : least;
    }
    *least = (look){.site = site, .object = object, .value = value, .times = 1};
}

static int choose_waiter(int waiting)
{
    uint8_t values[EXPLORER_THREADS];
    for (int index = 0; index < waiting; index++) {
        values[index] = (uint8_t)index;
    }
    return explorer_engine.calm ? 0 : explorer_engine.choose('s', explorer_engine.explored, values, waiting);
}

int explorer_wake(const void *address, int count)
{
    int woken = 0;
    int waiting = 0;
    thread *waiters[EXPLORER_THREADS];
    for (int offset = 1; offset <= explorer_engine.count; offset++) {
        thread *each = &explorer_engine.threads[(explorer_engine.self + offset) % explorer_engine.count];
        if (each->state == WAITING && each->address == address) {
            waiters[waiting++] = each;
        }
    }
    int first = count < waiting ? choose_waiter(waiting) : 0; // not all wake: which ones is unspecified
    for (; woken < waiting && woken < count; woken++) {
        waiters[(first + woken) % waiting]->state = READY;
    }
    return woken;
}

// MARK: The table of a schedule

void explorer_note(const explorer_site *site, const char *format, ...)
{
    if (explorer_engine.trace == NULL || explorer_engine.self < 0) {
        return;
    }
    char result[96];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(result, sizeof result, format, arguments);
    va_end(arguments);
    char number[12] = "";
    if (!explorer_engine.calm) {
        (void)snprintf(number, sizeof number, "%u", explorer_engine.explored);
    }
    (void)fprintf(explorer_engine.trace, "%5s  %*s%-10s %-56.56s %-28s %s:%d\n", number,
                  2 * explorer_engine.self, "", explorer_engine.threads[explorer_engine.self].name,
                  site->what, result, explorer_file_name(site->file), site->line);
}

// MARK: The whole

static void run_body(void *unused)
{
    (void)unused;
    explorer_engine.program->body();
}

static void run_all(void)
{
    if (explorer_engine.program->setup != NULL) {
        explorer_engine.program->setup();
    }
    if (explorer_engine.program->body != NULL) {
        (void)explorer_spawn("main", run_body, NULL);
    }
    int first = explorer_engine.count > 0 ? next_thread() : -1;
    if (first >= 0) {
        change_to(first); // returns when all have ended, or one has failed
    }
    explorer_engine.self = -1;
    if (explorer_engine.outcome.failed) {
        return;
    }
    memset(start_of_locals, 0, size_of_locals());
    if (daemons_stay() && explorer_engine.program->check_frozen == NULL) {
        explorer_fail("a program with stopped threads, or with daemons, needs check_frozen");
    }
    if (daemons_stay()) {
        explorer_engine.program->check_frozen(
            explorer_engine.outcome.frozen ? explorer_engine.options->schedule.frozen - 1 : -1);
        return;
    }
    if (explorer_engine.program->check != NULL) {
        explorer_engine.program->check();
    }
    if (explorer_heap_live() != 0 && !explorer_engine.program->leaks) {
        explorer_fail("%zu %s not freed (R1)", explorer_heap_live(),
                      explorer_heap_live() == 1 ? "block was" : "blocks were");
    }
}

// Releases the exceptions that the threads of a failed execution had caught: these threads never reach the
// ends of their handlers. If a destructor fails, the outcome does not change, and the remaining exceptions
// are not released.
static void release_caught(exceptions *thrown)
{
    engine_outcome outcome = explorer_engine.outcome;
    explorer_engine.self = -1;
    explorer_engine.trace = NULL;
    if (setjmp(explorer_engine.given_up) == 0) {
        for (int number = 0; number < explorer_engine.count; number++) {
            *thrown = explorer_engine.threads[number].exceptions;
            while (thrown->caught != NULL) {
                __cxa_end_catch();
            }
        }
    }
    explorer_engine.outcome = outcome;
}

engine_outcome explorer_execute(const explorer_program *program, const explorer_options *options,
                                engine_chooser *choose, FILE *trace)
{
    explorer_engine.program = program;
    explorer_engine.options = options;
    explorer_engine.choose = choose;
    explorer_engine.trace = trace;
    explorer_engine.count = 0;
    explorer_engine.self = -1;
    explorer_engine.calm = explorer_engine.timeless = explorer_engine.out_of_memory = false;
    explorer_engine.until_refused = 0;
    explorer_engine.alarms = 0;
    explorer_engine.explored = 0;
    explorer_engine.progress++; // an execution may have no step
    explorer_engine.now_ns = 0;
    explorer_engine.outcome = (engine_outcome){.failed = false};
    if (size_of_locals() > TLS_MOST) {
        abort();
    }
    memset(start_of_locals, 0, size_of_locals());
    explorer_heap_begin();
    explorer_plain_begin();
    explorer_memory_begin(options->sequentially_consistent || program->sequential);
    exceptions *thrown = __cxa_get_globals != NULL ? __cxa_get_globals() : NULL;
    exceptions outside = thrown != NULL ? *thrown : (exceptions){NULL, 0};
    is_exploring = true;
    if (setjmp(explorer_engine.given_up) == 0) {
        run_all();
    }
    if (thrown != NULL && explorer_engine.outcome.failed) {
        release_caught(thrown);
    }
    is_exploring = false;
    if (thrown != NULL) {
        *thrown = outside;
    }
    explorer_engine.self = -1;
    return explorer_engine.outcome;
}
