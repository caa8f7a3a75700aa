// ledger.c - the table behind every check of a load.

#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "main.h"

static const char *const names[STRESS_KINDS] = {
    [STRESS_SINGLE] = "single", [STRESS_BULK] = "bulk",       [STRESS_TREE] = "tree",
    [STRESS_FAN] = "fan",       [STRESS_CHAIN] = "chain",     [STRESS_JOIN] = "join",
    [STRESS_RANGE] = "range",   [STRESS_LANE] = "lane",       [STRESS_WAITED] = "waited",
    [STRESS_HELPED] = "helped", [STRESS_VISITOR] = "visitor", [STRESS_NOTIFICATION] = "notification",
    [STRESS_LIFE] = "life",     [STRESS_BURST] = "burst",     [STRESS_SUSPENDED] = "suspended",
};

_Static_assert(STRESS_KINDS <= 16, "a kind fits into the four lowest bits of a word");

const char *stress_kind_name(stress_kind kind) { return names[kind]; }

void stress_tally_add(stress_tally *sum, const stress_tally *more)
{
    sum->operations += more->operations;
    sum->ran += more->ran;
    sum->cancelled += more->cancelled;
    sum->lost += more->lost;
    sum->duplicated += more->duplicated;
    sum->stale += more->stale;
    sum->disordered += more->disordered;
    sum->wrong += more->wrong;
    sum->injected += more->injected;
}

bool stress_tally_is_clean(const stress_tally *tally)
{
    return tally->lost == 0 && tally->duplicated == 0 && tally->stale == 0 && tally->disordered == 0 &&
           tally->wrong == 0;
}

void stress_ledger_create(stress_ledger *ledger, uint32_t capacity)
{
    *ledger = (stress_ledger){.capacity = capacity};
    ledger->words = malloc(capacity * sizeof *ledger->words);
    ledger->ends = malloc(capacity * sizeof *ledger->ends);
    if (ledger->words == NULL || ledger->ends == NULL) {
        stress_stop("memory is exhausted: the table of operations could not be allocated");
    }
}

void stress_ledger_destroy(stress_ledger *ledger)
{
    free(ledger->words);
    free(ledger->ends);
}

void stress_begin(stress_ledger *ledger, uint32_t salt)
{
    ledger->salt = salt;
    ledger->used = 0;
}

uint32_t stress_expect(stress_ledger *ledger, stress_kind kind, uint32_t count)
{
    uint32_t first = ledger->used;
    if (count > ledger->capacity - first) {
        stress_stop("a round has more operations than its table has places");
    }
    for (uint32_t number = first; number < first + count; number++) {
        ledger->words[number] = stress_word(ledger, number) | kind;
        atomic_store_explicit(&ledger->ends[number], 0, memory_order_relaxed);
    }
    ledger->used += count;
    return first;
}

static bool is_turned(const stress_ledger *ledger, uint32_t number)
{
    return (~ledger->words[number] & ~UINT32_C(15)) == stress_word(ledger, number);
}

void stress_must_have_run(stress_ledger *ledger, uint32_t first, uint32_t count)
{
    for (uint32_t number = first; number < first + count; number++) {
        if (!is_turned(ledger, number)) {
            stress_note(&ledger->stale);
        }
    }
}

static void examine(const stress_ledger *ledger, uint32_t number, stress_tally *tally, uint64_t *missing)
{
    uint8_t ends = atomic_load_explicit(&ledger->ends[number], memory_order_relaxed);
    uint32_t ran = ends % 16;
    uint32_t cancelled = ends / 16;
    bool turned = is_turned(ledger, number);
    uint32_t kind = (turned ? ~ledger->words[number] : ledger->words[number]) % 16;
    tally->ran += ran;
    tally->cancelled += cancelled;
    if (ran + cancelled == 0) {
        tally->lost++;
        missing[kind]++;
    } else {
        tally->duplicated += ran + cancelled - 1;
        tally->stale += turned != (ran % 2 == 1);
        // Only a shutdown and a cancelled notification keep an operation from running.
        tally->wrong += cancelled != 0 && kind != STRESS_LIFE && kind != STRESS_NOTIFICATION;
    }
}

void stress_check(stress_ledger *ledger, stress_tally *tally)
{
    uint64_t missing[16] = {0};
    uint64_t lost = tally->lost;
    tally->operations += ledger->used;
    for (uint32_t number = 0; number < ledger->used; number++) {
        examine(ledger, number, tally, missing);
    }
    tally->stale += atomic_exchange_explicit(&ledger->stale, 0, memory_order_relaxed);
    tally->disordered += atomic_exchange_explicit(&ledger->disordered, 0, memory_order_relaxed);
    tally->wrong += atomic_exchange_explicit(&ledger->wrong, 0, memory_order_relaxed);
    if (tally->lost == lost) {
        return;
    }
    for (uint32_t kind = 0; kind < STRESS_KINDS; kind++) {
        if (missing[kind] != 0) {
            fprintf(stderr, "stress: %llu operations of the kind '%s' did not end.\n",
                    (unsigned long long)missing[kind], names[kind]);
        }
    }
}
