#include <watch.c>

#include "scenario.h"

bool watch_model_is_silent(csched_scheduler *scheduler)
{
    return csched_load(&scheduler->watch.state, seq_cst) == DORMANT;
}
