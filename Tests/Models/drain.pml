/* drain.pml - the end of a scheduler: close, and the last worker that falls asleep: worker.c X6, scheduler.c
 * S2, submit.c U3, idle.c.
 *
 * Submitters list their inboxes, look at CLOSING, and append one operation each. The closer sets CLOSING,
 * closes what is listed, sets SEALED, and wakes all. Workers run operations, announce, read the flags, look at
 * everything again, and sleep; the last one sets STOPPED.
 *   NESTED   The first operation waits inside its body until a gate opens from outside: its worker helps, or
 *            sleeps inside the body. Then the body submits two more.
 *   LEAVING  The first operation submits two more, and one worker is told to leave: it hands its deque over.
 * How a sleeper is woken is park.pml's matter: here a wake-up is one step, and is not lost.
 *
 * Properties. At the step that sets STOPPED nothing is in an inbox or a deque, and no body is in progress;
 * after it nothing is accepted, and no body begins. A shutdown that does not end is an invalid end state.
 *   ends    every worker gets to its end
 *
 * Runs: name | macros | checks
 *   run nested  | -DSUBMITTERS=1 -DNESTED | safety ends
 *   run leaving | -DSUBMITTERS=1 -DLEAVING | safety ends
 *   run pair    | -DSUBMITTERS=2 | safety ends
 *
 * Mutants: name | run | what falls | what is changed
 *   mutant control_late        | pair    | inbox[0] | the flags are read after the look at the inboxes (X6)
 *   mutant sealed_before_sweep | pair    | assertion violated | SEALED is set, then the inboxes are closed (S2)
 *   mutant closing_after_sweep | pair    | !(stopped) | the inboxes are closed, then CLOSING is set (P16)
 *   mutant no_look_at_closing  | pair    | !(stopped) | a new inbox's thread does not look at CLOSING (U3)
 *   mutant close_by_store      | pair    | assertion violated | an append is not refused by the close (B1)
 *   mutant seal_silent         | pair    | invalid end state | the close wakes nobody
 *   mutant stop_silent         | pair    | invalid end state | who sets STOPPED wakes nobody (X6)
 *   mutant nested_forgotten    | nested  | bodies | a worker asleep inside a body counts as asleep (X6)
 *   mutant two_words           | nested  | assertion violated | it reads `awake`, then `nested` (X6)
 *   mutant nested_late         | nested  | assertion violated | counted as nested after not awake any more
 *   mutant leave_silent        | leaving | invalid end state | a worker that leaves wakes nobody (X6)
 *   mutant deque_dropped       | leaving | assertion violated | a worker that leaves hands nothing over
 */

#define WORKERS    2
#define BIT(i)     (1 << (i))

#define PARENT   BIT(0)
#define PLAIN    BIT(1)
#define CHILDREN (BIT(2) | BIT(3))
#define LOWEST(set)  ((set) & -(set))
#define SEVERAL(set) (((set) & ((set) - 1)) != 0)

#define NOBODY 255

bool closing, sealed, stopped;

byte inbox[SUBMITTERS + 1];
bool listed[SUBMITTERS + 1];
bool closed[SUBMITTERS + 1];
byte deque[WORKERS];
byte bodies;

byte sleepers;
bool woken[WORKERS];
#ifdef REPAIRED
byte busy = WORKERS;
#else
byte awake = WORKERS;
byte nested;
#endif

bool gate;
byte waiter = NOBODY;
bool leaving;
byte ended;

inline wake_one()
{
    atomic {
        if
        :: (sleepers & BIT(0)) != 0 && !woken[0] -> woken[0] = true
        :: (sleepers & BIT(1)) != 0 && !woken[1] -> woken[1] = true
        :: else
        fi
    }
}

inline wake_all()
{
    atomic {
        woken[0] = woken[0] || (sleepers & BIT(0)) != 0;
        woken[1] = woken[1] || (sleepers & BIT(1)) != 0
    }
}

inline append(i, operation)
{
    if
    :: !listed[i] ->
        listed[i] = true;
#ifndef MUTANT_no_look_at_closing
        if
        :: closing -> closed[i] = true
        :: else
        fi
#endif
    :: else
    fi;
    atomic {
        if
        :: closed[i] -> accepted = false
        :: else -> assert(!stopped); inbox[i] = inbox[i] | operation; accepted = true
        fi
    }
    if
    :: accepted -> wake_one()
    :: else
    fi
}

proctype submitter(byte me)
{
    bool accepted;

    append(me, BIT(me))
}

proctype opener()
{
    gate = true;
    atomic {
        if
        :: waiter != NOBODY -> woken[waiter] = true
        :: else
        fi
    }
}

proctype closer()
{
    byte i;

    if
    :: leaving = true; woken[1] = true
    :: true -> skip
    fi;
#ifdef MUTANT_sealed_before_sweep
    sealed = true;
#endif
#ifndef MUTANT_closing_after_sweep
    closing = true;
#endif
    do
    :: atomic {
        i <= SUBMITTERS ->
        if
        :: listed[i] -> closed[i] = true
        :: else
        fi;
        i++
       }
    :: else -> break
    od;
#ifdef MUTANT_closing_after_sweep
    closing = true;
#endif
    sealed = true;
#ifndef MUTANT_seal_silent
    wake_all()
#endif
}

