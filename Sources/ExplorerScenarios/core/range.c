#include "../../../CScheduler/src/range.c"
