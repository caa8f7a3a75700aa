// announce.h - announces stacks, and switches between them, to the sanitizers. Empty without a sanitizer.
//
// AddressSanitizer has to know the bounds of the stack in use, and keeps frames on a fake stack.
//
// ThreadSanitizer counts calls and returns. So the code that announces a switch has to be inlined, or its own
// return would be counted on the other fibre. For a fibre that is restarted before its calls have returned,
// ThreadSanitizer keeps counting them. So after some restarts the fibre has to be replaced by a new one (a
// new one at each restart would take most of the time of a search).

#ifndef EXPLORER_ANNOUNCE_H
#define EXPLORER_ANNOUNCE_H

#include "fibre.h"

#define ANNOUNCEMENT static inline __attribute__((always_inline)) void

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ANNOUNCE_ADDRESSES
#endif
#if __has_feature(thread_sanitizer)
#define ANNOUNCE_THREADS
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define ANNOUNCE_ADDRESSES
#endif
#if defined(__SANITIZE_THREAD__)
#define ANNOUNCE_THREADS
#endif

#if defined(ANNOUNCE_ADDRESSES)

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

ANNOUNCEMENT announce_beginning(fibre *begun) { __asan_unpoison_memory_region(begun->stack, begun->size); }

ANNOUNCEMENT announce_leaving(fibre *from, const fibre *to)
{
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->size);
}

/// `from` is where the switch came from: the bounds of a thread's own stack are learnt here.
ANNOUNCEMENT announce_arrival(fibre *from, const fibre *to)
{
    __sanitizer_finish_switch_fiber(to->fake_stack, &from->stack, &from->size);
}

#elif defined(ANNOUNCE_THREADS)

#include <sanitizer/tsan_interface.h>

// ThreadSanitizer has room for 65536 calls.
enum { BEGINNINGS_MOST = 500 };

ANNOUNCEMENT announce_beginning(fibre *begun)
{
    if (begun->beginnings++ % BEGINNINGS_MOST != 0) {
        return;
    }
    if (begun->shadow != NULL) {
        __tsan_destroy_fiber(begun->shadow);
    }
    begun->shadow = __tsan_create_fiber(0);
}

ANNOUNCEMENT announce_leaving(fibre *from, const fibre *to)
{
    from->shadow = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->shadow, 0);
}

ANNOUNCEMENT announce_arrival(fibre *from, const fibre *to)
{
    (void)from;
    (void)to;
}

#else

ANNOUNCEMENT announce_beginning(fibre *begun) { (void)begun; }

ANNOUNCEMENT announce_leaving(fibre *from, const fibre *to)
{
    (void)from;
    (void)to;
}

ANNOUNCEMENT announce_arrival(fibre *from, const fibre *to)
{
    (void)from;
    (void)to;
}

#endif
#endif