proctype worker(byte me)
{
    byte operation, i;
    bool waits, saw_sealed, saw_stopped, quiet, accepted;

look:
    if
    :: atomic { waits && gate -> waits = false; waiter = NOBODY; goto resumed }
    :: atomic { !waits && stopped && deque[me] == 0 -> goto over }
    :: atomic { !waits && leaving && me == 1 -> goto over }
    :: else
    fi;
    atomic {
        if
        :: deque[me] != 0 -> operation = LOWEST(deque[me]); deque[me] = deque[me] & ~operation; goto body
        :: else
        fi
    }
    do
    :: atomic {
        i <= SUBMITTERS ->
        if
        :: inbox[i] != 0 -> operation = LOWEST(inbox[i]); inbox[i] = inbox[i] & ~operation; i = 0; goto body
        :: else -> i++
        fi
       }
    :: atomic { else -> i = 0; break }
    od;
    if
    :: atomic {
        deque[1 - me] != 0 ->
        operation = LOWEST(deque[1 - me]); deque[1 - me] = deque[1 - me] & ~operation; goto body
       }
    :: true -> skip
    fi;

#ifdef REPAIRED
    sleepers = sleepers | BIT(me);
    if
    :: !waits -> busy--
    :: else
    fi;
#else
#ifdef MUTANT_nested_late
    atomic { sleepers = sleepers | BIT(me) }
    awake--;
    if
    :: waits -> nested++
    :: else
    fi;
#else
    if
    :: waits -> nested++
    :: else
    fi;
    atomic { sleepers = sleepers | BIT(me) }
    awake--;
#endif
#endif
#ifndef MUTANT_control_late
    atomic { saw_sealed = sealed; saw_stopped = stopped }
#endif
    if
    :: (waits && gate) || (!waits && (saw_stopped || (leaving && me == 1))) -> goto rise
    :: else
    fi;
    do
    :: atomic {
        i <= SUBMITTERS ->
        if
        :: inbox[i] != 0 -> i = 0; goto rise
        :: else -> i++
        fi
       }
    :: atomic { else -> i = 0; break }
    od;
    if
    :: deque[me] != 0 || SEVERAL(deque[1 - me]) -> goto rise
    :: else
    fi;
#ifdef MUTANT_control_late
    atomic { saw_sealed = sealed; saw_stopped = stopped }
#endif
    if
    :: saw_sealed && !saw_stopped ->
#ifdef REPAIRED
        quiet = busy == 0;
#else
        quiet = awake == 0;
#ifndef MUTANT_nested_forgotten
        atomic { quiet = quiet && nested == 0 }
#endif
#endif
        if
        :: quiet ->
            atomic {
                stopped = true;
                assert(bodies == 0);
                assert(inbox[0] == 0 && inbox[1] == 0 && inbox[2] == 0);
                assert(deque[0] == 0 && deque[1] == 0)
            }
#ifndef MUTANT_stop_silent
            wake_all()
#endif
        :: else
        fi
    :: else
    fi;
    woken[me];

rise:
    atomic { saw_sealed = false; saw_stopped = false; quiet = false; woken[me] = false }
    sleepers = sleepers & ~BIT(me);
#ifdef REPAIRED
    if
    :: !waits -> busy++
    :: else
    fi;
#else
#ifdef MUTANT_nested_early
    if
    :: waits -> nested--
    :: else
    fi;
    awake++;
#else
    awake++;
    if
    :: waits -> nested--
    :: else
    fi;
#endif
#endif
    goto look;

body:
    atomic {
        assert(!stopped);
        if
        :: operation == PARENT -> operation = 0; bodies++; waits = true; waiter = me; goto look
        :: else -> operation = 0; goto look
        fi
    }

resumed:
    atomic { deque[me] = deque[me] | CHILDREN }
    wake_one();
    atomic { bodies--; goto look }

over:
    do
    :: atomic {
        deque[me] != 0 ->
        operation = LOWEST(deque[me]); deque[me] = deque[me] & ~operation
       }
        append(SUBMITTERS, operation);
        if
        :: accepted -> operation = 0
        :: else -> atomic { deque[me] = deque[me] | operation; operation = 0; leaving = false; goto look }
        fi
    :: else -> break
    od;
#ifdef REPAIRED
    busy--;
#else
    awake--;
#endif
#ifndef MUTANT_leave_silent
    wake_one();
#endif
    ended++
}

init {
    atomic {
        run worker(0); run worker(1); run submitter(0); run submitter(1); run opener(); run closer()
    }
    atomic {
        _nr_pr == 1;
        assert(inbox[0] == 0 && inbox[1] == 0 && inbox[2] == 0 && deque[0] == 0 && deque[1] == 0)
    }
}

ltl ends { <> (ended == WORKERS) }
