// engine.c - one execution: fibres take turns, one step at a time, as the chooser says.
//
//   E1  Before every step the chooser is asked who goes on. So between two steps of a thread any steps of
//       others may lie, and nothing else.
//   E2  A waiting thread goes on only after a wake-up that named its address, when its time is over, or
//       without a reason by a choice. When nobody can go on and not all have ended, a wake-up was lost, or
//       there is a cycle.
//   E3  The program's memory is the heap's, its thread-local variables change with the fibre, its clock is
//       virtual: the same choices give the same execution, to the last address.
//   E4  A thread that looks again and again at what does not change lets others go first, as one that yields
//       does: at its fifth look at the same value, in the same place, since anybody changed something.

#include "engine.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fibre.h"
#include "heap.h"
#include "memory.h"
#include "plain.h"

enum { STACK_SIZE = 128 * 1024, TLS_MOST = 512 };
enum { TIME_OF_A_LOOK_NS = 1000 };
// Where a thread is stopped for ever others may look again for ever, each time their time is over: after so
// many looks they will see nothing new.
enum { ALARMS_MOST = 12 };
// A thread that yields goes on all the same, so that it takes no departure to be faster than others; but not
// for ever.
enum { YIELDS_MOST = 3 };
// E4: what a loop looks at, and how often.
enum { LOOKS_MOST = 8, SAME_LOOKS_MOST = 5 };
enum { STACK_GUARD = 4096 };

typedef enum { ABSENT, READY, WAITING, FROZEN, ENDED } thread_state;

// E4
typedef struct {
    const explorer_site *site;
    const void *object;
    uint64_t value;
    uint32_t times;
} look;

// What the C++ run time keeps of a thread's exceptions.
typedef struct {
    void *caught;
    unsigned int uncaught;
} exceptions;

typedef struct {
    thread_state state;
    const char *name;
    void (*body)(void *);
    void *argument;
    const void *address; // what it waits on
    const explorer_site *site;
    uint64_t deadline_ns; // UINT64_MAX: waits for ever
    bool timed_out;
    bool yields; // lets others go first
    bool settles;
    bool spins;       // E4
    uint32_t yielded; // since another thread ran
    bool daemon;
    bool ignores_plain;
    uint32_t steps; // not calm
    look looks[LOOKS_MOST];
    exceptions exceptions;
    unsigned char locals[TLS_MOST];
} thread;

static struct {
    const explorer_program *program;
    const explorer_options *options;
    engine_chooser *choose;
    FILE *trace;
    fibre outside;
    jmp_buf given_up;
    thread threads[EXPLORER_THREADS];
    int count;
    int self; // -1: outside
    bool calm;
    bool timeless;
    bool out_of_memory;
    uint32_t until_refused; // allocations, that one included; 0: none is
    uint32_t alarms;        // how often nobody could go on but by time
    uint64_t now_ns;
    uint64_t progress;
    uint32_t explored; // steps that are not calm: what a schedule counts
    engine_outcome outcome;
} engine = {.self = -1};

static _Thread_local bool is_exploring; // other threads of the process go on meanwhile
static fibre fibres[EXPLORER_THREADS];  // their stacks stay from execution to execution

extern unsigned char start_of_locals[] __asm__("__start_explorer_tls") __attribute__((weak));
extern unsigned char end_of_locals[] __asm__("__stop_explorer_tls") __attribute__((weak));

// Of the C++ run time, where the program has one.
extern exceptions *__cxa_get_globals(void) __attribute__((weak));

static size_t size_of_locals(void) { return (size_t)(end_of_locals - start_of_locals); }

int explorer_threads(void) { return engine.count; }
int explorer_self(void) { return engine.self; }
bool explorer_is_waiting(int thread) { return engine.threads[thread].state != READY; }
void explorer_memory_ends(bool ends) { engine.out_of_memory = ends; }
void explorer_refuse_memory(uint32_t number) { engine.until_refused = number; }
size_t explorer_allocated(void) { return heap_live(); }
uint64_t explorer_progress(void) { return engine.progress; }

// MARK: The end of an execution

static _Noreturn void leave(void)
{
    if (engine.self < 0) {
        longjmp(engine.given_up, 1);
    }
    fibre_switch(&fibres[engine.self], &engine.outside);
    abort();
}

