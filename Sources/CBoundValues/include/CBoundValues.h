// CBoundValues.h - where the Swift runtime keeps the task-local values that are bound: in the task that
// runs here, or, outside of tasks, in a word of the thread. Both places are found by experiment, see
// BoundValues.swift.

#ifndef CBOUNDVALUES_H
#define CBOUNDVALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// One bound value: what the experiment has made sure of. Or a link to the values of another task, which
/// has no key.
typedef struct bound_values_item {
    /// The address of the one below; in the last bits of a link what it is, where a value has 0.
    uintptr_t next;
    /// The address of the `TaskLocal`.
    uintptr_t key;
    /// The type of the value, which follows as soon as its alignment allows.
    const void *type;
} bound_values_item;

/// Where the first item is.
typedef struct bound_values_places {
    /// In a task, from its beginning.
    size_t in_task;
    /// The word of a thread that holds the address of the first item's address: its module, its offset
    /// there.
    unsigned long in_thread[2];
} bound_values_places;

/// Words of memory, as they were with 0, 1 and 2 values bound.
typedef struct bound_values_probe bound_values_probe;

/// Begins an experiment with the running task, or, outside of tasks, with this thread's words of the
/// object that holds the address `inside`; null: there is nothing to look at.
bound_values_probe *bound_values_probe_task(void);
bound_values_probe *bound_values_probe_thread(const void *inside, unsigned long *module);
/// Looks at the words, with so many values bound.
void bound_values_look(bound_values_probe *probe, int bound);
/// Ends it.
///
/// Returns the offset, in bytes, of the only word that behaved like the head of a list with these keys;
/// or -1. Each value is as its key.
long bound_values_end(bound_values_probe *probe, uintptr_t first, uintptr_t second, const void *type);

void *swift_task_getCurrent(void) __attribute__((swiftcall));
#if defined(__linux__)
// The dynamic linker's, of the platform's binary interface.
void *__tls_get_addr(const unsigned long *module_and_offset);

/// The first of the values that are bound here, or null.
static inline const bound_values_item *bound_values_first(const bound_values_places *places)
{
    const char *task = (const char *)swift_task_getCurrent();
    if (task != NULL) {
        return *(const bound_values_item *const *)(task + places->in_task);
    }
    const bound_values_item **storage = *(const bound_values_item ***)__tls_get_addr(places->in_thread);
    return storage == NULL ? NULL : *storage;
}

/// The next one that is a value, or null.
static inline const bound_values_item *bound_values_value(const bound_values_item *item)
{
    while (item != NULL && (item->next & 7) != 0) {
        item = (const bound_values_item *)(item->next & ~(uintptr_t)7);
    }
    return item;
}

/// Where the first item is for the task that runs here, or, outside of tasks, for this thread.
typedef struct bound_values_here {
    const void *task;
    const void *head;
} bound_values_here;

static inline bound_values_here bound_values_find(const bound_values_places *places)
{
    const char *task = (const char *)swift_task_getCurrent();
    const void *head = task != NULL ? task + places->in_task : __tls_get_addr(places->in_thread);
    return (bound_values_here){.task = task, .head = head};
}

/// Whether no value is bound there. On the same thread. False, too: another task runs here now.
static inline bool bound_values_are_none(const bound_values_here *here)
{
    const void *task = swift_task_getCurrent();
    if (task != here->task) {
        return false;
    }
    const bound_values_item *const *head = (const bound_values_item *const *)here->head;
    if (task == NULL) {
        head = *(const bound_values_item *const *const *)here->head;
    }
    return head == NULL || bound_values_value(*head) == NULL;
}

/// The value below one.
static inline const bound_values_item *bound_values_below(const bound_values_item *item)
{
    return bound_values_value((const bound_values_item *)(item->next & ~(uintptr_t)7));
}
#endif

#endif
