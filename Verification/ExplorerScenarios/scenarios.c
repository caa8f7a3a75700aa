// scenarios.c - the list of all scenarios.

#include "scenarios.h"

const explorer_program *scenario_at(size_t index)
{
    const struct {
        const explorer_program *scenarios;
        size_t count;
    } parts[] = {
        {deque_scenarios, deque_scenario_count},       {inbox_scenarios, inbox_scenario_count},
        {registry_scenarios, registry_scenario_count}, {completion_scenarios, completion_scenario_count},
        {capacity_scenarios, capacity_scenario_count}, {idle_scenarios, idle_scenario_count},
        {parking_scenarios, parking_scenario_count},   {life_suspend_scenarios, life_suspend_scenario_count},
        {life_end_scenarios, life_end_scenario_count}, {life_crew_scenarios, life_crew_scenario_count},
        {life_use_scenarios, life_use_scenario_count}, {life_observe_scenarios, life_observe_scenario_count},
        {lane_scenarios, lane_scenario_count},         {join_scenarios, join_scenario_count},
        {call_scenarios, call_scenario_count},         {block_scenarios, block_scenario_count},
        {priority_scenarios, priority_scenario_count}, {timer_scenarios, timer_scenario_count},
        {children_scenarios, children_scenario_count}, {watch_scenarios, watch_scenario_count},
        {ring_scenarios, ring_scenario_count},         {epochs_scenarios, epochs_scenario_count},
    };
    for (size_t part = 0; part < sizeof parts / sizeof parts[0]; part++) {
        if (index < parts[part].count) {
            return &parts[part].scenarios[index];
        }
        index -= parts[part].count;
    }
    return NULL;
}
