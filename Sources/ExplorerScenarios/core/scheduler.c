#include <scheduler.c>

#include "../scenario.h"

void scheduler_model_begin(void)
{
    alive = NULL;
    pthread_mutex_init(&alive_mutex, NULL);
}
