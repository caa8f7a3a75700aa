#include <completion.c>
