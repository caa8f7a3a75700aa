#include "../../../CScheduler/src/deque.c"
