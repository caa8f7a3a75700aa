// task_hooks.c - the hooks of the Swift runtime's executors, for one thread at a time.
//
// The runtime reads a hook at each call, without synchronisation: so they are set once, before a thread
// has a taker, and stay. What a thread without one enqueues goes on as before.

#include "CTaskHooks.h"

#include <pthread.h>
#include <string.h>

#define SWIFT __attribute__((swiftcall))

typedef SWIFT void enqueue_global(void *job);
typedef SWIFT void enqueue_global_hook(void *job, enqueue_global *original);
typedef SWIFT task_hooks_executor main_executor(void);
typedef SWIFT task_hooks_executor main_executor_hook(main_executor *original);

extern enqueue_global_hook *swift_task_enqueueGlobal_hook __attribute__((weak));
extern main_executor_hook *swift_task_getMainExecutor_hook __attribute__((weak));
SWIFT uint64_t swift_task_getJobTaskId(void *job);

static _Thread_local const task_hooks_taker *taker;
static enqueue_global_hook *former_enqueue_global;
static main_executor_hook *former_main_executor;
static bool is_installed;

static SWIFT void take_global(void *job, enqueue_global *original)
{
    if (taker != NULL) {
        taker->take(taker->context, job);
    } else if (former_enqueue_global != NULL) {
        former_enqueue_global(job, original);
    } else {
        original(job);
    }
}

static SWIFT task_hooks_executor find_main_executor(main_executor *original)
{
    if (taker != NULL) {
        return taker->main_executor;
    }
    return former_main_executor != NULL ? former_main_executor(original) : original();
}

static void install(void)
{
    if (&swift_task_enqueueGlobal_hook == NULL || &swift_task_getMainExecutor_hook == NULL) {
        return;
    }
    former_enqueue_global = swift_task_enqueueGlobal_hook;
    former_main_executor = swift_task_getMainExecutor_hook;
    swift_task_enqueueGlobal_hook = take_global;
    swift_task_getMainExecutor_hook = find_main_executor;
    is_installed = true;
}

bool task_hooks_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return is_installed;
}

void task_hooks_set_taker(const task_hooks_taker *next) { taker = next; }

const task_hooks_taker *task_hooks_get_taker(void) { return taker; }

uint64_t task_hooks_task_of(void *job) { return swift_task_getJobTaskId(job); }

// swift/ABI/Task.h, Job: an object's two words, two for executors, the flags, of which the first byte is
// the kind, the number, two reserved words, and the function that is called.
enum { OFFSET_OF_KIND = 32, KIND_OF_NULLARY_CONTINUATION = 195, OFFSET_OF_FUNCTION = 56 };

bool task_hooks_is_yield(void *job)
{
    return ((const unsigned char *)job)[OFFSET_OF_KIND] == KIND_OF_NULLARY_CONTINUATION;
}

const void *task_hooks_resume_address(void *job)
{
    const void *address;
    memcpy(&address, (const char *)job + OFFSET_OF_FUNCTION, sizeof address);
    return address;
}
