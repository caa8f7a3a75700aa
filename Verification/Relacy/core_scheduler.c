// core_scheduler.c - scheduler.c, and what it keeps longer than an execution.

#include "scheduler.c"

#include "scenario.h"

void scheduler_model_begin(void)
{
    alive = NULL;
    pthread_mutex_init(&alive_mutex, NULL);
    csched_init(&ids, 0);
    csched_init(&forks, 0);
}
