// thread_stack.c - one request at a time, which the signal handler answers on the requested stack.
//
// A request that has timed out may be answered late. So it has a number, and a handler takes it by a
// compare-exchange from ASKED to ANSWERING, which fails if the request was abandoned or replaced by another
// one. An answer that has begun is waited for: the handler always finishes.

#include "CThreadStack.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NOTHING, ASKED, ANSWERING, STATES };
enum { FRAMES_MOST = 64, OWN_FRAMES = 2 }; // the handler's, and the kernel's that calls it

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(uint64_t) request; // its number times STATES, plus its state
static _Atomic(int32_t) asked;    // the thread whose stack is requested
static void *frames[FRAMES_MOST]; // owned by the handler from ANSWERING to the post
static int depth;
static sem_t answered;

static void answer(int signal)
{
    (void)signal;
    int before = errno;
    uint64_t seen = atomic_load(&request);
    if (seen % STATES == ASKED && atomic_load(&asked) == (int32_t)syscall(SYS_gettid) &&
        atomic_compare_exchange_strong(&request, &seen, seen - ASKED + ANSWERING)) {
        depth = backtrace(frames, FRAMES_MOST);
        (void)sem_post(&answered);
    }
    errno = before;
}

static thread_stack_result take_signal(void)
{
    struct sigaction now;
    if (sigaction(SIGPROF, NULL, &now) != 0) {
        return THREAD_STACK_TAKEN;
    }
    if (now.sa_handler == answer) {
        return THREAD_STACK_READ;
    }
    if (now.sa_handler != SIG_DFL) {
        return THREAD_STACK_TAKEN;
    }
    (void)sem_init(&answered, 0, 0);
    (void)backtrace(frames, 1); // loads the library it needs, which a handler must not do
    struct sigaction own = {.sa_handler = answer, .sa_flags = SA_RESTART};
    return sigaction(SIGPROF, &own, NULL) == 0 ? THREAD_STACK_READ : THREAD_STACK_TAKEN;
}

static struct timespec time_in(int ms)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += ms % 1000 * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000L;
    }
    return end;
}

// False: no handler has answered, and none will.
static bool wait_for_answer(uint64_t number, int limit_ms)
{
    struct timespec end = time_in(limit_ms);
    while (sem_timedwait(&answered, &end) != 0) {
        uint64_t expected = number * STATES + ASKED;
        if (errno == ETIMEDOUT && atomic_compare_exchange_strong(&request, &expected, number * STATES)) {
            return false;
        }
        if (errno == ETIMEDOUT) {
            end = time_in(limit_ms); // the answer has begun, and will come
        }
    }
    return true;
}

static thread_stack_result ask(int32_t thread, uintptr_t *addresses, int room, int *count, int limit_ms)
{
    uint64_t number = atomic_load(&request) / STATES + 1;
    atomic_store(&asked, thread);
    atomic_store(&request, number * STATES + ASKED);
    if (syscall(SYS_tgkill, getpid(), thread, SIGPROF) != 0) {
        atomic_store(&request, number * STATES);
        return THREAD_STACK_GONE;
    }
    if (!wait_for_answer(number, limit_ms)) {
        return syscall(SYS_tgkill, getpid(), thread, 0) == 0 ? THREAD_STACK_NO_ANSWER : THREAD_STACK_GONE;
    }
    for (int frame = OWN_FRAMES; frame < depth && *count < room; frame++) {
        addresses[(*count)++] = (uintptr_t)frames[frame];
    }
    atomic_store(&request, number * STATES);
    return THREAD_STACK_READ;
}

thread_stack_result thread_stack_read(int32_t thread, uintptr_t *addresses, int room, int *count,
                                      int limit_ms)
{
    *count = 0;
    pthread_mutex_lock(&turn);
    thread_stack_result result = take_signal();
    if (result == THREAD_STACK_READ) {
        result = ask(thread, addresses, room, count, limit_ms);
    }
    pthread_mutex_unlock(&turn);
    return result;
}

void thread_stack_name(uintptr_t address, char *text, int size)
{
    Dl_info info;
    text[0] = '\0';
    if (dladdr((void *)address, &info) == 0 || info.dli_fname == NULL) {
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash != NULL ? slash + 1 : info.dli_fname;
    if (info.dli_sname != NULL) {
        (void)snprintf(text, (size_t)size, "%s (%s)", info.dli_sname, file);
    } else {
        (void)snprintf(text, (size_t)size, "%s", file);
    }
}
