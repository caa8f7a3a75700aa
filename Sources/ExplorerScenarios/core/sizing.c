#include <sizing.c>
