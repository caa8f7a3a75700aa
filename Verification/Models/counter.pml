/* counter.pml - the completion counter: generation, outstanding, the three flags, the list: completion.c.
 *
 * Two operations are outstanding from the beginning; one of them enters a third, then leaves twice. The owner
 * registers a notification, may wait, may begin a second generation, releases the counter, and releases the
 * notification, which may cancel it. A user waits, or registers a second notification, or does neither. Each
 * compare-exchange is one step, and every access to the counter or to a notification asserts that it is not
 * freed. `touch` represents an access.
 *
 * Properties. Freed memory is not touched (C3, C4); outstanding is never negative (C1); a wait returns, and a
 * notification is called, only when its generation is complete; each notification is called once, or not at
 * all if a cancel was in time (C5); the counter and the notifications are freed, once. A waiter that is never
 * woken is an invalid end state.
 *   ends    every thread reaches its end
 *
 * Runs: name | macros | checks
 *   run all       | | safety
 *   run no_sweep  | -DNO_SWEEP | ends
 *
 * Mutants: name | run | what fails | what is changed
 *   mutant split_step        | all | !(freed) | the generation grows a step after outstanding is 0 (C2)
 *   mutant no_wake           | all | invalid end state | the last leave wakes nobody (P12)
 *   mutant wake_one          | all | invalid end state | the last leave wakes one waiter of two
 *   mutant flag_forgotten    | all | invalid end state | a waiter sleeps and does not set WAITING (P12)
 *   mutant look_after        | all | !(freed) | leave reads the word again after the step of C2 (C3)
 *   mutant notify_after      | all | !(freed) | the list is taken after the step of C2 (C4)
 *   mutant no_give_back      | all | generations>=due | the list is called though more have entered (C4)
 *   mutant flag_unchecked    | all | invalid end state | NOTIFY is set in any generation (P11)
 *   mutant call_unasked      | all | withdrawn | a cancelled notification is called (C5)
 *   mutant sweep_uncounted   | all | invalid end state | the sweep does not enter (C6)
 *   mutant release_at_once   | all | generations>=due | release frees though some are outstanding (C3)
 *   mutant release_forgotten | all | assertion violated freed | the last leave does not look at RELEASED (C3)
 *   mutant stale_retry       | no_sweep | <> ends | leave does not load again after a failed exchange
 */

#define WAITING        32
#define NOTIFY         16
#define RELEASED       8
#define GENERATION_ONE 64
#define outstanding(s) ((s) & 7)
#define generation(s)  ((s) / GENERATION_ONE)

#define ARMED     0
#define CALLING   1
#define CALLED    2
#define CANCELLED 3

#define OWNER 0
#define USER  1
#define ALL   4

short word = 2;  /* no operation has left yet, generation 0 */
byte list;        /* the first notification, or 0 */
bool freed;       /* the counter */

byte next_of[3];  /* of notifications 1 and 2 */
byte state_of[3];
byte references[3];
byte calls[3];
byte due[3];      /* how many generations must be complete when it is called */
bool withdrawn[3];

byte generations; /* complete ones */
bool asleep[2];   /* on the generation's address */
byte finished;
bool user_done;   /* the user no longer touches the counter */

#define touch assert(!freed)
#define touch_node(n) assert(references[n] > 0)

/* The last reference frees the notification: nothing of it remains in the state. */
inline unreference(n)
{
    atomic {
        touch_node(n); references[n]--;
        if
        :: references[n] == 0 -> state_of[n] = ARMED; next_of[n] = 0; due[n] = 0
        :: else
        fi
    }
}

inline call(n)
{
    atomic { /* C5 */
        touch_node(n);
        if
#ifdef MUTANT_call_unasked
        :: true ->
#else
        :: state_of[n] == ARMED ->
#endif
            state_of[n] = CALLING; calls[n]++; assert(generations >= due[n])
        :: else -> goto settled
        fi
    }
    state_of[n] = CALLED;
settled:
    skip
}

