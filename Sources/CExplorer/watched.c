// watched.c - what the compiler tells of plain accesses, in code that is compiled with
// -fsanitize-coverage=func,trace-loads,trace-stores.

#include "engine.h"

// Names of clang's interface.
#define WATCHED(size)                                                                                        \
    void __sanitizer_cov_load##size(const void *address);                                                    \
    void __sanitizer_cov_load##size(const void *address)                                                     \
    {                                                                                                        \
        engine_watch(address, size, false, __builtin_return_address(0));                                     \
    }                                                                                                        \
    void __sanitizer_cov_store##size(const void *address);                                                   \
    void __sanitizer_cov_store##size(const void *address)                                                    \
    {                                                                                                        \
        engine_watch(address, size, true, __builtin_return_address(0));                                      \
    }

WATCHED(1)
WATCHED(2)
WATCHED(4)
WATCHED(8)
WATCHED(16)
