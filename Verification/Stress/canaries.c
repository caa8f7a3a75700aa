// canaries.c - intentional defects, one for each kind of report that the sanitizers are trusted to make.
//
// A sanitizer that was not switched on, or that a wrong annotation has blinded, reports nothing, just as for
// a correct program. So Scripts/sanitizers trusts "no report" only after it has seen these reports.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../CScheduler/src/port.h"

#include "cscheduler/completion.h"
#include "cscheduler/scheduler.h"

enum { USAGE = 64, IMPOSSIBLE = 69, STEPS = 100000 }; // STEPS: a shorter race is missed

static volatile uint32_t shared;

static void *add(void *context)
{
    for (int step = 0; step < STEPS; step++) {
        shared = shared + 1;
    }
    return context;
}

// Two unordered threads.
static void race(void)
{
    pthread_t threads[2];
    for (int index = 0; index < 2; index++) {
        if (pthread_create(&threads[index], NULL, add, NULL) != 0) {
            abort();
        }
    }
    for (int index = 0; index < 2; index++) {
        pthread_join(threads[index], NULL);
    }
}

typedef struct {
    uint32_t sum;
    _Atomic(uint32_t) begun;
} meeting;

static void add_beside(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    (void)disposition;
    meeting *both = context;
    // relaxed: the operations meet, so they run on two workers, and no order is established
    atomic_fetch_add_explicit(&both->begun, 1, memory_order_relaxed);
    while (atomic_load_explicit(&both->begun, memory_order_relaxed) < 2) {
        sched_yield();
    }
    for (int step = 0; step < STEPS; step++) {
        *(volatile uint32_t *)&both->sum = both->sum + 1;
    }
}

// Two unordered operations. The scheduler's annotations for ThreadSanitizer about its own orders (fences,
// grace periods) must not, as a side effect, order the bodies of operations.
static void race_of_operations(void)
{
    csched_configuration configuration = csched_configuration_default();
    csched_scheduler *scheduler = NULL;
    csched_completion *counter = csched_completion_create();
    meeting both = {0};
    configuration.workers = 2;
    if (counter == NULL || csched_scheduler_create(&configuration, &scheduler) != CSCHED_OK) {
        abort();
    }
    csched_operation operation = {.run = add_beside, .context = &both, .counter = counter};
    for (int index = 0; index < 2; index++) {
        if (csched_submit(scheduler, &operation) != CSCHED_OK) {
            abort();
        }
    }
    if (csched_completion_wait(counter, CSCHED_FOREVER) != CSCHED_WAIT_COMPLETED) {
        abort();
    }
    csched_scheduler_destroy(scheduler);
    csched_completion_release(counter);
}

static void use_after_free(void)
{
    char *volatile memory = malloc(16);
    free(memory);
    memory[3] = 1;
}

static void leak(void)
{
    char *volatile memory = malloc(16);
    if (memory != NULL) {
        memory[0] = 1;
    }
    memory = NULL;
}

static void overflow(void)
{
    volatile int32_t largest = INT32_MAX;
    largest = largest + 1;
}

static void misalign(void)
{
    static char bytes[16];
    volatile uintptr_t address = ((uintptr_t)bytes | 7) - 6;
    *(uint32_t *)address = 1; // not through a volatile pointer: the sanitizer ignores those
}

// The system refuses a call that it served earlier. Readers have no fences of their own, and must not be left
// without the barriers of that call.
static void barrier_refused(void)
{
    struct sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof refuse / sizeof refuse[0], .filter = refuse};
    csched_prepare_fences();
    csched_fence_heavy();
    if (!csched_has_membarrier || prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        exit(IMPOSSIBLE);
    }
    csched_fence_heavy();
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*commit)(void);
    } canaries[] = {
        {"race", race},
        {"race-of-operations", race_of_operations},
        {"use-after-free", use_after_free},
        {"leak", leak},
        {"overflow", overflow},
        {"misaligned", misalign},
        {"barrier-refused", barrier_refused},
    };
    for (size_t index = 0; index < sizeof canaries / sizeof canaries[0]; index++) {
        if (count == 2 && strcmp(arguments[1], canaries[index].name) == 0) {
            canaries[index].commit();
            return 0;
        }
    }
    fprintf(stderr, "canaries: '%s' is not the name of a canary.\n", count > 1 ? arguments[1] : "");
    return USAGE;
}
