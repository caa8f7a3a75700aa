#include "../../../CScheduler/src/join.c"
