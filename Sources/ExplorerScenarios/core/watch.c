#include <watch.c>
