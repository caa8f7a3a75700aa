// thread_state.c - what the kernel reports about another thread of this process.

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "port.h"

bool csched_thread_sleeps(int32_t id)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%" PRId32 "/stat", id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char text
        [128]; // "id (name) S ...": the name has 15 bytes at most, any characters, and ends with the last ')'
    ssize_t length = read(file, text, sizeof text - 1);
    (void)close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'S' || name_end[2] == 'D');
}

// Uses the kernel's id of the clock of a thread's CPU time, as pthread_getcpuclockid computes it from a
// handle. Reading /proc/self/task/ID/schedstat gives the same, and takes eight times as long.
uint64_t csched_thread_ran_ns(int32_t id)
{
    enum { OF_A_THREAD = 4, TIME_IT_RAN = 2 };
    struct timespec ran = {0};
    (void)clock_gettime((clockid_t)(~(uint32_t)id << 3 | OF_A_THREAD | TIME_IT_RAN), &ran);
    return (uint64_t)ran.tv_sec * 1000000000 + (uint64_t)ran.tv_nsec;
}
