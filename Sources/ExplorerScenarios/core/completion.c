#include "../../../CScheduler/src/completion.c"
