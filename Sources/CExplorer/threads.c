// threads.c - threads of the explored program, and their stacks.

#include <stdlib.h>
#include <sys/mman.h>

#include "execution.h"
#include "memory.h"

enum { STACK_GUARD = 4096 };

static void run_thread(void)
{
    explorer_engine.threads[explorer_engine.self].yields = false;
    explorer_engine.threads[explorer_engine.self].body(
        explorer_engine.threads[explorer_engine.self].argument);
    explorer_memory_tick(explorer_engine.self); // its end comes after its last plain access
    thread *self = &explorer_engine.threads[explorer_engine.self];
    self->state = ENDED;
    (void)explorer_wake(self, EXPLORER_THREADS);
    explorer_hand_over();
    abort(); // a thread that has ended is never resumed
}

// A stack above a guard page.
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
        uintptr_t stack = (uintptr_t)explorer_fibres[number].stack;
        if (stack != 0 && (uintptr_t)address < stack && (uintptr_t)address >= stack - STACK_GUARD) {
            return true;
        }
    }
    return false;
}

int explorer_spawn(const char *name, void (*body)(void *argument), void *argument)
{
    if (explorer_engine.count == EXPLORER_THREADS) {
        explorer_fail("more than %d threads", EXPLORER_THREADS);
    }
    int number = explorer_engine.count++;
    fibre *own = &explorer_fibres[number];
    if (own->stack == NULL && (own->stack = allocate_stack()) == NULL) {
        explorer_fail("no memory for a stack");
    }
    own->size = STACK_SIZE;
    explorer_fibre_begin(own, run_thread);
    thread *added = &explorer_engine.threads[number];
    *added = (thread){.state = READY, .name = name, .body = body, .argument = argument};
    explorer_memory_spawn(explorer_engine.self, number);
    return number;
}

void explorer_join(const explorer_site *site, int number)
{
    if (explorer_step(site)) {
        thread *other = &explorer_engine.threads[number];
        while (other->state != ENDED) {
            explorer_note(site, "waits for %s", other->name);
            explorer_wait_on(other, UINT64_MAX);
        }
        explorer_memory_join(explorer_engine.self, number);
        explorer_note(site, "joined %s", other->name);
    }
}

bool explorer_try_join(const explorer_site *site, int number)
{
    bool ended = !explorer_step(site) || explorer_engine.threads[number].state == ENDED;
    if (ended && explorer_engine.self >= 0) {
        explorer_memory_join(explorer_engine.self, number);
    }
    explorer_note(site, ended ? "ended" : "not ended");
    return ended;
}
