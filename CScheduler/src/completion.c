// completion.c - completion counter: the number of operations of a group that have not completed.
//
// One 64-bit word:  [ generation : 32 | waiting : 1 | notify : 1 | released : 1 | outstanding : 29 ]
//
//   C1  outstanding = enters - leaves, and is never negative.
//   C2  The generation grows by one in the very step that takes outstanding to 0, and at no other time.
//   C3  After the step of C2 the counter belongs to its waiters: leave does not read or write it again, and
//       only uses its address for the wake-up. If the counter was released before that step, it belongs to
//       that leave.
//   C4  Notifications are taken off the list before the step of C2, by the leave that would perform it, and
//       put back if other operations enter meanwhile. So no notification is left behind, and none is touched
//       through the counter afterwards.
//   C5  A notification is called by the thread that moves its state from armed to calling; cancel moves it to
//       cancelled.
//   C6  The list is swept when it has grown to twice what the last sweep kept: cancelled and spent
//       notifications are dropped. The sweep enters the counter, so that no leave is the last one while the
//       sweep holds the list.
//
// Orderings:
//   P9   leave (release) -> leave, wait, notify (acquire): the operations' writes are visible to any thread
//        that learns that their generation is complete. The last leave acquires too: it runs the
//        notifications.
//   P11  notify: pushes a notification (release) -> leave: takes the list (acquire). Publishes its fields.
//        The flag is set after the push, by a compare-exchange that checks the generation as well.
//   P12  wait: sets `waiting` -> leave: sees it in the word that it exchanges. No fence: the modification
//        order of a single word.
//
// Source: libdispatch keeps a group's generation and count in one word.

#include "completion.h"

#include "cscheduler/internals/children.h"

#include "bodies.h"
#include "port.h"
#include "tuning.h"
#include "worker.h"

enum { ARMED, CALLING, CALLED, CANCELLED };

struct csched_notification {
    csched_notification *next;
    csched_notify_function function;
    void *context;
    csched_atomic(uint32_t) state;      // C5
    csched_atomic(uint32_t) references; // the list's and the caller's
};

