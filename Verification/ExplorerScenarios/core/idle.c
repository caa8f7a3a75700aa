#include <idle.c>
