// port_shipping.c - the global words and the slow calls of the port for real threads.

#include "port.h"

#include <linux/membarrier.h>

bool csched_has_membarrier; // written while the process has no reader

#ifdef CSCHED_SANITIZE_THREAD
csched_atomic(unsigned) csched_fence_word;
#endif

static bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

void csched_prepare_fences(void)
{
    csched_has_membarrier =
        membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

// Readers no longer execute fences, so this must not fail. It may fail when out of memory, and in a process
// that was restored from a checkpoint, which loses the registration.
void csched_pass_barrier_everywhere(void)
{
    enum { TRIES = 1000, PAUSE_US = 1000 };
    for (int tries = 0; !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); tries++) {
        if (tries == TRIES || (errno != ENOMEM && !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))) {
            csched_fatal(__func__, "the kernel now refuses the system call membarrier, accepted before");
        }
        (void)usleep(PAUSE_US);
    }
}
