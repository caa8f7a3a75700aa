// disturber.c - what an application may do to a busy scheduler.

#include "disturber.h"

enum { PAUSE_MOST_NS = 4000000, SUSPENDED_MOST_NS = 300000 };

// While the scheduler is suspended, once no worker is in a body, no body may start. For each worker
// `executed` is read before `running`, so the number to compare with comes from a second reading.
static void check_suspended(stress_load *load, uint64_t duration_ns)
{
    if (csched_scheduler_statistics(load->scheduler).running != 0) {
        stress_sleep_ns(duration_ns);
        return;
    }
    uint64_t before = csched_scheduler_statistics(load->scheduler).executed;
    stress_sleep_ns(duration_ns);
    if (csched_scheduler_statistics(load->scheduler).executed != before) {
        stress_note(&load->wrong);
    }
}

static void suspend(stress_load *load, stress_random *random)
{
    uint32_t depth = 1 + stress_below(random, 2);
    for (uint32_t level = 0; level < depth; level++) {
        csched_scheduler_suspend(load->scheduler);
    }
    check_suspended(load, stress_below(random, SUSPENDED_MOST_NS));
    for (uint32_t level = 0; level < depth; level++) {
        csched_scheduler_resume(load->scheduler);
    }
}

static void count_event(void *context, csched_event event, uint32_t worker)
{
    (void)event;
    (void)worker;
    atomic_fetch_add_explicit((_Atomic(uint64_t) *)context, 1, memory_order_relaxed);
}

static void observe(stress_load *load, bool anybody)
{
    static _Atomic(uint64_t) events;
    csched_observer observer = {.notify = count_event, .context = &events};
    stress_expect_ok(csched_scheduler_observe(load->scheduler, anybody ? &observer : NULL),
                     "csched_scheduler_observe");
}

static void *disturb(void *context)
{
    stress_disturber *disturber = context;
    stress_load *load = disturber->load;
    stress_random *random = &disturber->random;
    while (!atomic_load_explicit(&disturber->ended, memory_order_relaxed)) {
        switch (stress_below(random, 4)) {
        case 0:
            suspend(load, random);
            break;
        case 1: {
            uint32_t workers = 1 + stress_below(random, load->workers + 2);
            stress_expect_ok(csched_scheduler_resize(load->scheduler, workers), "csched_scheduler_resize");
            break;
        }
        case 2:
            observe(load, stress_one_in(random, 2));
            break;
        default:
            (void)csched_scheduler_statistics(load->scheduler);
        }
        stress_sleep_ns(stress_below(random, PAUSE_MOST_NS));
    }
    observe(load, false);
    stress_expect_ok(csched_scheduler_resize(load->scheduler, load->workers), "csched_scheduler_resize");
    return NULL;
}

void stress_disturber_start(stress_disturber *disturber, stress_load *load, uint64_t seed)
{
    *disturber = (stress_disturber){.load = load, .random = {seed}};
    if (pthread_create(&disturber->thread, NULL, disturb, disturber) != 0) {
        stress_stop("a thread could not be created for the disturber");
    }
}

void stress_disturber_stop(stress_disturber *disturber)
{
    atomic_store_explicit(&disturber->ended, true, memory_order_relaxed);
    pthread_join(disturber->thread, NULL);
}
