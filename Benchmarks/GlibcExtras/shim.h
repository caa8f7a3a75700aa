// What Swift's module Glibc leaves out of the C library.

#include <gnu/libc-version.h>
#include <malloc.h>
