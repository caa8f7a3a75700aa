// CTaskHooks.h - how the jobs of one thread come to an executor that their tasks don't name: unstructured
// tasks, detached ones, and the main actor's. By the hooks that the Swift runtime has for this.

#ifndef CTASKHOOKS_H
#define CTASKHOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// An executor of actors, as the runtime passes it.
typedef struct task_hooks_executor {
    void *identity;
    uintptr_t implementation;
} task_hooks_executor;

/// Takes what a thread enqueues for the default executor, and stands in for its main actor.
typedef struct task_hooks_taker {
    void *context;
    void (*take)(void *context, void *job);
    task_hooks_executor main_executor;
    /// The executor that adopted tasks prefer.
    task_hooks_executor task_executor;
} task_hooks_taker;

/// Sets the runtime's hooks, once in a process; those that were set before are called for other threads.
///
/// Returns false: this runtime has no such hooks.
bool task_hooks_install(void);
/// From now on `taker` takes what the calling thread enqueues; null: nothing does.
void task_hooks_set_taker(const task_hooks_taker *taker);
/// The taker of the calling thread, or null.
const task_hooks_taker *task_hooks_get_taker(void);

/// Learns from the job of a task that has not begun, and has no preference of executor, how such jobs are
/// told; null: forgets it. Before that, none is adopted.
void task_hooks_learn(void *job);
/// Has a task that has not begun prefer the executor of the calling thread's taker, until it has ended.
/// Before its first step, which has to be on this thread.
///
/// Returns false: it has begun, or how to do that is not known.
bool task_hooks_adopt(void *job);
/// Enqueues a job as if there were no hooks.
void task_hooks_enqueue_global(void *job);

/// The number of the task that a job belongs to, which no other task of the process has; 0: it belongs to
/// an actor.
uint64_t task_hooks_task_of(void *job);
/// Whether a job is that by which `Task.yield()` lets its task go on.
bool task_hooks_is_yield(void *job);
/// Where the task of a job goes on when the job is run. Only for a job that is about to be run.
const void *task_hooks_resume_address(void *job);
/// The name of the function at an address, as it is in the source; null: unknown. The caller frees it.
char *task_hooks_function_at(const void *address);

#endif
