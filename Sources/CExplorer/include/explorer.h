/// explorer.h - runs small concurrent programs under every schedule within bounds, on one thread.
///
/// A program's threads are fibres. Every access to a shared word is a step; before each step the explorer may
/// let another thread run, and a load may return any value that the C++20 memory model allows, with two
/// exceptions: stores take effect in program order, and a load never sees a later store (no load buffering).
/// So a property that holds under all schedules here has been checked against stale reads, missing fences and
/// missing wake-ups, but not proved.
///
/// A process explores one program at a time: `explorer_run` and similar functions must not be called while
/// another thread is in one of them. The time of a search grows exponentially with its bounds.
///
/// Sources: loom and CHESS for the search, Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized
/// Scheduler with Probabilistic Guarantees of Finding Bugs (2010) for PCT, Kang, Hur, Lahav, Vafeiadis,
/// Dreyer: A Promising Semantics for Relaxed-Memory Concurrency (2017) for views, Zeller: Yesterday, My
/// Program Worked (1999) for shrinking.

#ifndef EXPLORER_H
#define EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__has_attribute)
#if __has_attribute(swift_attr)
/// For Swift: values of the type may be used on any thread.
#define EXPLORER_SENDABLE __attribute__((swift_attr("@Sendable")))
#endif
#endif
#ifndef EXPLORER_SENDABLE
#define EXPLORER_SENDABLE
#endif

/// The most threads of a program.
#define EXPLORER_THREADS 8

typedef enum {
    explorer_relaxed,
    explorer_acquire,
    explorer_release,
    explorer_acq_rel,
    explorer_seq_cst,
} explorer_order;

/// Converts a `memory_order` of C11 or C++, whose values are, in order: relaxed, consume, acquire, release,
/// acq_rel, seq_cst. `consume` is acquire, as in every compiler.
static inline explorer_order explorer_order_of(int memory_order)
{
    static const explorer_order orders[] = {explorer_relaxed, explorer_acquire, explorer_acquire,
                                            explorer_release, explorer_acq_rel, explorer_seq_cst};
    return orders[memory_order];
}

/// A variable with a separate copy for each thread of the program; initially zero.
#define explorer_thread_local static __attribute__((section("explorer_tls")))

/// The place of a step in the source, for the table of a schedule.
typedef struct {
    const char *file;
    int line;
    const char *what;
} explorer_site;

/// Returns the site for these three values: the same one at every call. The strings must outlive it.
const explorer_site *explorer_site_at(const char *file, int line, const char *what);

// MARK: What a program does

/// Accesses to objects of 1, 2, 4 or 8 bytes, always as a whole, in the low bytes of a word. On the threads
/// of a program each access is a step; in setups and checks it behaves as without threads.
uint64_t explorer_load(const explorer_site *site, const void *object, size_t size, explorer_order order);
void explorer_store(const explorer_site *site, void *object, size_t size, uint64_t value,
                    explorer_order order);

typedef enum {
    EXPLORER_EXCHANGE,
    EXPLORER_ADD,
    EXPLORER_SUBTRACT,
    EXPLORER_OR,
    EXPLORER_AND,
    EXPLORER_XOR
} explorer_change;

/// Returns the previous value.
uint64_t explorer_modify(const explorer_site *site, void *object, size_t size, explorer_change change,
                         uint64_t operand, explorer_order order);
/// `expected` has the object's size. A weak compare-exchange may fail spuriously.
bool explorer_cas(const explorer_site *site, void *object, size_t size, void *expected, uint64_t desired,
                  explorer_order success, explorer_order failure, bool weak);
void explorer_fence(const explorer_site *site, explorer_order order);
/// A seq_cst fence of every thread of the program, in one step. membarrier(2) executes one on each thread, at
/// some moment of the call.
void explorer_fence_all(const explorer_site *site);
/// Initialises an object before it is shared. A read is a data race unless the initialisation happens before
/// it.
void explorer_init(void *object, size_t size, uint64_t value);

