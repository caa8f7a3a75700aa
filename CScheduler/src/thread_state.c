// thread_state.c - what the kernel says of another thread of this process.

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "port.h"

// Reads what `file` of a thread says, as a string. False: there is none.
static bool read_of_thread(int32_t id, const char *file, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%" PRId32 "/%s", id, file);
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0) {
        return false;
    }
    ssize_t length = read(opened, text, size - 1);
    (void)close(opened);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool csched_thread_sleeps(int32_t id)
{
    char text
        [128]; // "id (name) S ...": the name has 15 bytes at most, any of them, and ends with the last ')'
    if (!read_of_thread(id, "stat", text, sizeof text)) {
        return false;
    }
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'S' || name_end[2] == 'D');
}

uint64_t csched_thread_ran_ns(int32_t id)
{
    char
        text[128]; // three numbers: how long it ran, how long it waited for a processor, how often it got one
    return read_of_thread(id, "schedstat", text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}
