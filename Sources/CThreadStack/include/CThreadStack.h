/// CThreadStack.h - the stack of another thread of the process.

#ifndef C_THREAD_STACK_H
#define C_THREAD_STACK_H

#include <stdint.h>

/// The result of reading a stack.
typedef enum {
    THREAD_STACK_READ,
    THREAD_STACK_TAKEN,    ///< the program has a handler of SIGPROF, such as a profiler's
    THREAD_STACK_GONE,     ///< there is no such thread
    THREAD_STACK_NO_ANSWER ///< it blocks the signal, or is in the kernel and cannot be interrupted
} thread_stack_result;

/// Reads the return addresses on the stack of a thread, the innermost first, by the signal SIGPROF: an
/// interrupted system call is restarted, except for those that never are (signal(7)). Waits for the thread,
/// for at most `limit_ms`. May be called on any thread; calls are serialised.
thread_stack_result thread_stack_read(int32_t thread, uintptr_t *addresses, int room, int *count,
                                      int limit_ms);

/// Writes the dynamic linker's name of an address: "function (file)", or "file", or nothing.
void thread_stack_name(uintptr_t address, char *text, int size);

#endif
