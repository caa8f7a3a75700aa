#include <observer.c>