void explorer_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(engine.outcome.message, sizeof engine.outcome.message, format, arguments);
    va_end(arguments);
    engine.outcome.failed = true;
    if (engine.trace != NULL) {
        (void)fprintf(engine.trace, "=> %s\n", engine.outcome.message);
    }
    leave();
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static _Noreturn void fail_at(const explorer_site *site, const char *what)
{
    explorer_fail("%s, at %s:%d, %s", what, file_name(site->file), site->line, site->what);
}

static void note(const explorer_site *site, const char *format, ...) __attribute__((format(printf, 2, 3)));

// MARK: Whose turn it is

static void forget_looks(thread *each) { memset(each->looks, 0, sizeof each->looks); }

static void change_to(int next)
{
    thread *to = &engine.threads[next];
    exceptions *thrown = __cxa_get_globals != NULL ? __cxa_get_globals() : NULL;
    if (engine.self >= 0) {
        memcpy(engine.threads[engine.self].locals, start_of_locals, size_of_locals());
        engine.threads[engine.self].exceptions = thrown != NULL ? *thrown : (exceptions){NULL, 0};
    }
    if (thrown != NULL) {
        *thrown = to->exceptions;
    }
    forget_looks(to); // others may have changed what it waits for
    fibre *from = engine.self >= 0 ? &fibres[engine.self] : &engine.outside;
    memcpy(start_of_locals, to->locals, size_of_locals());
    engine.self = next;
    to->yielded = 0;
    fibre_switch(from, &fibres[next]);
}

static bool may_time_out(const thread *each)
{
    return each->state == WAITING && each->deadline_ns != UINT64_MAX && !engine.timeless;
}

// In the order in which they are preferred. One that settles goes on only when no other can, but by time.
typedef enum { GOES_ON, YIELDS, SETTLES, TIME_MAY_PASS, STAYS } kind;

static kind kind_of(const thread *each)
{
    if (each->state == READY) {
        return each->yields ? YIELDS : each->settles ? SETTLES : GOES_ON;
    }
    return may_time_out(each) ? TIME_MAY_PASS : STAYS;
}

