#include "../../../CScheduler/src/observer.c"
