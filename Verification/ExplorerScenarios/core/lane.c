#include <lane.c>
