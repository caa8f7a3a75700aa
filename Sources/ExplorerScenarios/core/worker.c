#include "../../../CScheduler/src/worker.c"
