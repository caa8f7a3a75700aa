// wheel.c - hierarchical timing wheel.
//
// A tick is a number in base CSCHED_WHEEL_SLOTS. An entry is at the level of the highest digit in which its
// tick differs from `now`, in the slot of that digit.
//
//   H1  At every level, each occupied slot lies after the digit of `now`, and its entries agree with `now` in
//       all higher digits. So the first occupied slot of the lowest level that has one comes first.
//   H2  `now` moves at most to the beginning of that slot, so H1 stays true. The entries of the slot then
//       differ from `now` at a lower level, or not at all: they are moved down, at most once for each level,
//       or are due.
//
// Source: Varghese, Lauck: Hashed and Hierarchical Timing Wheels (SOSP 1987), scheme 7.

#include "wheel.h"

#include <string.h>

typedef struct {
    uint32_t level;
    uint32_t slot;
    uint64_t tick; // at which it begins
} place;

static uint32_t digit(uint64_t tick, uint32_t level)
{
    return (uint32_t)(tick >> (level * CSCHED_WHEEL_BITS)) % CSCHED_WHEEL_SLOTS;
}

void csched_wheel_init(csched_wheel *wheel, uint64_t now)
{
    memset(wheel, 0, sizeof *wheel);
    wheel->now = now;
}

void csched_wheel_insert(csched_wheel *wheel, csched_wheel_entry *entry)
{
    if (entry->tick <= wheel->now) {
        entry->next = wheel->due;
        wheel->due = entry;
        return;
    }
    uint32_t highest = 63 - (uint32_t)__builtin_clzll(entry->tick ^ wheel->now);
    uint32_t level = highest / CSCHED_WHEEL_BITS;
    uint32_t slot = digit(entry->tick, level);
    entry->next = wheel->slots[level][slot];
    wheel->slots[level][slot] = entry;
    wheel->occupied[level][slot / 64] |= UINT64_C(1) << (slot % 64);
}

// H1. False: the wheel is empty.
static bool find_first(const csched_wheel *wheel, place *first)
{
    for (uint32_t level = 0; level < CSCHED_WHEEL_LEVELS; level++) {
        for (uint32_t word = 0; word < CSCHED_WHEEL_WORDS; word++) {
            uint64_t bits = wheel->occupied[level][word];
            if (bits != 0) {
                uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
                uint32_t shift = level * CSCHED_WHEEL_BITS;
                uint64_t higher = wheel->now >> shift >> CSCHED_WHEEL_BITS << CSCHED_WHEEL_BITS;
                *first = (place){.level = level, .slot = slot, .tick = (higher + slot) << shift};
                return true;
            }
        }
    }
    return false;
}

static csched_wheel_entry *empty(csched_wheel *wheel, place which)
{
    csched_wheel_entry *entries = wheel->slots[which.level][which.slot];
    wheel->slots[which.level][which.slot] = NULL;
    wheel->occupied[which.level][which.slot / 64] &= ~(UINT64_C(1) << (which.slot % 64));
    return entries;
}

csched_wheel_entry *csched_wheel_take(csched_wheel *wheel, uint64_t now)
{
    place first;
    while (wheel->due == NULL && find_first(wheel, &first) && first.tick <= now) {
        wheel->now = first.tick; // H2
        for (csched_wheel_entry *each = empty(wheel, first), *next; each != NULL; each = next) {
            next = each->next;
            csched_wheel_insert(wheel, each);
        }
    }
    csched_wheel_entry *due = wheel->due;
    wheel->due = NULL;
    if (due == NULL) {
        wheel->now = now; // H2
    }
    return due;
}

uint64_t csched_wheel_next(const csched_wheel *wheel)
{
    place first;
    return wheel->due != NULL ? wheel->now : find_first(wheel, &first) ? first.tick : UINT64_MAX;
}

static csched_wheel_entry *filter(csched_wheel_entry *entries,
                                  bool (*keeps)(csched_wheel_entry *entry, void *context), void *context)
{
    csched_wheel_entry *kept = NULL;
    for (csched_wheel_entry *each = entries, *next; each != NULL; each = next) {
        next = each->next;
        if (keeps(each, context)) {
            each->next = kept;
            kept = each;
        }
    }
    return kept;
}

void csched_wheel_filter(csched_wheel *wheel, bool (*keeps)(csched_wheel_entry *entry, void *context),
                         void *context)
{
    wheel->due = filter(wheel->due, keeps, context);
    for (uint32_t level = 0; level < CSCHED_WHEEL_LEVELS; level++) {
        for (uint32_t word = 0; word < CSCHED_WHEEL_WORDS; word++) {
            for (uint64_t bits = wheel->occupied[level][word]; bits != 0; bits &= bits - 1) {
                uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
                wheel->slots[level][slot] = filter(wheel->slots[level][slot], keeps, context);
                if (wheel->slots[level][slot] == NULL) {
                    wheel->occupied[level][word] &= ~(bits & -bits);
                }
            }
        }
    }
}