inline call_all()
{
    do
    :: atomic { taken != 0 -> touch_node(taken); node = taken; taken = next_of[node] }
        call(node);
        unreference(node)
    :: else -> node = 0; break
    od
}

inline push(first)
{
    touch;
    if
    :: next_of[first] == 0 -> next_of[first] = list
    :: else -> assert(list == 0)
    fi;
    list = first
}

inline take_all()
{
    touch;
    if
    :: taken == 0 -> taken = list
    :: taken != 0 && next_of[taken] == 0 -> next_of[taken] = list
    :: else -> assert(list == 0)
    fi;
    list = 0
}

inline dispose()
{
    atomic { take_all() }
    call_all();
    atomic { touch; freed = true }
}

/* csched_completion_leave, of 1. */
inline leave()
{
    atomic { touch; seen = word }
    do
#ifndef MUTANT_notify_after
    :: atomic { /* C4: this leave would be the last */
        outstanding(seen) == 1 && (seen & NOTIFY) != 0 ->
        touch;
        if
        :: word == seen -> word = word & ~NOTIFY; seen = word
        :: else -> seen = word; goto again
        fi
       }
        atomic { take_all() }
again:
        skip
#endif
    :: atomic { /* C4: others have entered, so it is not the last */
        outstanding(seen) != 1 && taken != 0 ->
#ifdef MUTANT_no_give_back
        skip
       }
        call_all()
#else
        push(taken); taken = 0
       }
        atomic { touch; word = word | NOTIFY }
        atomic { touch; seen = word }
#endif
    :: atomic { /* P9, P12 */
        else ->
        touch; assert(outstanding(seen) > 0); /* C1 */
        if
#ifdef MUTANT_stale_retry
        :: word != seen -> skip
#else
        :: word != seen -> seen = word
#endif
        :: word == seen && outstanding(seen) != 1 -> word = word - 1; seen = 0; break
        :: word == seen && outstanding(seen) == 1 ->
#ifdef MUTANT_split_step
            word = word - 1; break
#else
            word = ((word - 1) & ~(WAITING | RELEASED)) + GENERATION_ONE; generations++; break /* C2 */
#endif
        fi
       }
    od;
    if
    :: seen != 0 -> /* the generation is complete, and the counter now belongs to its waiters (C3) */
#ifdef MUTANT_split_step
        atomic { touch; word = (word & ~(WAITING | RELEASED)) + GENERATION_ONE; generations++ }
#endif
#ifdef MUTANT_look_after
        touch;
#endif
#ifdef MUTANT_notify_after
        if
        :: (seen & NOTIFY) != 0 -> atomic { take_all(); word = word & ~NOTIFY }
        :: else
        fi;
#endif
        atomic {
            if
#ifdef MUTANT_no_wake
            :: false
#elif defined MUTANT_wake_one
            :: (seen & WAITING) != 0 && asleep[OWNER] -> asleep[OWNER] = false
            :: (seen & WAITING) != 0 && asleep[USER] -> asleep[USER] = false
#else
            :: (seen & WAITING) != 0 -> asleep[OWNER] = false; asleep[USER] = false
#endif
            :: else
            fi
        }
        call_all();
        if
#ifdef MUTANT_release_forgotten
        :: false
#else
        :: (seen & RELEASED) != 0 -> dispose()
#endif
        :: else
        fi;
        seen = 0
    :: else
    fi
}

inline wait(me)
{
    atomic {
        touch; seen = word; current = generation(seen);
        if
        :: outstanding(seen) == 0 -> goto returned
        :: else
        fi
    }
    do
    :: atomic {
        generation(seen) == current && outstanding(seen) != 0 ->
        touch;
        if
        :: (seen & WAITING) == 0 && word != seen -> seen = word; goto again
#ifndef MUTANT_flag_forgotten
        :: (seen & WAITING) == 0 && word == seen -> word = word | WAITING
#endif
        :: else
        fi
       }
        atomic { /* futex_wait compares and sleeps in one step */
            touch;
            if
            :: generation(word) == current -> asleep[me] = true
            :: else
            fi
        }
        !asleep[me];
        atomic { touch; seen = word }
again:
        skip
    :: else -> break
    od;
    assert(generations > current);
returned:
    atomic { seen = 0; current = 0 }
}

