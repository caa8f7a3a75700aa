#include <pace.c>
