#include "../../../CScheduler/src/registry.c"
