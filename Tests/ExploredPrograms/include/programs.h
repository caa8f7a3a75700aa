/// programs.h - small programs of threads, some of them wrong, for the tests of ThreadExploration.

#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <explorer.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const explorer_program message_with_release;
extern const explorer_program message_relaxed;
extern const explorer_program message_by_fences;
extern const explorer_program counter_under_a_mutex;
extern const explorer_program counter_without_a_mutex;
extern const explorer_program counter_under_trylock;
extern const explorer_program two_mutexes_in_two_orders;
extern const explorer_program handed_over_by_a_condition;
extern const explorer_program a_condition_that_is_not_looked_at_again;
extern const explorer_program freed_while_read;
extern const explorer_program left_over_memory;
extern const explorer_program operations_of_c11;
extern const explorer_program results_of_threads;
extern const explorer_program operations_of_cpp;
extern const explorer_program spinlock_in_cpp;
extern const explorer_program unjoined_in_cpp;

#ifdef __cplusplus
}
#endif

#endif
