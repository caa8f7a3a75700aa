#include <timer.c>
