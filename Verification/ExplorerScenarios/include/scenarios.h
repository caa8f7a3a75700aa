/// scenarios.h - all scenarios of the core, by part.

#ifndef SCENARIOS_H
#define SCENARIOS_H

#include <explorer.h>

extern const explorer_program children_scenarios[];
extern const size_t children_scenario_count;
extern const explorer_program deque_scenarios[];
extern const size_t deque_scenario_count;
extern const explorer_program inbox_scenarios[];
extern const size_t inbox_scenario_count;
extern const explorer_program registry_scenarios[];
extern const size_t registry_scenario_count;
extern const explorer_program block_scenarios[];
extern const size_t block_scenario_count;
extern const explorer_program completion_scenarios[];
extern const size_t completion_scenario_count;
extern const explorer_program capacity_scenarios[];
extern const size_t capacity_scenario_count;
extern const explorer_program epochs_scenarios[];
extern const size_t epochs_scenario_count;
extern const explorer_program idle_scenarios[];
extern const size_t idle_scenario_count;
extern const explorer_program parking_scenarios[];
extern const size_t parking_scenario_count;
extern const explorer_program life_suspend_scenarios[];
extern const size_t life_suspend_scenario_count;
extern const explorer_program life_end_scenarios[];
extern const size_t life_end_scenario_count;
extern const explorer_program life_crew_scenarios[];
extern const size_t life_crew_scenario_count;
extern const explorer_program life_use_scenarios[];
extern const size_t life_use_scenario_count;
extern const explorer_program life_observe_scenarios[];
extern const size_t life_observe_scenario_count;
extern const explorer_program lane_scenarios[];
extern const size_t lane_scenario_count;
extern const explorer_program join_scenarios[];
extern const size_t join_scenario_count;
extern const explorer_program call_scenarios[];
extern const size_t call_scenario_count;
extern const explorer_program priority_scenarios[];
extern const size_t priority_scenario_count;
extern const explorer_program ring_scenarios[];
extern const size_t ring_scenario_count;
extern const explorer_program timer_scenarios[];
extern const size_t timer_scenario_count;
extern const explorer_program watch_scenarios[];
extern const size_t watch_scenario_count;

/// All of them; NULL beyond the last.
const explorer_program *scenario_at(size_t index);

#endif
