// CBoundValues.h - where the Swift runtime keeps the bound task-local values: in the running task, or,
// outside tasks, in a word of the thread. Both places are found by experiment; see BoundValues.swift.

#ifndef CBOUNDVALUES_H
#define CBOUNDVALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// One bound value, in the layout that the experiment has verified; or a link to the values of another task,
/// which has no key.
typedef struct bound_values_item {
    /// The address of the item below. The low bits are 0 in a value; in a link they state its kind.
    uintptr_t next;
    /// The address of the `TaskLocal`.
    uintptr_t key;
    /// The type of the value. The value follows, at the next address that its alignment allows.
    const void *type;
} bound_values_item;

/// Where the first item is.
typedef struct bound_values_places {
    /// In a task: the offset from its beginning.
    size_t in_task;
    /// In a thread: the word that holds the address of the first item's address, by its module and its offset
    /// there.
    unsigned long in_thread[2];
} bound_values_places;

/// Snapshots of words of memory, with 0, 1 and 2 values bound.
typedef struct bound_values_probe bound_values_probe;

/// Begins an experiment with the running task, or, outside tasks, with this thread's words of the loaded
/// object that contains the address `inside`. Null: there is nothing to examine.
bound_values_probe *bound_values_probe_task(void);
bound_values_probe *bound_values_probe_thread(const void *inside, unsigned long *module);
/// Records the words, with `bound` values bound.
void bound_values_look(bound_values_probe *probe, int bound);
/// Ends the experiment.
///
/// Returns the offset, in bytes, of the only word that behaved like the head of a list with these keys;
/// or -1. Each value must equal its key.
long bound_values_end(bound_values_probe *probe, uintptr_t first, uintptr_t second, const void *type);

void *swift_task_getCurrent(void) __attribute__((swiftcall));
#if defined(__linux__)
// Provided by the dynamic linker, part of the platform's ABI.
void *__tls_get_addr(const unsigned long *module_and_offset);

/// The first of the values bound here, or null.
static inline const bound_values_item *bound_values_first(const bound_values_places *places)
{
    const char *task = (const char *)swift_task_getCurrent();
    if (task != NULL) {
        return *(const bound_values_item *const *)(task + places->in_task);
    }
    const bound_values_item **storage = *(const bound_values_item ***)__tls_get_addr(places->in_thread);
    return storage == NULL ? NULL : *storage;
}

/// The first value from `item` on, or null.
static inline const bound_values_item *bound_values_value(const bound_values_item *item)
{
    while (item != NULL && (item->next & 7) != 0) {
        item = (const bound_values_item *)(item->next & ~(uintptr_t)7);
    }
    return item;
}

/// Where the first item is for the running task, or, outside tasks, for this thread.
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

/// Whether no value is bound there. Called on the same thread. Also false if another task runs here now.
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

/// The value below `item`.
static inline const bound_values_item *bound_values_below(const bound_values_item *item)
{
    return bound_values_value((const bound_values_item *)(item->next & ~(uintptr_t)7));
}
#endif

#endif
