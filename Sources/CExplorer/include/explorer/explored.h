/// explorer/explored.h - for code that is to be explored unchanged: atomics, threads and memory at once.
///
///     clang -include explorer/explored.h -fsanitize-coverage=func,trace-loads,trace-stores -c stack.c

#ifndef EXPLORER_EXPLORED_H
#define EXPLORER_EXPLORED_H

#include "pthread.h"
#include "stdatomic.h"
#include "stdlib.h"

#endif
