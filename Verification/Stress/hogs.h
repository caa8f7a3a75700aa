// hogs.h - threads that only take CPU time from the other threads.

#ifndef STRESS_HOGS_H
#define STRESS_HOGS_H

#include <stdint.h>

void stress_hogs_start(uint32_t count);
void stress_hogs_stop(void);

#endif
