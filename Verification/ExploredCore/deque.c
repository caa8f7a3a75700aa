#include <deque.c>
