/// explorer/stdatomic.h - C11's <stdatomic.h>, under the explorer: every access is a step.
///
/// Included in place of <stdatomic.h>, or before it, which is then skipped. `_Atomic(T)` is T here, so an
/// operator on such a variable (`x++`, `x = 1`) is a plain access, whose races are reported. With the
/// qualifier without parentheses, `_Atomic int x`, an operator escapes the explorer. Objects have 1, 2, 4 or
/// 8 bytes.

#ifndef EXPLORER_STDATOMIC_H
#define EXPLORER_STDATOMIC_H

#ifdef __cplusplus
#error "explorer/stdatomic.h is for C; in C++ there is explorer/atomic.hpp"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../explorer.h"

// The guards of clang's and of gcc's header.
#define __CLANG_STDATOMIC_H
#define _STDATOMIC_H

#define _Atomic(T) __typeof__(T)

typedef enum {
    memory_order_relaxed,
    memory_order_consume,
    memory_order_acquire,
    memory_order_release,
    memory_order_acq_rel,
    memory_order_seq_cst
} memory_order;

typedef bool atomic_bool;
typedef char atomic_char;
typedef signed char atomic_schar;
typedef unsigned char atomic_uchar;
typedef short atomic_short;
typedef unsigned short atomic_ushort;
typedef int atomic_int;
typedef unsigned int atomic_uint;
typedef long atomic_long;
typedef unsigned long atomic_ulong;
typedef long long atomic_llong;
typedef unsigned long long atomic_ullong;
typedef int_least8_t atomic_int_least8_t;
typedef uint_least8_t atomic_uint_least8_t;
typedef int_least16_t atomic_int_least16_t;
typedef uint_least16_t atomic_uint_least16_t;
typedef int_least32_t atomic_int_least32_t;
typedef uint_least32_t atomic_uint_least32_t;
typedef int_least64_t atomic_int_least64_t;
typedef uint_least64_t atomic_uint_least64_t;
typedef int_fast8_t atomic_int_fast8_t;
typedef uint_fast8_t atomic_uint_fast8_t;
typedef int_fast16_t atomic_int_fast16_t;
typedef uint_fast16_t atomic_uint_fast16_t;
typedef int_fast32_t atomic_int_fast32_t;
typedef uint_fast32_t atomic_uint_fast32_t;
typedef int_fast64_t atomic_int_fast64_t;
typedef uint_fast64_t atomic_uint_fast64_t;
typedef intptr_t atomic_intptr_t;
typedef uintptr_t atomic_uintptr_t;
typedef size_t atomic_size_t;
typedef ptrdiff_t atomic_ptrdiff_t;
typedef intmax_t atomic_intmax_t;
typedef uintmax_t atomic_uintmax_t;

typedef struct {
    bool is_set;
} atomic_flag;

#define ATOMIC_FLAG_INIT {false}
#define ATOMIC_VAR_INIT(value) (value)
#define ATOMIC_BOOL_LOCK_FREE 2
#define ATOMIC_CHAR_LOCK_FREE 2
#define ATOMIC_SHORT_LOCK_FREE 2
#define ATOMIC_INT_LOCK_FREE 2
#define ATOMIC_LONG_LOCK_FREE 2
#define ATOMIC_LLONG_LOCK_FREE 2
#define ATOMIC_POINTER_LOCK_FREE 2
#define kill_dependency(value) (value)
#define atomic_is_lock_free(object) ((void)(object), true)

// An operation may be an argument of another one.
#define EXPLORER_NESTED _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"")
#define EXPLORER_NESTED_END _Pragma("GCC diagnostic pop")

// The place in the source, as the table of a schedule has it.
#define explorer_site_of(text)                                                                               \
    (__extension__({                                                                                         \
        EXPLORER_NESTED                                                                                      \
        static const explorer_site explorer_here = {__FILE__, __LINE__, text};                               \
        EXPLORER_NESTED_END                                                                                  \
        &explorer_here;                                                                                      \
    }))

// The unqualified type: a comma's second operand has lost its qualifiers.
#define explorer_type_of(object) __typeof__(((void)0, *(object)))

// A value as the explorer keeps it, and back.
#define explorer_word_of(T, value)                                                                           \
    (__extension__({                                                                                         \
        EXPLORER_NESTED                                                                                      \
        _Static_assert(sizeof(T) <= sizeof(uint64_t), "the explorer's atomic objects have 8 bytes at most"); \
        T explorer_value = (value);                                                                          \
        uint64_t explorer_word = 0;                                                                          \
        (void)__builtin_memcpy(&explorer_word, &explorer_value, sizeof explorer_value);                      \
        EXPLORER_NESTED_END                                                                                  \
        explorer_word;                                                                                       \
    }))
#define explorer_value_of(T, word)                                                                           \
    (__extension__({                                                                                         \
        EXPLORER_NESTED                                                                                      \
        uint64_t explorer_word = (word);                                                                     \
        T explorer_value;                                                                                    \
        (void)__builtin_memcpy(&explorer_value, &explorer_word, sizeof explorer_value);                      \
        EXPLORER_NESTED_END                                                                                  \
        explorer_value;                                                                                      \
    }))

