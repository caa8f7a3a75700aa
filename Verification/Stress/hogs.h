// hogs.h - threads that do nothing but take CPU time away from the others.

#ifndef STRESS_HOGS_H
#define STRESS_HOGS_H

#include <stdint.h>

void stress_hogs_start(uint32_t count);
void stress_hogs_stop(void);

#endif
