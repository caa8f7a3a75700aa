#include "../../../CScheduler/src/lane.c"
