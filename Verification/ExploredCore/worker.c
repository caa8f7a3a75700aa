#include <worker.c>
