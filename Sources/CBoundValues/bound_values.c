// bound_values.c - the experiment that finds out where the Swift runtime keeps task-local values.
//
// The experiment reads memory that belongs to the running task or to the calling thread, and follows a word
// only if it was 0 while no value was bound, and became an address when the first one was bound.

#include "CBoundValues.h"

#if defined(__linux__)

#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { TASK_WORDS = 64, THREAD_WORDS = 4096 };

struct bound_values_probe {
    const char *base;
    size_t words;
    // The word holds the address of the head, which does not change.
    bool is_indirect;
    uintptr_t seen[];
};

static bound_values_probe *begin(const void *base, size_t words, bool is_indirect)
{
    bound_values_probe *probe = malloc(sizeof *probe + 3 * words * sizeof(uintptr_t));
    if (probe != NULL) {
        *probe = (bound_values_probe){.base = base, .words = words, .is_indirect = is_indirect};
    }
    return probe;
}

bound_values_probe *bound_values_probe_task(void)
{
    void *task = swift_task_getCurrent();
    if (task == NULL) {
        return NULL;
    }
    size_t words = malloc_usable_size(task) / sizeof(uintptr_t);
    return begin(task, words < TASK_WORDS ? words : TASK_WORDS, false);
}

typedef struct {
    uintptr_t inside;
    unsigned long module;
    size_t size;
} search;

static int look_into(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    search *wanted = context;
    bool is_it = false;
    size_t tls = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && wanted->inside >= start && wanted->inside - start < part->p_memsz) {
            is_it = true;
        } else if (part->p_type == PT_TLS) {
            tls = part->p_memsz;
        }
    }
    if (is_it) {
        wanted->module = info->dlpi_tls_modid;
        wanted->size = tls;
    }
    return is_it;
}

bound_values_probe *bound_values_probe_thread(const void *inside, unsigned long *module)
{
    search wanted = {.inside = (uintptr_t)inside};
    if (swift_task_getCurrent() != NULL || dl_iterate_phdr(look_into, &wanted) == 0 || wanted.module == 0 ||
        wanted.size / sizeof(uintptr_t) > THREAD_WORDS) {
        return NULL;
    }
    *module = wanted.module;
    unsigned long place[2] = {wanted.module, 0};
    return begin(__tls_get_addr(place), wanted.size / sizeof(uintptr_t), true);
}

void bound_values_look(bound_values_probe *probe, int bound)
{
    memcpy(probe->seen + (size_t)bound * probe->words, probe->base, probe->words * sizeof(uintptr_t));
    // An indirect head is followed now: later it is gone.
    if (!probe->is_indirect || bound == 0) {
        return;
    }
    for (size_t i = 0; i < probe->words; i++) {
        uintptr_t *word = &probe->seen[(size_t)bound * probe->words + i];
        bool is_address = probe->seen[i] == 0 && *word >= 4096 && *word % sizeof(uintptr_t) == 0;
        *word = is_address ? *(const uintptr_t *)*word : 0;
    }
}

// Whether an item looks like one whose value equals its key.
static bool is_item(const bound_values_item *item, uintptr_t next, uintptr_t key, const void *type)
{
    return item->next == next && item->key == key && item->type == type &&
           *(const uintptr_t *)(item + 1) == key;
}

static bool looks_like_item(uintptr_t address) { return address >= 4096 && address % sizeof(uintptr_t) == 0; }

long bound_values_end(bound_values_probe *probe, uintptr_t first, uintptr_t second, const void *type)
{
    // Two values are still bound.
    long found = -1;
    for (size_t i = 0; i < probe->words; i++) {
        uintptr_t none = probe->seen[i];
        uintptr_t one = probe->seen[probe->words + i];
        uintptr_t two = probe->seen[2 * probe->words + i];
        if (none != 0 || one == two || !looks_like_item(one) || !looks_like_item(two)) {
            continue;
        }
        if (!is_item((const bound_values_item *)two, one, second, type) ||
            !is_item((const bound_values_item *)one, 0, first, type)) {
            continue;
        }
        if (found != -1) {
            found = -1; // ambiguous: a second match
            break;
        }
        found = (long)(i * sizeof(uintptr_t));
    }
    free(probe);
    return found;
}

#endif
