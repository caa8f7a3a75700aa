#include <join.c>
