#include "../../../CScheduler/src/capacity.c"
