// port_shipping.c - the shared words of the port for real threads.

#include "port.h"

bool csched_has_membarrier; // written before there are threads that read it

#ifdef CSCHED_SANITIZE_THREAD
csched_atomic(unsigned) csched_fence_word;
#endif
