// inspection.c - see CInspection.h.
//
// Invariants:
//   I1  the signal handler only posts a semaphore, which POSIX allows. The rest is done by a thread that
//       holds no locks, whatever locks the interrupted thread holds.
//   I2  that thread blocks all other signals, which belong to the program, and accepts this one: threads of
//       libdispatch block it, and if all other threads did so, too, the signal would never arrive.

#include "CInspection.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

unsigned char inspection_switch;

// Two threads may change different bits concurrently.
static void turn(unsigned char bit, bool is_on)
{
    if (is_on) {
        (void)__atomic_fetch_or(&inspection_switch, bit, __ATOMIC_RELAXED);
    } else {
        (void)__atomic_fetch_and(&inspection_switch, (unsigned char)~bit, __ATOMIC_RELAXED);
    }
}

void inspection_turn(bool is_on) { turn(INSPECTION_KEEPS, is_on); }

void inspection_turn_traces(bool are_on) { turn(INSPECTION_TRACES, are_on); }

void inspection_turn_records(bool are_on) { turn(INSPECTION_RECORDS, are_on); }

// In a forked child nothing is kept, traced or recorded by name: other threads may have held the locks.
static void turn_off(void) { __atomic_store_n(&inspection_switch, 0, __ATOMIC_RELAXED); }

__attribute__((constructor)) static void look_at_environment(void)
{
    const char *value = getenv("COOPERATIONS_INSPECT");
    if (value && strcmp(value, "1") == 0) {
        inspection_turn(true);
    }
    (void)pthread_atfork(NULL, NULL, turn_off);
}

long inspection_thread(void) { return syscall(SYS_gettid); }

static sem_t arrivals;
static void (*what_to_call)(void);

static void arrived(int signal)
{
    int kept = errno;
    (void)signal;
    sem_post(&arrivals); // I1
    errno = kept;
}

static void *serve(void *unused)
{
    (void)unused;
    while (true) {
        if (sem_wait(&arrivals) == 0) {
            what_to_call();
        }
    }
    return NULL;
}

static int start_thread(int signal)
{
    sigset_t all, former;
    pthread_attr_t attributes;
    pthread_t thread;
    int failure = pthread_attr_init(&attributes);
    if (failure) {
        return failure;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &former); // I2
    failure = pthread_create(&thread, &attributes, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    pthread_attr_destroy(&attributes);
    return failure;
}

static int install(int signal)
{
    struct sigaction action = {.sa_handler = arrived, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sem_init(&arrivals, 0, 0) || sigaction(signal, &action, NULL)) {
        return errno;
    }
    return start_thread(signal);
}

int inspection_on_signal(int signal, void (*call)(void))
{
    static unsigned char is_installed;
    if (__atomic_exchange_n(&is_installed, 1, __ATOMIC_ACQ_REL)) {
        return EALREADY;
    }
    what_to_call = call;
    int failure = install(signal);
    if (failure) {
        __atomic_store_n(&is_installed, 0, __ATOMIC_RELEASE);
    }
    return failure;
}
