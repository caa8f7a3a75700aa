/// CThreadStack.h - where another thread of the process is.

#ifndef C_THREAD_STACK_H
#define C_THREAD_STACK_H

#include <stdint.h>

/// How a look at a stack ended.
typedef enum {
    THREAD_STACK_READ,
    THREAD_STACK_TAKEN,    ///< SIGPROF has a handler of the program's, a profiler's
    THREAD_STACK_GONE,     ///< there is no such thread
    THREAD_STACK_NO_ANSWER ///< it blocks the signal, or is in the kernel and cannot be interrupted
} thread_stack_result;

/// Reads the return addresses on the stack of a thread, the innermost first, by the signal SIGPROF: an
/// interrupted call of the kernel goes on, but for those that never do (signal(7)). Waits for the thread, for
/// `limit_ms` at most. Any thread; one at a time.
thread_stack_result thread_stack_read(int32_t thread, uintptr_t *addresses, int room, int *count,
                                      int limit_ms);

/// Writes the dynamic linker's name of an address: "function (file)", or "file", or nothing.
void thread_stack_name(uintptr_t address, char *text, int size);

#endif
