#include <priority.c>
