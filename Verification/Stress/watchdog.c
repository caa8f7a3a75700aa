// watchdog.c - a thread that checks once a second whether there was progress, and waits for signals
// meanwhile.

#include "watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "main.h"

enum { STATISTICS_SECONDS = 60 };

static pthread_t thread;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const stress_watched *watched;
static _Atomic(uint64_t) beats;
static uint32_t patience;
static sigset_t awaited;

void stress_beat(void) { atomic_fetch_add_explicit(&beats, 1, memory_order_relaxed); }

void stress_watch(const stress_watched *next)
{
    pthread_mutex_lock(&mutex);
    watched = next;
    pthread_mutex_unlock(&mutex);
}

static void give_up(int signal)
{
    (void)signal;
    static const char sentence[] =
        "stress: the statistics cannot be read: a lock of the scheduler is held.\n";
    (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
    _exit(STRESS_HUNG);
}

static _Noreturn void end(const char *why)
{
    (void)alarm(STATISTICS_SECONDS);
    fprintf(stderr, "stress: %s.\n", why);
    if (watched != NULL) {
        watched->describe();
    }
    stress_report(&(stress_tally){0}, "", "hung");
    _exit(STRESS_HUNG);
}

static uint64_t progress(void)
{
    uint64_t sum = atomic_load_explicit(&beats, memory_order_relaxed);
    return watched == NULL ? sum : sum + watched->progress();
}

static void *watch(void *context)
{
    uint64_t before = 0;
    uint32_t still = 0;
    for (;;) {
        const struct timespec second = {.tv_sec = 1};
        int signal = sigtimedwait(&awaited, NULL, &second);
        if (signal == SIGUSR1) {
            (void)alarm(0);
            return context;
        }
        // The statistics take a mutex, which the hanging thread may hold.
        (void)alarm(STATISTICS_SECONDS);
        pthread_mutex_lock(&mutex);
        if (signal > 0) {
            end("told to end before the load had ended");
        }
        uint64_t now = progress();
        still = now == before && watched != NULL ? still + 1 : 0;
        before = now;
        if (still >= patience) {
            end("nothing has moved for too long: the load hangs");
        }
        pthread_mutex_unlock(&mutex);
    }
}

void stress_watchdog_start(uint32_t patience_seconds)
{
    patience = patience_seconds;
    (void)signal(SIGALRM, give_up);
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGINT);
    sigaddset(&awaited, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &awaited, NULL);
    if (pthread_create(&thread, NULL, watch, NULL) != 0) {
        stress_stop("a thread could not be created for the watchdog");
    }
}

void stress_watchdog_stop(void)
{
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}
