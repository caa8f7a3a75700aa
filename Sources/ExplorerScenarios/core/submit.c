#include <submit.c>
