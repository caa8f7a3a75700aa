#include <children.c>
