#include "../../../CScheduler/src/idle.c"
