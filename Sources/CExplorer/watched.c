// watched.c - plain accesses: those that a program declares, and those that the compiler reports, in code
// compiled with -fsanitize-coverage=func,trace-loads,trace-stores.

#include <dlfcn.h>

#include "execution.h"
#include "heap.h"
#include "memory.h"
#include "plain.h"

// NULL, or what is wrong.
static const char *plain(const void *object, size_t size, bool writes)
{
    if (!explorer_heap_is_live(object, size)) {
        return "a plain access to memory that was freed, or is none (R3)";
    }
    const vector_clock *known = explorer_memory_known(explorer_engine.self);
    uint32_t now = plain_time(explorer_engine.self, known);
    explorer_heap_touch(object, explorer_engine.self, now);
    explorer_heap_touch((const unsigned char *)object + size - 1, explorer_engine.self, now);
    const char *wrong = explorer_memory_is_stored_to(explorer_engine.self, object);
    return wrong != NULL ? wrong : explorer_plain_access(explorer_engine.self, known, object, size, writes);
}

static void plain_at(const explorer_site *site, const void *object, bool writes)
{
    if (explorer_engine.self < 0) {
        return;
    }
    const char *wrong = plain(object, 1, writes);
    if (wrong != NULL) {
        explorer_fail_at(site, wrong);
    }
    explorer_note(site, "%s", writes ? "plain write" : "plain read");
}

void explorer_plain_read(const explorer_site *site, const void *object) { plain_at(site, object, false); }
void explorer_plain_write(const explorer_site *site, void *object) { plain_at(site, object, true); }

void explorer_ignore_plain(bool ignores)
{
    if (explorer_engine.self >= 0) {
        explorer_engine.threads[explorer_engine.self].ignores_plain = ignores;
    }
}

extern unsigned char start_of_locals[] __asm__("__start_explorer_tls") __attribute__((weak));
extern unsigned char end_of_locals[] __asm__("__stop_explorer_tls") __attribute__((weak));

static bool is_of_thread(const void *address)
{
    return (uintptr_t)address - (uintptr_t)start_of_locals < (size_t)(end_of_locals - start_of_locals);
}

// Whether an address lies where the system keeps thread-local variables, which all threads of a program share
// here.
static bool is_thread_local(const void *address)
{
    static _Thread_local char one;
    const uintptr_t near = 4096;
    return (uintptr_t)address - ((uintptr_t)&one - near) < 2 * near;
}

// The program's static variables, as placed by the linker.
extern unsigned char start_of_statics[] __asm__("__data_start") __attribute__((weak));
extern unsigned char end_of_statics[] __asm__("_end") __attribute__((weak));

// The C library's own allocations, an exception for instance, are not watched: their addresses are reused
// without notice.
static bool is_known_memory(const void *address)
{
    uintptr_t place = (uintptr_t)address;
    bool known = explorer_heap_has(address) || is_thread_local(address) || start_of_statics == NULL ||
                 place - (uintptr_t)start_of_statics < (size_t)(end_of_statics - start_of_statics);
    for (int number = 0; !known && number < explorer_engine.count; number++) {
        known = place - (uintptr_t)explorer_fibres[number].stack < explorer_fibres[number].size;
    }
    return known;
}

void explorer_watch(const void *address, size_t size, bool writes, const void *place)
{
    if (explorer_engine.self < 0 || size == 0 ||
        explorer_engine.threads[explorer_engine.self].ignores_plain || is_of_thread(address) ||
        !is_known_memory(address)) {
        return;
    }
    const char *wrong = plain(address, size, writes);
    if (wrong != NULL) {
        Dl_info module = {.dli_fname = "?"};
        (void)dladdr(place, &module);
        const explorer_site *last = explorer_engine.threads[explorer_engine.self].site;
        char line[16] = "";
        if (last != NULL) {
            (void)snprintf(line, sizeof line, ":%d", last->line);
        }
        explorer_fail("%s%s, by %s at %s+%#zx, after %s%s", wrong,
                      is_thread_local(address) ? " (_Thread_local: use explorer_thread_local)" : "",
                      explorer_engine.threads[explorer_engine.self].name,
                      explorer_file_name(module.dli_fname), (uintptr_t)place - (uintptr_t)module.dli_fbase,
                      last != NULL ? explorer_file_name(last->file) : "its begin", line);
    }
}

// MARK: What the compiler calls

// Names of clang's interface.
#define WATCHED(size)                                                                                        \
    void __sanitizer_cov_load##size(const void *address);                                                    \
    void __sanitizer_cov_load##size(const void *address)                                                     \
    {                                                                                                        \
        explorer_watch(address, size, false, __builtin_return_address(0));                                   \
    }                                                                                                        \
    void __sanitizer_cov_store##size(const void *address);                                                   \
    void __sanitizer_cov_store##size(const void *address)                                                    \
    {                                                                                                        \
        explorer_watch(address, size, true, __builtin_return_address(0));                                    \
    }

WATCHED(1)
WATCHED(2)
WATCHED(4)
WATCHED(8)
WATCHED(16)
