// thread_state.c - what the kernel says of another thread of this process.

#include <fcntl.h>
#include <string.h>

#include "port.h"

bool csched_thread_sleeps(int32_t id)
{
    char text
        [128]; // "id (name) S ...": the name has 15 bytes at most, any of them, and ends with the last ')'
    (void)snprintf(text, sizeof text, "/proc/self/task/%d/stat", (int)id);
    int file = open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t length = read(file, text, sizeof text - 1);
    (void)close(file);
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'S' || name_end[2] == 'D');
}
