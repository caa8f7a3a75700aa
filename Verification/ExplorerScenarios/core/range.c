#include <range.c>