/* C6. It may sweep here at any length of the list. */
inline sweep()
{
    atomic {
        touch;
        if
        :: outstanding(word) == 0 -> goto swept
#ifdef MUTANT_sweep_uncounted
        :: else
#else
        :: else -> word = word + 1
#endif
        fi
    }
    atomic { take_all() }
    kept = 0;
    do
    :: atomic {
        taken != 0 ->
        touch_node(taken); node = taken; taken = next_of[node];
        if
        :: state_of[node] == CALLED || state_of[node] == CANCELLED -> goto drop
        :: else -> next_of[node] = kept; kept = node; goto next_node
        fi
       }
drop:
        unreference(node);
next_node:
        skip
    :: atomic { else -> node = 0; break }
    od;
    if
    :: kept != 0 ->
        atomic { push(kept); kept = 0 }
        atomic { touch; word = word | NOTIFY }
    :: else
    fi;
#ifndef MUTANT_sweep_uncounted
    leave();
#endif
swept:
    skip
}

inline notify(n)
{
    atomic {
        touch; seen = word; current = generation(seen); references[n] = 2;
        if
        :: outstanding(seen) == 0 -> references[n] = 1; goto own_call
        :: else -> due[n] = current + 1
        fi
    }
    atomic { push(n) }
    do
    :: atomic {
        generation(seen) == current && outstanding(seen) != 0 ->
        touch;
        if
#ifdef MUTANT_flag_unchecked
        :: true -> word = word | NOTIFY; seen = 0; current = 0; break
#else
        :: word == seen -> word = word | NOTIFY; seen = 0; current = 0; break
#endif
        :: else -> seen = word
        fi
       }
    :: else ->
        goto own_call
    od;
#ifndef NO_SWEEP
    if
    :: true -> skip
    :: true -> sweep()
    fi;
#endif
    goto notified;
own_call: /* nothing was outstanding, or the generation ended between the check and the flag */
    call(n);
notified:
    atomic { seen = 0; current = 0 }
}

inline give_back(n)
{
    if
    :: true -> unreference(n)
    :: atomic {
        true ->
        if
        :: state_of[n] == ARMED -> state_of[n] = CANCELLED; withdrawn[n] = true
        :: else
        fi
       }
        unreference(n)
    fi
}

proctype operation(bool spawns)
{
    short seen;
    byte taken, node;

    if
    :: spawns ->
        atomic { touch; word = word + 1 }
        leave()
    :: else
    fi;
    leave();
    finished++
}

proctype owner()
{
    short seen;
    byte taken, node, current, kept;

    notify(1);
    if
    :: true ->
        wait(OWNER);
        if
        :: true -> /* the next generation */
            atomic { touch; word = word + 1 }
            leave()
        :: true -> skip
        fi
    :: true -> skip
    fi;
    user_done; /* no wait may be in progress at the release */
    if
    :: true -> calls[1] == 1 /* a caller that waits for its notification */
    :: true -> skip
    fi;
#ifndef MUTANT_release_at_once
    atomic {
        touch;
        if
        :: outstanding(word) != 0 -> word = word | RELEASED; goto released
        :: else
        fi
    }
#endif
    dispose();
released:
    give_back(1);
    finished++
}

proctype user()
{
    short seen;
    byte taken, node, current, kept;

    if
    :: wait(USER); user_done = true
    :: notify(2); user_done = true; give_back(2)
    :: user_done = true
    fi;
    finished++
}

init {
    byte n;
    atomic { run operation(false); run operation(true); run owner(); run user() }
    atomic {
        finished == ALL;
        assert(freed);
        do
        :: n < 2 ->
            n++;
            assert(references[n] == 0);
            assert(calls[n] <= 1 && (calls[n] == 0 || !withdrawn[n]))
        :: else -> break
        od;
        assert(calls[1] == 1 || withdrawn[1])
    }
}

ltl ends { <> (finished == ALL) }
