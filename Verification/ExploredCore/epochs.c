#include <epochs.c>
