// CBlockCalls.h - calls Swift closures whose types are not known at the call, as the compiler calls a closure
// with a generic result: in Swift's calling convention, with the value initialised and the input read in
// place.
//
// BlockCalls.swift checks once per process that the compiler does so.

#ifndef CBLOCKCALLS_H
#define CBLOCKCALLS_H

#include <stdint.h>

#pragma clang assume_nonnull begin

#define BLOCK_CALLS_RESULT __attribute__((swift_indirect_result))
#define BLOCK_CALLS_CONTEXT __attribute__((swift_context))
#define BLOCK_CALLS_ERROR __attribute__((swift_error_result))

typedef __attribute__((swiftcall)) void (*block_calls_value_code)(
    BLOCK_CALLS_RESULT void *value, BLOCK_CALLS_CONTEXT const void *_Nullable context,
    BLOCK_CALLS_ERROR void *_Nullable *_Nonnull error);
typedef __attribute__((swiftcall)) void (*block_calls_step_code)(
    BLOCK_CALLS_RESULT void *value, const void *input, BLOCK_CALLS_CONTEXT const void *_Nullable context,
    BLOCK_CALLS_ERROR void *_Nullable *_Nonnull error);
typedef __attribute__((swiftcall)) void (*block_calls_index_code)(
    long index, BLOCK_CALLS_CONTEXT const void *_Nullable context,
    BLOCK_CALLS_ERROR void *_Nullable *_Nonnull error);

/// Calls a `() throws -> Value`. Null: `value` is initialised; else the error, retained.
static inline void *_Nullable block_calls_value(const void *_Nullable code, const void *_Nullable context,
                                                void *value)
{
    void *_Nullable error = 0;
    ((block_calls_value_code)code)(value, context, &error);
    return error;
}

/// Calls an `(Input) throws -> Value`. `input`: the address of the input, borrowed.
static inline void *_Nullable block_calls_step(const void *_Nullable code, const void *_Nullable context,
                                               void *value, const void *input)
{
    void *_Nullable error = 0;
    ((block_calls_step_code)code)(value, input, context, &error);
    return error;
}

/// Calls an `(Int) throws -> Void`.
static inline void *_Nullable block_calls_index(const void *_Nullable code, const void *_Nullable context,
                                                long index)
{
    void *_Nullable error = 0;
    ((block_calls_index_code)code)(index, context, &error);
    return error;
}

/// The part of a node that concerns its block. PlainNode.swift declares the same layout.
typedef struct block_calls_node {
    const void *_Nullable code;
    void *_Nullable context;
    uint64_t value[2];
    uintptr_t input;
    const void *_Nullable type;
    uint32_t state;
    uint32_t flags;
} block_calls_node;

enum { BLOCK_CALLS_STEP = 1, BLOCK_CALLS_INDEX = 2 };

/// A function that calls the block of a child.
typedef void *_Nullable (*block_calls_function)(void *children, void *child);

/// Calls the block of a child. Null: the value is in the child's node; else the error, retained.
void *_Nullable block_calls_child(void *children, void *child);

/// The address of that function.
static inline block_calls_function block_calls_address(void) { return block_calls_child; }

/// From now on each child is called by `apart`, which returns the same result.
void block_calls_apart(block_calls_function apart);

/// As block_calls_child, but calls the block directly, never by `apart`.
static inline void *_Nullable block_calls_in_node(block_calls_node *node)
{
    if ((node->flags & BLOCK_CALLS_STEP) != 0) {
        const block_calls_node *input = (const block_calls_node *)node->input;
        return block_calls_step(node->code, node->context, node->value, input->value);
    }
    if ((node->flags & BLOCK_CALLS_INDEX) != 0) {
        return block_calls_index(node->code, node->context, (long)node->input);
    }
    return block_calls_value(node->code, node->context, node->value);
}

/// Releases a reference. Part of the Swift runtime.
void swift_release(void *_Nullable object);

/// The address of `swift_release`.
typedef void (*block_calls_releasing)(void *_Nullable object);
static inline block_calls_releasing block_calls_release(void) { return swift_release; }

#pragma clang assume_nonnull end

#endif
