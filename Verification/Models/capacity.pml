/* capacity.pml - backpressure: capacity.c, K1 and K2, and make_room in submit.c.
 *
 * There are fewer places than submitters. A submitter that finds none reads `room`, announces itself in
 * `waiting`, tries once more, checks whether the scheduler is closing, and sleeps on the value of `room` that
 * it read. A worker takes an operation, lowers `pending`, checks `waiting`, changes `room` and wakes one more
 * submitter than the places it released, because a woken submitter may be a stopped thread: one submitter may
 * stop for ever while it sleeps. The scheduler may be closed at any time.
 *   BUSY   No worker ever takes anything, and the scheduler is closed.
 *
 * Properties. `pending` never exceeds the limit (K1). A submitter that sleeps though there is room, or though
 * the scheduler is closed, is an invalid end state.
 *   ends    every submitter that is not stopped has a place, or is refused
 *
 * Runs: name | macros | checks
 *   run three | | safety ends
 *   run busy  | -DBUSY | safety ends
 *
 * Mutants: name | run | what fails | what is changed
 *   mutant no_second_try    | three | invalid end state | announces itself, and sleeps (K2)
 *   mutant announced_late   | three | invalid end state | tries, then announces itself (K2, P18)
 *   mutant room_read_late   | three | invalid end state | room is read after the second try (K2)
 *   mutant room_unchanged   | three | invalid end state | a worker makes room, and `room` stays (K2)
 *   mutant looked_early     | three | invalid end state | looks at `waiting`, then lowers `pending` (K2, P18)
 *   mutant wakes_no_more    | three | invalid end state | wakes as many as there are places, and not one more
 *   mutant close_unseen     | busy  | invalid end state | does not look at CLOSING before it sleeps
 *   mutant close_silent     | busy  | invalid end state | the close wakes no sleeper
 *   mutant close_same_room | busy  | invalid end state | the close does not change `room`
 *   mutant entered_by_store | three | pending<=1 | pending is compared, then stored (K1)
 */

#define SUBMITTERS 3
#define LIMIT      1

byte pending;
byte waiting;
byte room;
bool asleep[SUBMITTERS];
bool closing;

bool is_still;  /* one submitter is stopped */
byte finished;  /* submitters */
byte queued;    /* operations in the queues */

#define over (finished == SUBMITTERS)

inline try_enter()
{
#ifdef MUTANT_entered_by_store
    atomic { seen = pending; entered = seen < LIMIT }
    if
    :: entered -> atomic { pending = pending + 1; assert(pending <= LIMIT) }
    :: else
    fi
#else
    atomic { /* K1 */
        entered = pending < LIMIT;
        if
        :: entered -> pending++; assert(pending <= LIMIT)
        :: else
        fi
    }
#endif
}

proctype submitter(byte me)
{
    byte seen, value;
    bool entered, refused;

    try_enter();
    do
    :: entered || refused -> break
    :: else ->
#ifndef MUTANT_room_read_late
        value = room;
#endif
#ifdef MUTANT_announced_late
        try_enter();
        waiting++;
#else
        waiting++; /* K2 */
#ifndef MUTANT_no_second_try
        try_enter();
#endif
#endif
#ifndef MUTANT_close_unseen
        refused = !entered && closing;
#endif
#ifdef MUTANT_room_read_late
        value = room;
#endif
        if
        :: entered || refused
        :: else ->
            atomic { /* futex_wait compares and sleeps in one step */
                if
                :: room == value -> asleep[me] = true
                :: else
                fi
            }
            if
            :: !asleep[me]
            :: atomic { !is_still -> is_still = true; goto stops }
            fi
        fi;
        waiting--
    od;
    if
    :: entered -> queued++
    :: else
    fi;
stops:
    finished++
}

/* futex_wake: any `count` of the sleepers, possibly one that is stopped in its sleep. */
inline wake(count)
{
    atomic {
        do
        :: count > 0 && asleep[0] -> asleep[0] = false; count--
        :: count > 0 && asleep[1] -> asleep[1] = false; count--
        :: count > 0 && asleep[2] -> asleep[2] = false; count--
        :: count == 0 || !(asleep[0] || asleep[1] || asleep[2]) -> count = 0; break
        od
    }
}

#ifndef BUSY
proctype worker()
{
    byte count;
    bool others;

    do
    :: atomic { queued > 0 -> queued-- }
#ifdef MUTANT_looked_early
        others = waiting != 0;
        pending--;
#else
        pending--;
        others = waiting != 0; /* K2 */
#endif
        if
        :: others ->
#ifndef MUTANT_room_unchanged
            room++;
#endif
#ifdef MUTANT_wakes_no_more
            count = 1;
#else
            count = 2;
#endif
            wake(count)
        :: else
        fi
    :: over && queued == 0 -> break
    od
}
#endif

proctype closer()
{
    byte count;

    if
    :: closing = true;
#ifndef MUTANT_close_silent
#ifndef MUTANT_close_same_room
        room++; /* csched_capacity_interrupt */
#endif
        count = SUBMITTERS;
        wake(count)
#endif
#ifndef BUSY
    :: true -> skip
#endif
    fi
}

init {
    atomic { run submitter(0); run submitter(1); run submitter(2); run closer()
#ifndef BUSY
        ; run worker()
#endif
    }
}

ltl ends { <> over }
