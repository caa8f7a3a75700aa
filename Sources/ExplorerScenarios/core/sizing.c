#include "../../../CScheduler/src/sizing.c"
