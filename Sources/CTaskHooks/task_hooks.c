// task_hooks.c - the hooks of the Swift runtime's executors, for one thread at a time.
//
// The runtime reads the hooks at each call, without synchronisation. So they are set once, before any thread
// has a taker, and never changed. Jobs that a thread without a taker enqueues take their usual path.

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
SWIFT void swift_task_enqueueGlobal(void *job);
SWIFT void *swift_task_pushTaskExecutorPreference(task_hooks_executor executor);
SWIFT void swift_task_popTaskExecutorPreference(void *record);
SWIFT void *swift_task_alloc(size_t size);
SWIFT void swift_task_dealloc(void *allocation);

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

void task_hooks_enqueue_global(void *job)
{
    const task_hooks_taker *const outer = taker;
    taker = NULL;
    swift_task_enqueueGlobal(job);
    taker = outer;
}

// swift/ABI/Task.h, Job: an object's two words, two for executors, the flags (the first byte is the kind),
// the number, two reserved words, and the function that is called.
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

// A task is adopted in its first step, before its own code, as `withTaskExecutorPreference` does around its
// body: the record of the preference is pushed then, and popped when the task's function has returned. For
// that, the task's first context, whose first two words are the caller's context and the function to return
// to, returns to `forget`.

#define ASYNC __attribute__((swiftasynccall))

typedef struct context {
    struct context *caller;
    ASYNC void (*on_return)(__attribute__((swift_async_context)) struct context *context,
                            __attribute__((swift_context)) void *error);
} context;

typedef struct adopted {
    context former;
    void *record;
} adopted;

typedef ASYNC void first_step_function(__attribute__((swift_async_context)) context *context);

static first_step_function *first_step;

static ASYNC void forget(__attribute__((swift_async_context)) context *context,
                         __attribute__((swift_context)) void *error)
{
    adopted *const adopted = (void *)context->caller;
    swift_task_popTaskExecutorPreference(adopted->record);
    *context = adopted->former;
    swift_task_dealloc(adopted);
    __attribute__((musttail)) return context->on_return(context, error);
}

static ASYNC void begin_adopted(__attribute__((swift_async_context)) context *context)
{
    if (taker != NULL) {
        adopted *const adopted = swift_task_alloc(sizeof *adopted);
        adopted->former = *context;
        adopted->record = swift_task_pushTaskExecutorPreference(taker->task_executor);
        context->caller = (void *)adopted;
        context->on_return = forget;
    }
    __attribute__((musttail)) return first_step(context);
}

void task_hooks_learn(void *job)
{
    const void *const address = job != NULL ? task_hooks_resume_address(job) : NULL;
    memcpy(&first_step, &address, sizeof first_step);
}

bool task_hooks_adopt(void *job)
{
    first_step_function *const substitute = begin_adopted;
    if (first_step == NULL || task_hooks_resume_address(job) != (const void *)first_step) {
        return false;
    }
    memcpy((char *)job + OFFSET_OF_FUNCTION, &substitute, sizeof substitute);
    return true;
}
