/// jemalloc, for executables only: linking it replaces malloc in the whole process.
#include <jemalloc/jemalloc.h>
