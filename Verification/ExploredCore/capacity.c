#include <capacity.c>
