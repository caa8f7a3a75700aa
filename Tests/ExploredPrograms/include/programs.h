/// programs.h - small threaded programs, some of them wrong, for the tests of ThreadExploration.

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
extern const explorer_program a_loop_that_spins;
extern const explorer_program a_loop_for_nothing;
extern const explorer_program a_loop_that_works;
extern const explorer_program unlocked_by_another;
extern const explorer_program unlocked_free;
extern const explorer_program locked_twice;
extern const explorer_program locked_uninitialised;
extern const explorer_program unlocked_after_free;
extern const explorer_program joined_twice;
extern const explorer_program the_wrong_waiter;
extern const explorer_program nodes_that_come_back;
extern const explorer_program bytes_in_bulk;
extern const explorer_program bulk_beyond_the_end;
extern const explorer_program freed_inside;

/// Plain accesses, as the compiler reports them.
extern const explorer_program plain_write_and_read;
extern const explorer_program plain_read_and_write;
extern const explorer_program plain_two_writes;
extern const explorer_program plain_overlap;
extern const explorer_program plain_two_granules;
extern const explorer_program plain_neighbours;
extern const explorer_program plain_of_atomic;
extern const explorer_program plain_two_reads;
extern const explorer_program plain_under_a_mutex;
extern const explorer_program plain_under_trylock;
extern const explorer_program plain_after_a_release;
extern const explorer_program plain_handed_on;
extern const explorer_program plain_before_a_thread;
extern const explorer_program plain_ignored;
extern const explorer_program plain_beyond_the_end;
extern const explorer_program plain_after_free;
extern const explorer_program plain_freed_unknown;
extern const explorer_program plain_then_atomic;

extern const explorer_program operations_of_cpp;
extern const explorer_program spinlock_in_cpp;
extern const explorer_program unjoined_in_cpp;
extern const explorer_program condition_in_cpp;
extern const explorer_program exceptions_in_cpp;
extern const explorer_program deleted_while_used_in_cpp;
extern const explorer_program threads_in_cpp;
extern const explorer_program global_in_cpp;

/// Returns 7, the number of the exception that it throws and catches around an exploration.
int explored_inside_a_catch(void);

#ifdef __cplusplus
}
#endif

#endif