#define atomic_init(object, value)                                                                           \
    explorer_init((void *)(object), sizeof *(object), explorer_word_of(explorer_type_of(object), value))
#define atomic_load_explicit(object, order)                                                                  \
    explorer_value_of(explorer_type_of(object),                                                              \
                      explorer_load(explorer_site_of("load " #object), (const void *)(object),               \
                                    sizeof *(object), explorer_order_of(order)))
#define atomic_store_explicit(object, value, order)                                                          \
    explorer_store(explorer_site_of("store " #object), (void *)(object), sizeof *(object),                   \
                   explorer_word_of(explorer_type_of(object), value), explorer_order_of(order))
#define explorer_change_of(change, name, object, word, order)                                                \
    explorer_value_of(explorer_type_of(object),                                                              \
                      explorer_modify(explorer_site_of(name " " #object), (void *)(object),                  \
                                      sizeof *(object), change, word, explorer_order_of(order)))
#define atomic_exchange_explicit(object, value, order)                                                       \
    explorer_change_of(EXPLORER_EXCHANGE, "exchange", object,                                                \
                       explorer_word_of(explorer_type_of(object), value), order)
// For a pointer: `count` elements further.
#define explorer_base_of(object) ((explorer_type_of(object))(uintptr_t)4096)
#define explorer_step_of(object, count)                                                                      \
    ((uint64_t)((uintptr_t)(explorer_base_of(object) + (count)) - (uintptr_t)explorer_base_of(object)))
#define atomic_fetch_add_explicit(object, count, order)                                                      \
    explorer_change_of(EXPLORER_ADD, "add to", object, explorer_step_of(object, count), order)
#define atomic_fetch_sub_explicit(object, count, order)                                                      \
    explorer_change_of(EXPLORER_SUBTRACT, "subtract from", object, explorer_step_of(object, count), order)
#define atomic_fetch_or_explicit(object, bits, order)                                                        \
    explorer_change_of(EXPLORER_OR, "or", object, (uint64_t)(bits), order)
#define atomic_fetch_and_explicit(object, bits, order)                                                       \
    explorer_change_of(EXPLORER_AND, "and", object, (uint64_t)(bits), order)
#define atomic_fetch_xor_explicit(object, bits, order)                                                       \
    explorer_change_of(EXPLORER_XOR, "xor", object, (uint64_t)(bits), order)
#define explorer_compare_exchange(object, expected, desired, success, failure, weak)                         \
    explorer_cas(explorer_site_of("compare-exchange " #object), (void *)(object), sizeof *(object),          \
                 (expected), explorer_word_of(explorer_type_of(object), desired),                            \
                 explorer_order_of(success), explorer_order_of(failure), weak)
#define atomic_compare_exchange_strong_explicit(object, expected, desired, success, failure)                 \
    explorer_compare_exchange(object, expected, desired, success, failure, false)
#define atomic_compare_exchange_weak_explicit(object, expected, desired, success, failure)                   \
    explorer_compare_exchange(object, expected, desired, success, failure, true)

#define atomic_load(object) atomic_load_explicit(object, memory_order_seq_cst)
#define atomic_store(object, value) atomic_store_explicit(object, value, memory_order_seq_cst)
#define atomic_exchange(object, value) atomic_exchange_explicit(object, value, memory_order_seq_cst)
#define atomic_fetch_add(object, count) atomic_fetch_add_explicit(object, count, memory_order_seq_cst)
#define atomic_fetch_sub(object, count) atomic_fetch_sub_explicit(object, count, memory_order_seq_cst)
#define atomic_fetch_or(object, bits) atomic_fetch_or_explicit(object, bits, memory_order_seq_cst)
#define atomic_fetch_and(object, bits) atomic_fetch_and_explicit(object, bits, memory_order_seq_cst)
#define atomic_fetch_xor(object, bits) atomic_fetch_xor_explicit(object, bits, memory_order_seq_cst)
#define atomic_compare_exchange_strong(object, expected, desired)                                            \
    atomic_compare_exchange_strong_explicit(object, expected, desired, memory_order_seq_cst,                 \
                                            memory_order_seq_cst)
#define atomic_compare_exchange_weak(object, expected, desired)                                              \
    atomic_compare_exchange_weak_explicit(object, expected, desired, memory_order_seq_cst,                   \
                                          memory_order_seq_cst)

#define atomic_thread_fence(order) explorer_fence(explorer_site_of("fence"), explorer_order_of(order))
#define atomic_signal_fence(order) ((void)(order)) // the explorer has no signals

#define atomic_flag_test_and_set_explicit(flag, order) atomic_exchange_explicit(&(flag)->is_set, true, order)
#define atomic_flag_clear_explicit(flag, order) atomic_store_explicit(&(flag)->is_set, false, order)
#define atomic_flag_test_and_set(flag) atomic_flag_test_and_set_explicit(flag, memory_order_seq_cst)
#define atomic_flag_clear(flag) atomic_flag_clear_explicit(flag, memory_order_seq_cst)

#endif
