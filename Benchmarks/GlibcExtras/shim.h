// The parts of the C library that Swift's module Glibc leaves out.

#include <gnu/libc-version.h>
#include <malloc.h>