/// Plain accesses, which must not race. They are not steps. Accesses in code that clang compiles with
/// -fsanitize-coverage=func,trace-loads,trace-stores need no call: all are watched, except copies of whole
/// structs.
void explorer_plain_read(const explorer_site *site, const void *object);
void explorer_plain_write(const explorer_site *site, void *object);
/// Whether the compiler's reports about the calling thread are ignored: for looking into an object from
/// outside, while no thread uses it. Initially they are not ignored.
void explorer_ignore_plain(bool ignores);

/// False: timed out. It may return spuriously, as futexes do.
bool explorer_futex_wait(const explorer_site *site, const void *word, uint32_t value, uint64_t timeout_ns);
void explorer_futex_wake(const explorer_site *site, const void *word, int count);
/// Lets other threads run first.
void explorer_yield(const explorer_site *site);
/// Lets other threads run until all of them wait: for a wake-up, or for time to pass.
void explorer_settle(const explorer_site *site);
/// Virtual time: it advances when a wait times out, and a little with every call.
uint64_t explorer_now_ns(void);

/// Returns poisoned memory; NULL, by a decision of the schedule, if the program allows it.
void *explorer_allocate(size_t size, size_t alignment);
/// Later accesses fail, and so does the call if an earlier access does not happen before it. The memory is
/// not reused in this execution.
void explorer_free(void *memory);
/// From now on memory is exhausted, or available again.
void explorer_memory_ends(bool ends);
/// Of the following allocations, the one with this number, counted from 1, fails; 0: none does.
void explorer_refuse_memory(uint32_t number);
/// Whether the address lies in the explorer's memory, allocated or not.
bool explorer_owns(const void *memory);
/// Whether the calling thread runs a program: its setup, its threads or its checks.
bool explorer_is_running(void);
/// Whether a thread that touches this address has used up its stack, 128 KB.
bool explorer_is_below_a_stack(const void *address);
/// The number of allocated blocks.
size_t explorer_allocated(void);

/// A mutex in a word of 32 bits: zero while it is free, as initially, else the number of its owner.
void explorer_lock(const explorer_site *site, void *word);
bool explorer_try_lock(const explorer_site *site, void *word);
void explorer_unlock(const explorer_site *site, void *word);

/// Starts a thread, from `setup` or from a thread. The storage of `name` must last.
int explorer_spawn(const char *name, void (*body)(void *argument), void *argument);
/// Waits for a thread's end; all that it did happens before the return.
void explorer_join(const explorer_site *site, int thread);
/// As join, if the thread has ended; else false.
bool explorer_try_join(const explorer_site *site, int thread);
/// The number of the running thread; -1 outside.
int explorer_self(void);
/// Whether a thread waits for a wake-up, for time, or for another thread; or has been stopped forever.
bool explorer_is_waiting(int thread);
/// How many threads were started in this execution.
int explorer_threads(void);

/// Calm: from now on the default schedule, without departures. For reaching the state that a program
/// examines, and for the steps that follow. Initially not calm.
void explorer_calm(bool calm);
/// While time is stopped, a wait with a timeout ends only by a wake-up: for code that must not rely on
/// polling.
void explorer_stop_time(bool stopped);
/// Whether the execution stops a thread forever, at some step. The program must not wait for its threads
/// then.
bool explorer_freezes(void);
/// Allows the thread to wait forever, as a worker without work does, in executions where a thread is stopped
/// forever or daemons stay.
void explorer_daemon(int thread);

/// Ends the execution as a failure.
void explorer_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

// MARK: Programs and searches

typedef struct EXPLORER_SENDABLE {
    const char *name;
    const char *sentence;
    /// Creates the shared objects and spawns the threads, before any of them runs. Called before every
    /// execution; NULL if `body` does that.
    void (*setup)(void);
    /// The first thread, "main"; NULL: `setup` spawns all threads.
    void (*body)(void);
    /// The properties it can violate, by the names of the project's list; or NULL.
    const char *properties;
    /// Checks the final state, when all threads have ended; calls explorer_fail. NULL: nothing to check.
    void (*check)(void);
    /// Checks the final state when the thread `frozen` was stopped forever and all others have ended, or are
    /// waiting daemons; -1: the thread ended before it was stopped. NULL: the program does not claim to make
    /// progress without any one of its threads.
    void (*check_frozen)(int frozen);
    /// The number of departures, in addition to a stopped thread, that is always worth trying, because it is
    /// small.
    uint32_t frozen_bound;
    /// Whether its daemons wait forever in every execution: then check_frozen checks every final state, and
    /// `check` none.
    bool daemons;
    /// Whether memory is sequentially consistent.
    bool sequential;
    /// Whether memory may run out.
    bool allocations_fail;
    /// Whether memory may be left at the end.
    bool leaks;
} explorer_program;

