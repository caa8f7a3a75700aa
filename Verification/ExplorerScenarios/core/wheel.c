#include <wheel.c>
