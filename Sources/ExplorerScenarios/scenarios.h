// scenarios.h - all of them, by part.

#ifndef SCENARIOS_H
#define SCENARIOS_H

#include <explorer.h>

extern const explorer_program deque_scenarios[];
extern const size_t deque_scenario_count;

extern const explorer_program scheduler_scenarios[];
extern const size_t scheduler_scenario_count;

#endif
