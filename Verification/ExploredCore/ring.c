#include <ring.c>
