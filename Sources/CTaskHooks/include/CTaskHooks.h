// CTaskHooks.h - routes the jobs of one thread to an executor that their tasks do not name: jobs of
// unstructured tasks, of detached ones, and of the main actor. Uses the hooks that the Swift runtime has for
// this.

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

/// Takes the jobs that a thread enqueues for the default executor, and stands in for its main actor.
typedef struct task_hooks_taker {
    void *context;
    void (*take)(void *context, void *job);
    task_hooks_executor main_executor;
    /// The executor that adopted tasks prefer.
    task_hooks_executor task_executor;
} task_hooks_taker;

/// Sets the runtime's hooks, once per process; hooks that were set before are called for other threads.
///
/// Returns false: this runtime has no such hooks.
bool task_hooks_install(void);
/// From now on `taker` takes the jobs that the calling thread enqueues; null: no taker.
void task_hooks_set_taker(const task_hooks_taker *taker);
/// The taker of the calling thread, or null.
const task_hooks_taker *task_hooks_get_taker(void);

/// Learns, from the job of a task that has not begun and has no executor preference, how to recognise such
/// jobs; null: forgets it. Until then, no task is adopted.
void task_hooks_learn(void *job);
/// Makes a task that has not begun prefer the executor of the calling thread's taker, until the task ends.
/// Called before the task's first step, which must run on this thread.
///
/// Returns false: the task has begun, or how to recognise such tasks is not known.
bool task_hooks_adopt(void *job);
/// Enqueues a job as if there were no hooks.
void task_hooks_enqueue_global(void *job);

/// The number, unique in the process, of the task that a job belongs to; 0: the job belongs to an actor.
uint64_t task_hooks_task_of(void *job);
/// Whether a job is the one by which `Task.yield()` resumes its task.
bool task_hooks_is_yield(void *job);
/// The address at which the task of a job resumes when the job is run. Only for a job that is about to be
/// run.
const void *task_hooks_resume_address(void *job);
/// The name of the function at an address, as it is in the source; null: unknown. The caller frees it.
char *task_hooks_function_at(const void *address);

#endif
