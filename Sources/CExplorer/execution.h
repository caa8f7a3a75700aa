// execution.h - the state of an execution, for the files that implement it.

#ifndef EXPLORER_EXECUTION_H
#define EXPLORER_EXECUTION_H

#include <setjmp.h>

#include "engine.h"
#include "fibre.h"

enum { STACK_SIZE = 128 * 1024, TLS_MOST = 512 };
// E4: what a loop looks at.
enum { LOOKS_MOST = 8 };

typedef enum { ABSENT, READY, WAITING, FROZEN, ENDED } thread_state;

// E4
typedef struct {
    const explorer_site *site;
    const void *object;
    uint64_t value;
    uint32_t times;
} look;

// A thread's exceptions, as the C++ run time keeps them.
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
    uint64_t deadline_ns; // UINT64_MAX: waits forever
    bool timed_out;
    bool yields; // lets other threads run first
    bool settles;
    bool spins;       // E4
    uint32_t yielded; // since another thread ran
    bool daemon;
    bool ignores_plain;
    uint32_t steps; // except calm ones
    look looks[LOOKS_MOST];
    exceptions exceptions;
    unsigned char locals[TLS_MOST];
} thread;

typedef struct {
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
    uint32_t until_refused; // allocations, the refused one included; 0: none is refused
    uint32_t alarms;        // how often only time could let a thread continue
    uint64_t now_ns;
    uint64_t progress;
    uint32_t explored; // steps that are not calm: what a schedule counts
    engine_outcome outcome;
} execution;

/// One for the process.
extern execution explorer_engine;
/// The stacks of its threads, which are kept from execution to execution.
extern fibre explorer_fibres[EXPLORER_THREADS];

// MARK: Steps

/// Begins a step, before which other threads may run (E1). False: outside all threads, where nothing is a
/// step.
bool explorer_step(const explorer_site *site);
/// Waits until a wake-up of the address, or until the deadline (E2).
void explorer_wait_on(const void *address, uint64_t deadline_ns);
/// Wakes at most `count` threads that wait there; which ones is a choice. Returns how many.
int explorer_wake(const void *address, int count);
/// Lets another thread run, and returns when the caller's turn has come.
void explorer_hand_over(void);
/// Whether an operation that may fail spuriously does so here: a choice.
bool explorer_fails_here(void);

// MARK: What is seen of them

/// The running thread has changed something (E4).
void explorer_forget_looks(void);
/// The running thread has read an object, and changed nothing (E4).
void explorer_note_look(const explorer_site *site, const void *object, uint64_t value);
/// A line of the table of a schedule.
void explorer_note(const explorer_site *site, const char *format, ...) __attribute__((format(printf, 2, 3)));
/// Fails unless the running thread may access the object as a shared word.
void explorer_check_address(const explorer_site *site, const void *object, size_t size);
void explorer_fail_at(const explorer_site *site, const char *what) __attribute__((noreturn));
/// The last part of a path.
const char *explorer_file_name(const char *path);

#endif