// The threads in turn after the running one, itself last.
static int candidates(uint8_t *numbers)
{
    uint8_t of_kind[STAYS + 1][EXPLORER_THREADS];
    int counts[STAYS + 1] = {0};
    for (int offset = 1, number = engine.self; offset <= engine.count; offset++) {
        number = number + 1 == engine.count ? 0 : number + 1;
        kind found = kind_of(&engine.threads[number]);
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

static bool daemons_stay(void) { return explorer_freezes() || engine.program->daemons; }

// A thread was stopped for ever, everybody else has ended or is a daemon that waits, and time alone changes
// nothing.
static bool is_at_rest(int next)
{
    bool alarm = engine.threads[next].state == WAITING;
    for (int number = 0; alarm && number < engine.count; number++) {
        alarm = engine.threads[number].state != READY;
    }
    engine.alarms = alarm ? engine.alarms + 1 : engine.alarms;
    return daemons_stay() && engine.alarms > ALARMS_MOST;
}

// E1. -1: nobody can go on.
static int next_thread(void)
{
    uint8_t numbers[EXPLORER_THREADS];
    int count = candidates(numbers);
    if (count == 0) {
        return -1;
    }
    for (int index = 1; index < count; index++) { // the default: the running thread goes on
        const thread *self = engine.self >= 0 ? &engine.threads[engine.self] : NULL;
        if (numbers[index] == engine.self && self->state == READY && !self->yields) {
            memmove(numbers + 1, numbers, (size_t)index);
            numbers[0] = (uint8_t)engine.self;
        }
    }
    int choice = count > 1 && !engine.calm ? engine.choose('t', engine.explored, numbers, count) : 0;
    if (is_at_rest(numbers[choice])) {
        return -1;
    }
    thread *chosen = &engine.threads[numbers[choice]];
    if (chosen->state == WAITING) { // E2
        chosen->timed_out = true;
        chosen->state = READY;
        engine.now_ns = chosen->deadline_ns > engine.now_ns ? chosen->deadline_ns : engine.now_ns;
    }
    return numbers[choice];
}

static _Noreturn void finish(void)
{
    char waiters[192] = "";
    size_t length = 0;
    for (int number = 0; number < engine.count; number++) {
        const thread *each = &engine.threads[number];
        if (each->state == WAITING && !(daemons_stay() && each->daemon)) {
            size_t left = length < sizeof waiters ? sizeof waiters - length : 0;
            length += (size_t)snprintf(waiters + (sizeof waiters - left), left,
                                       "%s%s waits for ever, at %s:%d", length > 0 ? "; " : "", each->name,
                                       file_name(each->site->file), each->site->line);
        }
    }
    if (length > 0) {
        explorer_fail("%s: %s",
                      engine.outcome.frozen ? "not lock-free (S2), a stopped thread is waited for"
                                            : "a lost wake-up or a deadlock (S3)",
                      waiters);
    }
    leave();
}

static void hand_over(void)
{
    int next = next_thread();
    if (next < 0) {
        finish();
    }
    if (next != engine.self) {
        change_to(next);
    }
    engine.threads[engine.self].yields = false;
    engine.threads[engine.self].settles = false;
}

// False: outside of all threads, where nothing is a step.
static bool step(const explorer_site *site)
{
    if (engine.self < 0) {
        return false;
    }
    thread *self = &engine.threads[engine.self];
    self->site = site;
    self->yields = self->yields || self->spins;
    self->spins = false;
    engine.progress++;
    engine.explored += !engine.calm;
    if (++engine.outcome.steps > engine.options->steps_most) {
        fail_at(site, "a livelock (S2)");
    }
    const explorer_schedule *schedule = &engine.options->schedule;
    if (!engine.calm && schedule->frozen == engine.self + 1 && schedule->frozen_at == ++self->steps) {
        self->state = FROZEN;
        engine.outcome.frozen = true;
        note(site, "stops for ever");
    }
    hand_over();
    return true;
}

static void wait_on(const void *address, uint64_t deadline_ns)
{
    thread *self = &engine.threads[engine.self];
    self->state = WAITING;
    self->address = address;
    self->deadline_ns = deadline_ns;
    self->timed_out = false;
    hand_over();
}

static int choose_waiter(int waiting)
{
    uint8_t values[EXPLORER_THREADS];
    for (int index = 0; index < waiting; index++) {
        values[index] = (uint8_t)index;
    }
    return engine.calm ? 0 : engine.choose('s', engine.explored, values, waiting);
}

static int wake(const void *address, int count)
{
    int woken = 0;
    int waiting = 0;
    thread *waiters[EXPLORER_THREADS];
    for (int offset = 1; offset <= engine.count; offset++) {
        thread *each = &engine.threads[(engine.self + offset) % engine.count];
        if (each->state == WAITING && each->address == address) {
            waiters[waiting++] = each;
        }
    }
    int first = count < waiting ? choose_waiter(waiting) : 0; // not all: nobody says which ones
    for (; woken < waiting && woken < count; woken++) {
        waiters[(first + woken) % waiting]->state = READY;
    }
    return woken;
}

static bool choose_failure(void)
{
    static const uint8_t values[] = {0, 1};
    return !engine.calm && engine.choose('w', engine.explored, values, 2) != 0;
}

// MARK: The table of a schedule

static void note(const explorer_site *site, const char *format, ...)
{
    if (engine.trace == NULL || engine.self < 0) {
        return;
    }
    char result[96];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(result, sizeof result, format, arguments);
    va_end(arguments);
    char number[12] = "";
    if (!engine.calm) {
        (void)snprintf(number, sizeof number, "%u", engine.explored);
    }
    (void)fprintf(engine.trace, "%5s  %*s%-10s %-56.56s %-28s %s:%d\n", number, 2 * engine.self, "",
                  engine.threads[engine.self].name, site->what, result, file_name(site->file), site->line);
}

// MARK: Accesses

static void check_address(const explorer_site *site, const void *object, size_t size)
{
    if (!heap_is_live(object, size)) {
        fail_at(site, "an access to freed memory (R3)");
    }
    const vector_clock *known = memory_known(engine.self);
    const char *wrong = memory_is_known(engine.self, object, size);
    if (wrong == NULL) {
        wrong = plain_is_known(engine.self, known, object, size);
    }
    if (wrong != NULL) {
        fail_at(site, wrong);
    }
    memory_tick(engine.self);
    heap_touch(object, engine.self, known->at[engine.self]);
}

static uint64_t plain_load(const void *object, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, object, size);
    return value;
}

// Which of the stores that it may see a load sees: how many before the newest.
static int choose_store(const void *object, size_t size, explorer_order order)
{
    int count = memory_visible(engine.self, object, size, order);
    if (count == 1 || engine.calm) {
        return 0;
    }
    uint8_t values[UINT8_MAX];
    for (int back = 0; back < count; back++) {
        values[back] = (uint8_t)back;
    }
    return engine.choose('r', engine.explored, values, count);
}

// E4
static void note_look(const explorer_site *site, const void *object, uint64_t value)
{
    thread *self = &engine.threads[engine.self];
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

uint64_t explorer_load(const explorer_site *site, const void *object, size_t size, explorer_order order)
{
    if (!step(site)) {
        return plain_load(object, size);
    }
    check_address(site, object, size);
    int back = choose_store(object, size, order);
    uint64_t value = memory_load(engine.self, object, size, order, back);
    note_look(site, object, value);
    note(site,
         back == 0   ? "%#llx"
         : back == 1 ? "%#llx, %d store old"
                     : "%#llx, %d stores old",
         (unsigned long long)value, back);
    return value;
}

void explorer_store(const explorer_site *site, void *object, size_t size, uint64_t value,
                    explorer_order order)
{
    if (!step(site)) {
        memcpy(object, &value, size);
        return;
    }
    check_address(site, object, size);
    memory_store(engine.self, object, size, value, order);
    forget_looks(&engine.threads[engine.self]);
    note(site, "%#llx", (unsigned long long)value);
}

static uint64_t changed(uint64_t value, explorer_change change, uint64_t operand)
{
    switch (change) {
    case EXPLORER_EXCHANGE:
        return operand;
    case EXPLORER_ADD:
        return value + operand;
    case EXPLORER_SUBTRACT:
        return value - operand;
    case EXPLORER_OR:
        return value | operand;
    case EXPLORER_AND:
        return value & operand;
    case EXPLORER_XOR:
        return value ^ operand;
    }
    abort();
}

uint64_t explorer_modify(const explorer_site *site, void *object, size_t size, explorer_change change,
                         uint64_t operand, explorer_order order)
{
    if (!step(site)) {
        uint64_t before = plain_load(object, size);
        uint64_t after = changed(before, change, operand);
        memcpy(object, &after, size);
        return before;
    }
    check_address(site, object, size);
    uint64_t before = plain_load(object, size);
    uint64_t after = changed(before, change, operand);
    memory_modify(engine.self, object, size, after, order);
    if (after == before) { // as a spinlock by an exchange does
        note_look(site, object, before);
    } else {
        forget_looks(&engine.threads[engine.self]);
    }
    note(site, "%#llx -> %#llx", (unsigned long long)before, (unsigned long long)after);
    return before;
}

bool explorer_cas(const explorer_site *site, void *object, size_t size, void *expected, uint64_t desired,
                  explorer_order success, explorer_order failure, bool weak)
{
    uint64_t wanted = plain_load(expected, size);
    if (!step(site)) {
        bool equal = plain_load(object, size) == wanted;
        memcpy(equal ? object : expected, equal ? (const void *)&desired : object, size);
        return equal;
    }
    check_address(site, object, size);
    int back = choose_store(object, size, failure);
    bool stale = memory_peek(object, size, back) == wanted && back > 0; // a success replaces the newest
    back = stale ? 0 : back;
    bool equal = memory_peek(object, size, back) == wanted;
    if (equal && !(weak && choose_failure())) {
        memory_modify(engine.self, object, size, desired, success);
        forget_looks(&engine.threads[engine.self]);
        note(site, "%#llx -> %#llx", (unsigned long long)wanted, (unsigned long long)desired);
        return true;
    }
    uint64_t seen = memory_load(engine.self, object, size, failure, back);
    memcpy(expected, &seen, size);
    note_look(site, object, seen);
    note(site, "fails: %#llx", (unsigned long long)seen);
    return false;
}

void explorer_fence(const explorer_site *site, explorer_order order)
{
    if (step(site)) {
        memory_fence(engine.self, order);
        note(site, "%s", "");
    }
}

void explorer_init(void *object, size_t size, uint64_t value)
{
    if (!heap_is_live(object, size)) {
        explorer_fail("memory that is none is initialised (R3)");
    }
    memory_init(engine.self, object, size, value);
}

// NULL, or what is wrong.
static const char *plain(const void *object, size_t size, bool writes)
{
    if (!heap_is_live(object, size)) {
        return "a plain access to memory that was freed, or is none (R3)";
    }
    const vector_clock *known = memory_known(engine.self);
    uint32_t now = plain_time(engine.self, known);
    heap_touch(object, engine.self, now);
    heap_touch((const unsigned char *)object + size - 1, engine.self, now);
    const char *wrong = memory_is_stored_to(engine.self, object);
    return wrong != NULL ? wrong : plain_access(engine.self, known, object, size, writes);
}

static void plain_at(const explorer_site *site, const void *object, bool writes)
{
    if (engine.self < 0) {
        return;
    }
    const char *wrong = plain(object, 1, writes);
    if (wrong != NULL) {
        fail_at(site, wrong);
    }
    note(site, "%s", writes ? "plain write" : "plain read");
}

void explorer_plain_read(const explorer_site *site, const void *object) { plain_at(site, object, false); }
void explorer_plain_write(const explorer_site *site, void *object) { plain_at(site, object, true); }

void explorer_ignore_plain(bool ignores)
{
    if (engine.self >= 0) {
        engine.threads[engine.self].ignores_plain = ignores;
    }
}

static bool is_of_thread(const void *address)
{
    return (uintptr_t)address - (uintptr_t)start_of_locals < size_of_locals();
}

// Whether it lies where the system keeps thread-local variables, which all threads of a program share here.
static bool is_thread_local(const void *address)
{
    static _Thread_local char one;
    const uintptr_t near = 4096;
    return (uintptr_t)address - ((uintptr_t)&one - near) < 2 * near;
}

// The program's static variables, where the linker says so.
extern unsigned char start_of_statics[] __asm__("__data_start") __attribute__((weak));
extern unsigned char end_of_statics[] __asm__("_end") __attribute__((weak));

// What the C library allocates for itself, an exception for instance, is not watched: it comes back, and
// nobody says so.
static bool is_known_memory(const void *address)
{
    uintptr_t place = (uintptr_t)address;
    bool known = heap_has(address) || is_thread_local(address) || start_of_statics == NULL ||
                 place - (uintptr_t)start_of_statics < (size_t)(end_of_statics - start_of_statics);
    for (int number = 0; !known && number < engine.count; number++) {
        known = place - (uintptr_t)fibres[number].stack < fibres[number].size;
    }
    return known;
}

void engine_watch(const void *address, size_t size, bool writes, const void *place)
{
    if (engine.self < 0 || size == 0 || engine.threads[engine.self].ignores_plain || is_of_thread(address) ||
        !is_known_memory(address)) {
        return;
    }
    const char *wrong = plain(address, size, writes);
    if (wrong != NULL) {
        Dl_info module = {.dli_fname = "?"};
        (void)dladdr(place, &module);
        const explorer_site *last = engine.threads[engine.self].site;
        char line[16] = "";
        if (last != NULL) {
            (void)snprintf(line, sizeof line, ":%d", last->line);
        }
        explorer_fail("%s%s, by %s at %s+%#zx, after %s%s", wrong,
                      is_thread_local(address) ? " (_Thread_local: use explorer_thread_local)" : "",
                      engine.threads[engine.self].name, file_name(module.dli_fname),
                      (uintptr_t)place - (uintptr_t)module.dli_fbase,
                      last != NULL ? file_name(last->file) : "its begin", line);
    }
}

// MARK: Waiting

bool explorer_futex_wait(const explorer_site *site, const void *word, uint32_t value, uint64_t timeout_ns)
{
    if (!step(site)) {
        explorer_fail("a wait outside of all threads, at %s:%d", file_name(site->file), site->line);
    }
    if (!heap_is_live(word, sizeof value)) {
        fail_at(site, "a wait on freed memory (R3)");
    }
    if ((uint32_t)plain_load(word, sizeof value) != value) {
        note(site, "the value has changed");
        return true;
    }
    if (timeout_ns == 0) {
        note(site, "no time");
        return false;
    }
    if (choose_failure()) {
        note(site, "returns without a reason");
        return true;
    }
    note(site, "sleeps");
    wait_on(word, timeout_ns == UINT64_MAX ? UINT64_MAX : engine.now_ns + timeout_ns);
    bool timed_out = engine.threads[engine.self].timed_out;
    note(site, timed_out ? "timed out" : "woken");
    return !timed_out;
}

void explorer_futex_wake(const explorer_site *site, const void *word, int count)
{
    if (step(site)) {
        int woken = wake(word, count);
        note(site, "wakes %d", woken);
    }
}

void explorer_yield(const explorer_site *site)
{
    if (engine.self >= 0) {
        thread *self = &engine.threads[engine.self];
        self->yields = ++self->yielded >= YIELDS_MOST;
        (void)step(site);
        note(site, "%s", "");
    }
}

void explorer_settle(const explorer_site *site)
{
    if (engine.self >= 0) {
        engine.threads[engine.self].settles = true;
        (void)step(site);
        note(site, "%s", "");
    }
}

void explorer_calm(bool calm) { engine.calm = calm; }

void explorer_stop_time(bool stopped) { engine.timeless = stopped; }

bool explorer_freezes(void) { return engine.options->schedule.frozen != 0; }

void explorer_daemon(int number) { engine.threads[number].daemon = true; }

uint64_t explorer_now_ns(void) { return engine.now_ns += TIME_OF_A_LOOK_NS; }

// The thread that has the mutex, counted from 1; 0: it is free.
static uint64_t owner_of(const explorer_site *site, const void *word)
{
    check_address(site, word, sizeof(uint32_t));
    uint64_t owner = plain_load(word, sizeof(uint32_t));
    if (owner > EXPLORER_THREADS) {
        fail_at(site, "a mutex that was not initialised (R3)");
    }
    return owner;
}

static void take_mutex(const explorer_site *site, void *word)
{
    memory_modify(engine.self, word, sizeof(uint32_t), (uint64_t)engine.self + 1, explorer_acquire);
    forget_looks(&engine.threads[engine.self]);
    note(site, "locked");
}

void explorer_lock(const explorer_site *site, void *word)
{
    if (!step(site)) {
        return;
    }
    if (owner_of(site, word) == (uint64_t)engine.self + 1) {
        fail_at(site, "a mutex is locked by the thread that has it (S3)");
    }
    for (uint64_t owner; (owner = owner_of(site, word)) != 0;) {
        note(site, "waits for %s", engine.threads[owner - 1].name);
        wait_on(word, UINT64_MAX);
    }
    take_mutex(site, word);
}

bool explorer_try_lock(const explorer_site *site, void *word)
{
    if (!step(site)) {
        return true;
    }
    uint64_t owner = owner_of(site, word);
    if (owner != 0) {
        note_look(site, word, owner);
        note(site, "fails, %s has it", engine.threads[owner - 1].name);
        return false;
    }
    take_mutex(site, word);
    return true;
}

void explorer_unlock(const explorer_site *site, void *word)
{
    if (!step(site)) {
        return;
    }
    uint64_t owner = owner_of(site, word);
    if (owner != (uint64_t)engine.self + 1) {
        fail_at(site, owner == 0 ? "a mutex is unlocked that nobody has (R3)"
                                 : "a mutex is unlocked that another thread has (R3)");
    }
    memory_store(engine.self, word, sizeof(uint32_t), 0, explorer_release);
    forget_looks(&engine.threads[engine.self]);
    (void)wake(word, EXPLORER_THREADS);
    note(site, "unlocked");
}

// MARK: Memory

void *explorer_allocate(size_t size, size_t alignment)
{
    bool refused = engine.until_refused != 0 && --engine.until_refused == 0;
    if (refused || engine.out_of_memory ||
        (engine.program->allocations_fail && engine.self >= 0 && choose_failure())) {
        return NULL;
    }
    void *memory = heap_allocate(size, alignment);
    if (memory == NULL) {
        explorer_fail("the program needs more memory than the explorer has");
    }
    return memory;
}

bool explorer_owns(const void *memory) { return heap_has(memory); }
bool explorer_is_running(void) { return is_exploring; }

void explorer_free(void *memory)
{
    if (memory == NULL) {
        return;
    }
    if (engine.self >= 0 && heap_is_in_use(memory, engine.self, memory_known(engine.self))) {
        explorer_fail("memory is freed by %s while another thread may still use it (R3)",
                      engine.threads[engine.self].name);
    }
    if (!heap_free(memory)) {
        explorer_fail("freed twice, or never allocated (R3)");
    }
}

// MARK: Threads

static void run_thread(void)
{
    engine.threads[engine.self].yields = false;
    engine.threads[engine.self].body(engine.threads[engine.self].argument);
    memory_tick(engine.self); // its end is behind its last plain access
    thread *self = &engine.threads[engine.self];
    self->state = ENDED;
    (void)wake(self, EXPLORER_THREADS);
    hand_over();
    abort(); // nobody goes on with a thread that has ended
}

// Above a page that may not be touched.
static void *allocate_stack(void)
{
    void *memory = mmap(NULL, STACK_SIZE + STACK_GUARD, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, STACK_GUARD, PROT_NONE) != 0) {
        return NULL;
    }
    return (unsigned char *)memory + STACK_GUARD;
}

bool explorer_is_below_a_stack(const void *address)
{
    for (int number = 0; number < EXPLORER_THREADS; number++) {
        uintptr_t stack = (uintptr_t)fibres[number].stack;
        if (stack != 0 && (uintptr_t)address < stack && (uintptr_t)address >= stack - STACK_GUARD) {
            return true;
        }
    }
    return false;
}

int explorer_spawn(const char *name, void (*body)(void *argument), void *argument)
{
    if (engine.count == EXPLORER_THREADS) {
        explorer_fail("more than %d threads", EXPLORER_THREADS);
    }
    int number = engine.count++;
    fibre *own = &fibres[number];
    if (own->stack == NULL && (own->stack = allocate_stack()) == NULL) {
        explorer_fail("no memory for a stack");
    }
    own->size = STACK_SIZE;
    fibre_begin(own, run_thread);
    thread *added = &engine.threads[number];
    *added = (thread){.state = READY, .name = name, .body = body, .argument = argument};
    memory_spawn(engine.self, number);
    return number;
}

void explorer_join(const explorer_site *site, int number)
{
    if (step(site)) {
        thread *other = &engine.threads[number];
        while (other->state != ENDED) {
            note(site, "waits for %s", other->name);
            wait_on(other, UINT64_MAX);
        }
        memory_join(engine.self, number);
        note(site, "joined %s", other->name);
    }
}

bool explorer_try_join(const explorer_site *site, int number)
{
    bool ended = !step(site) || engine.threads[number].state == ENDED;
    if (ended && engine.self >= 0) {
        memory_join(engine.self, number);
    }
    note(site, ended ? "ended" : "not ended");
    return ended;
}

// MARK: The whole

static void run_body(void *unused)
{
    (void)unused;
    engine.program->body();
}

static void run_all(void)
{
    if (engine.program->setup != NULL) {
        engine.program->setup();
    }
    if (engine.program->body != NULL) {
        (void)explorer_spawn("main", run_body, NULL);
    }
    int first = engine.count > 0 ? next_thread() : -1;
    if (first >= 0) {
        change_to(first); // comes back when all have ended, or one has failed
    }
    engine.self = -1;
    if (engine.outcome.failed) {
        return;
    }
    memset(start_of_locals, 0, size_of_locals());
    if (daemons_stay() && engine.program->check_frozen == NULL) {
        explorer_fail("a program with stopped threads, or with daemons, needs check_frozen");
    }
    if (daemons_stay()) {
        engine.program->check_frozen(engine.outcome.frozen ? engine.options->schedule.frozen - 1 : -1);
        return;
    }
    if (engine.program->check != NULL) {
        engine.program->check();
    }
    if (heap_live() != 0 && !engine.program->leaks) {
        explorer_fail("%zu %s not freed (R1)", heap_live(), heap_live() == 1 ? "block was" : "blocks were");
    }
}

engine_outcome engine_execute(const explorer_program *program, const explorer_options *options,
                              engine_chooser *choose, FILE *trace)
{
    engine.program = program;
    engine.options = options;
    engine.choose = choose;
    engine.trace = trace;
    engine.count = 0;
    engine.self = -1;
    engine.calm = engine.timeless = engine.out_of_memory = false;
    engine.until_refused = 0;
    engine.alarms = 0;
    engine.explored = 0;
    engine.progress++; // an execution may have no step
    engine.now_ns = 0;
    engine.outcome = (engine_outcome){.failed = false};
    if (size_of_locals() > TLS_MOST) {
        abort();
    }
    memset(start_of_locals, 0, size_of_locals());
    heap_begin();
    plain_begin();
    memory_begin(options->sequentially_consistent || program->sequential);
    is_exploring = true;
    if (setjmp(engine.given_up) == 0) {
        run_all();
    }
    is_exploring = false;
    engine.self = -1;
    return engine.outcome;
}
