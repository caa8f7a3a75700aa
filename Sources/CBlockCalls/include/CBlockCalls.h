// CBlockCalls.h - calls of Swift closures whose types are not known where they are called: as the compiler
// itself calls a closure whose result is of a generic type, in the calling convention of Swift. The value is
// initialised where it is to lie, and what the closure is given is read where it lies.
//
// Whether the compiler does so is asked once in each process: BlockCalls.swift.

#ifndef CBLOCKCALLS_H
#define CBLOCKCALLS_H

#define BLOCK_CALLS_RESULT __attribute__((swift_indirect_result))
#define BLOCK_CALLS_CONTEXT __attribute__((swift_context))
#define BLOCK_CALLS_ERROR __attribute__((swift_error_result))

typedef __attribute__((swiftcall)) void (*block_calls_value_code)(BLOCK_CALLS_RESULT void *value,
                                                                  BLOCK_CALLS_CONTEXT const void *context,
                                                                  BLOCK_CALLS_ERROR void **error);
typedef __attribute__((swiftcall)) void (*block_calls_step_code)(BLOCK_CALLS_RESULT void *value,
                                                                 const void *input,
                                                                 BLOCK_CALLS_CONTEXT const void *context,
                                                                 BLOCK_CALLS_ERROR void **error);
typedef __attribute__((swiftcall)) void (*block_calls_index_code)(long index,
                                                                  BLOCK_CALLS_CONTEXT const void *context,
                                                                  BLOCK_CALLS_ERROR void **error);

/// Calls a `() throws -> Value`. Null: `value` is initialised; else the error, with a reference.
static inline void *block_calls_value(const void *code, const void *context, void *value)
{
    void *error = 0;
    ((block_calls_value_code)code)(value, context, &error);
    return error;
}

/// Calls an `(Input) throws -> Value`. `input`: where it lies, borrowed.
static inline void *block_calls_step(const void *code, const void *context, void *value, const void *input)
{
    void *error = 0;
    ((block_calls_step_code)code)(value, input, context, &error);
    return error;
}

/// Calls an `(Int) throws -> Void`.
static inline void *block_calls_index(const void *code, const void *context, long index)
{
    void *error = 0;
    ((block_calls_index_code)code)(index, context, &error);
    return error;
}

/// The runtime's: gives a reference back.
void swift_release(void *object);

/// The runtime's, as an address.
static inline void (*block_calls_release(void))(void *) { return swift_release; }

#endif