typedef enum { EXPLORER_EXHAUSTIVE, EXPLORER_PCT, EXPLORER_REPLAY } explorer_strategy;

/// A departure from the default. By default the running thread continues, else the next in turn; a load reads
/// the newest value; nothing fails spuriously.
typedef struct {
    uint32_t step;
    // t: thread; r: how many values back; w: a weak compare-exchange, an allocation or a wait fails; s: which
    // of the waiters is woken first
    char kind;
    uint8_t value;
} explorer_deviation;

enum { EXPLORER_DEVIATIONS_MOST = 256 };

typedef struct {
    uint32_t count;
    explorer_deviation at[EXPLORER_DEVIATIONS_MOST];
    int frozen;         // 1 + the thread that stops forever before its step `frozen_at`; 0: none
    uint32_t frozen_at; // counted from 1, without calm steps
} explorer_schedule;

typedef struct {
    explorer_strategy strategy;
    uint32_t bound;           // departures of kind t in an execution (exhaustive); changes of priority (PCT)
    uint32_t stale_bound;     // departures of the other kinds (exhaustive)
    uint64_t executions_most; // 0: no limit
    uint64_t seed;            // PCT
    uint32_t steps_most;      // more are a livelock
    bool sequentially_consistent;
    explorer_schedule schedule; // replay; its frozen thread applies to every strategy
} explorer_options;

typedef struct {
    uint64_t executions;
    uint64_t steps;
    uint32_t steps_longest;
    bool complete; // exhaustive: every schedule within the bounds was run
    bool failed;
    bool frozen; // the frozen thread reached its step in some execution
    int threads; // of the last execution
    char message[256];
    explorer_schedule schedule; // of the failure
} explorer_result;

explorer_options explorer_options_default(void);
/// Grows with every execution, and with every step: for a watchdog, which may call `explorer_fail` from a
/// signal.
uint64_t explorer_progress(void);
explorer_result explorer_run(const explorer_program *program, const explorer_options *options);
/// Explores the program, and then again for each step of each thread, with that thread stopped forever before
/// that step.
explorer_result explorer_run_frozen(const explorer_program *program, const explorer_options *options);
/// A failing schedule from which no single departure can be removed (1-minimal).
explorer_schedule explorer_shrink(const explorer_program *program, const explorer_options *options,
                                  const explorer_result *failure);
/// Shrinks the schedule of a failure that `explorer_run` has found, then searches for a failure with fewer
/// departures, in no more executions than the first search took. (An exhaustive search is depth first, so a
/// failure that it finds need not have the fewest departures.)
void explorer_simplify(const explorer_program *program, const explorer_options *options,
                       explorer_result *failure);
/// Runs a schedule and prints its steps, a column for each thread.
void explorer_print(FILE *file, const explorer_program *program, const explorer_options *options,
                    const explorer_schedule *schedule);

/// The command of a program that explores `programs`: `list`, `run`, `replay`, `shrink`; `--help` names its
/// options. Returns the exit status: 0, all hold; 1, a violation; 64, misuse.
int explorer_main(int count, char **arguments, const explorer_program *programs, size_t program_count);

/// "f1@7,t2@14,r1@20": thread 1 stops forever before its 7th step, thread 2 runs before step 14 of all, the
/// load of step 20 sees the last store but one; calm steps are not counted. "-" when there is none. Returns
/// the length that it would need, as snprintf.
int explorer_schedule_write(const explorer_schedule *schedule, char *text, size_t size);
/// False: the text is not a schedule.
bool explorer_schedule_read(explorer_schedule *schedule, const char *text);

#ifdef __cplusplus
}
#endif

#endif
