// accesses.c - atomic accesses: each is a step, and the memory model decides what it sees.

#include <stdlib.h>
#include <string.h>

#include "execution.h"
#include "heap.h"
#include "memory.h"
#include "plain.h"

void explorer_check_address(const explorer_site *site, const void *object, size_t size)
{
    if (!explorer_heap_is_live(object, size)) {
        explorer_fail_at(site, "an access to freed memory (R3)");
    }
    const vector_clock *known = explorer_memory_known(explorer_engine.self);
    const char *wrong = explorer_memory_is_known(explorer_engine.self, object, size);
    if (wrong == NULL) {
        wrong = explorer_plain_is_known(explorer_engine.self, known, object, size);
    }
    if (wrong != NULL) {
        explorer_fail_at(site, wrong);
    }
    explorer_memory_tick(explorer_engine.self);
    explorer_heap_touch(object, explorer_engine.self, known->at[explorer_engine.self]);
}

// Chooses which of the visible stores a load sees: how many before the newest.
static int choose_store(const void *object, size_t size, explorer_order order)
{
    int count = explorer_memory_visible(explorer_engine.self, object, size, order);
    if (count == 1 || explorer_engine.calm) {
        return 0;
    }
    uint8_t values[UINT8_MAX];
    for (int back = 0; back < count; back++) {
        values[back] = (uint8_t)back;
    }
    return explorer_engine.choose('r', explorer_engine.explored, values, count);
}

uint64_t explorer_load(const explorer_site *site, const void *object, size_t size, explorer_order order)
{
    if (!explorer_step(site)) {
        return explorer_word_at(object, size);
    }
    explorer_check_address(site, object, size);
    int back = choose_store(object, size, order);
    uint64_t value = explorer_memory_load(explorer_engine.self, object, size, order, back);
    explorer_note_look(site, object, value);
    explorer_note(site,
                  back == 0   ? "%#llx"
                  : back == 1 ? "%#llx, %d store old"
                              : "%#llx, %d stores old",
                  (unsigned long long)value, back);
    return value;
}

void explorer_store(const explorer_site *site, void *object, size_t size, uint64_t value,
                    explorer_order order)
{
    if (!explorer_step(site)) {
        memcpy(object, &value, size);
        return;
    }
    explorer_check_address(site, object, size);
    explorer_memory_store(explorer_engine.self, object, size, value, order);
    explorer_forget_looks();
    explorer_note(site, "%#llx", (unsigned long long)value);
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
    if (!explorer_step(site)) {
        uint64_t before = explorer_word_at(object, size);
        uint64_t after = changed(before, change, operand);
        memcpy(object, &after, size);
        return before;
    }
    explorer_check_address(site, object, size);
    uint64_t before = explorer_word_at(object, size);
    uint64_t after = changed(before, change, operand);
    explorer_memory_modify(explorer_engine.self, object, size, after, order);
    if (after == before) { // as when a spinlock polls by an exchange
        explorer_note_look(site, object, before);
    } else {
        explorer_forget_looks();
    }
    explorer_note(site, "%#llx -> %#llx", (unsigned long long)before, (unsigned long long)after);
    return before;
}

bool explorer_cas(const explorer_site *site, void *object, size_t size, void *expected, uint64_t desired,
                  explorer_order success, explorer_order failure, bool weak)
{
    uint64_t wanted = explorer_word_at(expected, size);
    if (!explorer_step(site)) {
        bool equal = explorer_word_at(object, size) == wanted;
        memcpy(equal ? object : expected, equal ? (const void *)&desired : object, size);
        return equal;
    }
    explorer_check_address(site, object, size);
    int back = choose_store(object, size, failure);
    bool stale =
        explorer_memory_peek(object, size, back) == wanted && back > 0; // a success replaces the newest
    back = stale ? 0 : back;
    bool equal = explorer_memory_peek(object, size, back) == wanted;
    if (equal && !(weak && explorer_fails_here())) {
        explorer_memory_modify(explorer_engine.self, object, size, desired, success);
        explorer_forget_looks();
        explorer_note(site, "%#llx -> %#llx", (unsigned long long)wanted, (unsigned long long)desired);
        return true;
    }
    uint64_t seen = explorer_memory_load(explorer_engine.self, object, size, failure, back);
    memcpy(expected, &seen, size);
    explorer_note_look(site, object, seen);
    explorer_note(site, "fails: %#llx", (unsigned long long)seen);
    return false;
}

void explorer_fence(const explorer_site *site, explorer_order order)
{
    if (explorer_step(site)) {
        explorer_memory_fence(explorer_engine.self, order);
        explorer_note(site, "%s", "");
    }
}

void explorer_fence_all(const explorer_site *site)
{
    if (explorer_step(site)) {
        explorer_memory_fence_all(explorer_engine.self);
        explorer_note(site, "%s", "");
    }
}

void explorer_init(void *object, size_t size, uint64_t value)
{
    if (!explorer_heap_is_live(object, size)) {
        explorer_fail("memory that is none is initialised (R3)");
    }
    explorer_memory_init(explorer_engine.self, object, size, value);
}
