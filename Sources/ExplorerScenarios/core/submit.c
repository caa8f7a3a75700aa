#include "../../../CScheduler/src/submit.c"