struct csched_completion {
    csched_atomic(uint64_t) state;
    csched_atomic(csched_notification *) notifications;
    csched_atomic(uint32_t) listed;   // since the last sweep, plus those it kept
    csched_atomic(uint32_t) sweep_at; // C6
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the generation is the upper half of the word");

#define GENERATION_ONE (UINT64_C(1) << 32)
#define WAITING (UINT64_C(1) << 31)
#define NOTIFY (UINT64_C(1) << 30)
#define RELEASED (UINT64_C(1) << 29)

static uint32_t outstanding(uint64_t state) { return (uint32_t)(state & CSCHED_COMPLETION_MAX); }
static uint32_t generation(uint64_t state) { return (uint32_t)(state >> 32); }
static const void *generation_address(const csched_completion *counter)
{
    return (const char *)&counter->state + 4;
}

csched_completion *csched_completion_create(void)
{
    csched_completion *counter = csched_allocate(sizeof *counter, 0);
    if (counter != NULL) {
        csched_init(&counter->state, 0);
        csched_init(&counter->notifications, NULL);
        csched_init(&counter->listed, 0);
        csched_init(&counter->sweep_at, CSCHED_SWEEP_LEAST);
    }
    return counter;
}

static void unreference(csched_notification *notification)
{
    if (csched_fetch_sub(&notification->references, 1, acq_rel) == 1) {
        csched_free(notification);
    }
}

static void call(csched_notification *notification)
{
    uint32_t armed = ARMED;
    // relaxed: only the decision matters; the notification came with the list (P11).
    if (csched_cas(&notification->state, &armed, CALLING, relaxed, relaxed)) { // C5
        notification->function(notification->context);
        csched_store(&notification->state, CALLED, relaxed); // for the sweep (C6)
    }
}

static void call_all(csched_notification *list)
{
    for (csched_notification *next; list != NULL; list = next) {
        next = list->next;
        call(list);
        unreference(list);
    }
}

// Pushes a chain at the front of the list. The list is emptied only as a whole, so there is no ABA.
static void push(csched_completion *counter, csched_notification *first)
{
    csched_notification *last = first;
    while (last->next != NULL) {
        last = last->next;
    }
    csched_notification *head = csched_load(&counter->notifications, relaxed);
    do {
        last->next = head;
    } while (!csched_cas_weak(&counter->notifications, &head, first, release, relaxed)); // P11
}

static csched_notification *take_all(csched_completion *counter)
{
    return csched_exchange(&counter->notifications, NULL, acquire); // P11
}

static csched_notification *concatenate(csched_notification *front, csched_notification *back)
{
    if (front == NULL) {
        return back;
    }
    csched_notification *last = front;
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = back;
    return front;
}

// No other thread can reach the counter: notifications that are still in its list were cancelled, or called
// by csched_completion_notify.
static void dispose(csched_completion *counter)
{
    call_all(take_all(counter));
    csched_free(counter);
}

void csched_completion_release(csched_completion *counter)
{
    uint64_t seen = csched_load(&counter->state, acquire);
    do {
        csched_check((seen & RELEASED) == 0, "released twice");
        if (outstanding(seen) == 0) {
            dispose(counter);
            return;
        }
    } while (!csched_cas_weak(&counter->state, &seen, seen | RELEASED, acq_rel, acquire)); // C3
}

void csched_completion_enter(csched_completion *counter, uint32_t count)
{
    // relaxed: entering publishes nothing; the submission that follows does.
    uint64_t before = csched_fetch_add(&counter->state, count, relaxed);
    csched_check(count <= CSCHED_COMPLETION_MAX - outstanding(before),
                 "more than 2^29 - 1 operations are outstanding");
}

csched_conclusion csched_completion_leave_only(csched_completion *counter, uint32_t count)
{
    const void *sleepers = generation_address(counter);
    csched_notification *taken = NULL;
    uint64_t seen = csched_load(&counter->state, relaxed);
    for (;;) {
        csched_check(outstanding(seen) >= count, "left more often than entered"); // C1
        bool last = outstanding(seen) == count;
        if (last && (seen & NOTIFY) != 0) { // C4: we still hold `count`, so the generation stays open
            if (csched_cas_weak(&counter->state, &seen, seen & ~NOTIFY, acquire, relaxed)) {
                taken = concatenate(taken, take_all(counter));
                seen &= ~NOTIFY;
            }
            continue;
        }
        if (!last && taken != NULL) { // C4: other operations entered, so the last leave will be theirs
            push(counter, taken);
            taken = NULL;
            (void)csched_fetch_or(&counter->state, NOTIFY, release);
            seen = csched_load(&counter->state, relaxed);
            continue;
        }
        uint64_t next = seen - count;
        if (last) {
            next = (next & ~(WAITING | RELEASED)) + GENERATION_ONE; // C2
        }
        if (csched_cas_weak(&counter->state, &seen, next, acq_rel, relaxed)) { // P9, P12
            if (!last) {
                return (csched_conclusion){.last = false};
            }
            break;
        }
    }
    if ((seen & WAITING) != 0) {
        csched_futex_wake(sleepers, INT32_MAX); // by address alone: the counter may be gone already (C3)
    }
    return (csched_conclusion){
        .last = true, .notifications = taken, .released = (seen & RELEASED) != 0 ? counter : NULL};
}

void csched_completion_conclude(csched_conclusion conclusion)
{
    call_all(conclusion.notifications);
    if (conclusion.released != NULL) {
        dispose(conclusion.released);
    }
}

bool csched_completion_leave(csched_completion *counter, uint32_t count)
{
    csched_conclusion conclusion = csched_completion_leave_only(counter, count);
    csched_completion_conclude(conclusion);
    return conclusion.last;
}

// C6. The caller's last use of the counter: the leave may be the one that frees it.
static void sweep(csched_completion *counter)
{
    uint64_t seen = csched_load(&counter->state, relaxed);
    do {
        if (outstanding(seen) == 0 || outstanding(seen) == CSCHED_COMPLETION_MAX) {
            return;
        }
    } while (!csched_cas_weak(&counter->state, &seen, seen + 1, relaxed, relaxed));
    csched_notification *kept = NULL;
    uint32_t count = 0;
    for (csched_notification *each = take_all(counter), *next; each != NULL; each = next) {
        next = each->next;
        uint32_t state = csched_load(&each->state, relaxed);
        if (state == CALLED || state == CANCELLED) {
            unreference(each);
        } else {
            each->next = kept;
            kept = each;
            count++;
        }
    }
    csched_store(&counter->listed, count, relaxed);
    csched_store(&counter->sweep_at, 2 * count + CSCHED_SWEEP_LEAST, relaxed);
    if (kept != NULL) {
        push(counter, kept);
        (void)csched_fetch_or(&counter->state, NOTIFY, release);
    }
    (void)csched_completion_leave(counter, 1);
}

static void sweep_if_long(csched_completion *counter)
{
    if (csched_fetch_add(&counter->listed, 1, relaxed) >= csched_load(&counter->sweep_at, relaxed)) {
        sweep(counter);
    }
}

csched_notification *csched_completion_notify(csched_completion *counter, csched_notify_function function,
                                              void *context)
{
    csched_notification *notification = csched_allocate(sizeof *notification, 0);
    if (notification == NULL) {
        return NULL;
    }
    notification->next = NULL;
    notification->function = function;
    notification->context = context;
    csched_init(&notification->state, ARMED);
    csched_init(&notification->references, 2);

    uint64_t seen = csched_load(&counter->state, acquire);
    if (outstanding(seen) == 0) {
        csched_store(&notification->references, 1, relaxed);
        call(notification);
        return notification;
    }
    uint32_t current = generation(seen);
    push(counter, notification);
    while (generation(seen) == current && outstanding(seen) != 0) {
        if (csched_cas_weak(&counter->state, &seen, seen | NOTIFY, acq_rel, acquire)) {
            sweep_if_long(counter);
            return notification;
        }
    }
    // The generation ended between the read and the flag: its last leave saw no flag, so the call is made
    // here. The spent notification stays in the list until a later leave takes it, or the counter is freed.
    call(notification);
    return notification;
}

bool csched_notification_cancel(csched_notification *notification)
{
    uint32_t armed = ARMED;
    bool cancelled = csched_cas(&notification->state, &armed, CANCELLED, relaxed, relaxed); // C5
    unreference(notification);
    return cancelled;
}

void csched_notification_release(csched_notification *notification) { unreference(notification); }

typedef struct {
    const csched_completion *counter;
    uint32_t generation;
    csched_function run;
    csched_wanted_function wanted;
    csched_wanted_children_function wanted_children;
    const void *wanted_by;
} awaited;

static bool is_complete(const void *context)
{
    const awaited *wait = context;
    return generation(csched_load(&wait->counter->state, acquire)) != wait->generation; // P9
}

static bool counts_here(const void *context, const csched_operation *operation)
{
    const awaited *wait = context;
    return operation->counter == wait->counter;
}

// Calls the embedder's predicate for an operation or a child.
static bool is_wanted(const void *context, const csched_operation *operation)
{
    const awaited *wait = context;
    if (operation->run == wait->run) {
        return wait->wanted(wait->wanted_by, operation->context, operation->extra);
    }
    csched_children_turn turn = csched_children_turn_of(operation);
    return turn.children != NULL && wait->wanted_children(wait->wanted_by, turn.children, turn.child);
}

// Sleeps until the generation is complete.
static csched_wait_result sleep_until(csched_completion *counter, uint32_t current, uint64_t deadline)
{
    uint64_t seen = csched_load(&counter->state, acquire);
    while (generation(seen) == current && outstanding(seen) != 0) {
        if ((seen & WAITING) == 0 &&
            !csched_cas_weak(&counter->state, &seen, seen | WAITING, acquire, acquire)) { // P12
            continue;
        }
        uint64_t left = deadline;
        if (deadline != CSCHED_FOREVER) {
            uint64_t now = csched_now_ns();
            if (now >= deadline) {
                return CSCHED_WAIT_TIMED_OUT;
            }
            left = deadline - now;
        }
        (void)csched_futex_wait(generation_address(counter), current, left);
        seen = csched_load(&counter->state, acquire); // P9
    }
    return CSCHED_WAIT_COMPLETED;
}

// Sleeps. On a worker, without a time limit, first runs the operations that may be run.
static csched_wait_result wait(csched_completion *counter, uint64_t timeout_ns, awaited *wait,
                               csched_wait *nested)
{
    uint64_t seen = csched_load(&counter->state, acquire);
    if (outstanding(seen) == 0) {
        return CSCHED_WAIT_COMPLETED;
    }
    if (timeout_ns == 0) {
        return CSCHED_WAIT_TIMED_OUT;
    }
    wait->counter = counter;
    wait->generation = generation(seen);
    uint64_t now = timeout_ns == CSCHED_FOREVER ? 0 : csched_now_ns();
    uint64_t deadline = timeout_ns > UINT64_MAX - now ? CSCHED_FOREVER : now + timeout_ns;
    csched_worker *worker = csched_worker_self();
    if (worker == NULL) {
        return sleep_until(counter, wait->generation, deadline);
    }
    if (deadline == CSCHED_FOREVER) {
        csched_check_wait(worker, counter);
    }
    if (deadline == CSCHED_FOREVER && nested != NULL) { // X7; a limit is to hold
        nested->is_over = is_complete;
        nested->context = wait;
        while (!is_complete(wait) && csched_worker_run_nested(worker, nested)) {
        }
    }
    csched_worker_settle(worker);
    csched_worker_block(worker);
    csched_wait_result result = sleep_until(counter, wait->generation, deadline);
    csched_worker_unblock(worker);
    return result;
}

csched_wait_result csched_completion_wait_helping(csched_completion *counter, uint64_t timeout_ns,
                                                  csched_helping helping)
{
    awaited here = {.counter = counter};
    csched_wait nested = {.belongs = helping == CSCHED_HELP_ANYBODY ? NULL : counts_here};
    return wait(counter, timeout_ns, &here, helping == CSCHED_HELP_NOBODY ? NULL : &nested);
}

csched_wait_result csched_completion_wait_running(csched_completion *counter, csched_function run,
                                                  csched_wanted_function wanted,
                                                  csched_wanted_children_function wanted_children,
                                                  const void *wanted_by)
{
    awaited here = {.counter = counter,
                    .run = run,
                    .wanted = wanted,
                    .wanted_children = wanted_children,
                    .wanted_by = wanted_by};
    csched_wait nested = {.belongs = is_wanted, .only_own = true};
    return wait(counter, CSCHED_FOREVER, &here, &nested);
}

csched_wait_result csched_completion_wait(csched_completion *counter, uint64_t timeout_ns)
{
    return csched_completion_wait_helping(counter, timeout_ns, CSCHED_HELP_OWN);
}

uint32_t csched_completion_outstanding(const csched_completion *counter)
{
    return outstanding(csched_load(&counter->state, relaxed));
}
