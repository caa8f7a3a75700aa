#include <inbox.c>
