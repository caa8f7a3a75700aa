#include "../../../CScheduler/src/inbox.c"
