/* drain.pml - the end of a scheduler: close, and the last worker to fall asleep: worker.c X6, scheduler.c
 * S2, submit.c U3, idle.c.
 *
 * A submitter lists its inbox, checks CLOSING, and appends one operation. The closer sets CLOSING, closes the
 * listed inboxes, sets SEALED, and wakes all. Workers run operations, announce, read the flags, check
 * everything again, and sleep; the last one sets STOPPED.
 *   NESTED   The first operation waits inside its body until a gate opens from outside: its worker runs what
 *            the wait may run, or sleeps inside the body. Then the body submits two more.
 *   LEAVING  The first operation submits two more, and one worker is asked to leave: it hands its deque over
 *            through its own inbox, which is never closed (U5).
 *   SUSPEND  Suspended at any time before the close, which ends the suspension: a worker that holds an
 *            operation puts it back, and falls asleep over it.
 * The wake-up protocol is modelled in park.pml: here a wake-up is one step, and is not lost.
 *
 * `busy` counts the workers that do not rest. A worker rests if it is asleep or about to be, outside of all
 * bodies and with an empty deque, or if it has left. The mutant two_words has two counters instead, and reads
 * one after the other.
 *
 * Properties. At the step that sets STOPPED no inbox or deque holds an operation, and no body is in progress;
 * after it nothing is accepted, and no body begins. A shutdown that does not end is an invalid end state.
 *   ends    every worker reaches its end
 *
 * Runs: name | macros | checks
 *   run pair    | -DSUBMITTERS=2 | safety ends
 *   run nested  | -DSUBMITTERS=1 -DNESTED | safety ends
 *   run leaving | -DSUBMITTERS=1 -DLEAVING | safety ends
 *   run three   | -DSUBMITTERS=1 -DLEAVING -DWORKERS=3 | safety
 *   run suspend | -DSUBMITTERS=1 -DSUSPEND | safety ends
 *
 * Mutants: name | run | what fails | what is changed
 *   mutant control_late        | pair    | assertion violated | SEALED is read after the last look at `busy` (X6)
 *   mutant sealed_before_sweep | pair    | assertion violated | SEALED is set, then the inboxes closed (S2)
 *   mutant closing_after_sweep | pair    | assertion violated | inboxes are closed, then CLOSING set (P16)
 *   mutant no_look_at_closing  | pair    | assertion violated | a new inbox is not closed by its thread (U3)
 *   mutant close_by_store      | pair    | assertion violated | an append looks at CLOSED, then appends (B1)
 *   mutant seal_silent         | pair    | invalid end state  | the close wakes nobody
 *   mutant stop_silent         | pair    | invalid end state  | the one that sets STOPPED wakes none (X6)
 *   mutant nested_forgotten    | nested  | assertion violated | a sleeper inside a body is not busy (X6)
 *   mutant two_words           | nested  | assertion violated | reads `awake`, then `nested` (X6)
 *   mutant interrupt_forgotten | nested  | invalid end state  | the gate opens, and wakes nobody
 *   mutant leave_silent        | leaving | invalid end state  | a worker that leaves wakes nobody (X6)
 *   mutant look_once           | leaving | assertion violated | no look at inboxes after that at `busy` (P59)
 *   mutant rest_once           | three   | assertion violated | no second look at `busy` (X6)
 *   mutant deque_dropped       | leaving | assertion violated | a worker that leaves hands nothing over
 *   mutant kept_forgotten      | suspend | assertion violated | a sleeper with put-back work rests (X6)
 *   mutant resume_silent       | suspend | invalid end state  | the end of the suspension wakes nobody
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#define INBOXES (SUBMITTERS + 1) /* the last one belongs to the worker that leaves */
#define BIT(i)  (1 << (i))

#if defined NESTED || defined LEAVING
#define PARENT BIT(0)
#else
#define PARENT 255
#endif
#define CHILDREN     (BIT(2) | BIT(3))
#define LOWEST(set)  ((set) & -(set))
#define SEVERAL(set) (((set) & ((set) - 1)) != 0)

#define NOBODY 255
#define OTHER(n) ((me + n) % WORKERS)

bool closing, sealed, is_stopped; /* control */

byte inbox[INBOXES];              /* sets of operations */
bool listed[INBOXES];
bool closed[INBOXES];
byte deque[WORKERS];
byte bodies;                      /* in progress, and waiting or about to submit */

byte sleepers;
bool woken[WORKERS];
#ifdef MUTANT_two_words
byte awake = WORKERS, nested;
#else
byte busy = WORKERS;
byte resting; /* set of workers: checking, while no worker has stirred since */
#endif

#ifdef NESTED
bool gate;
byte waiter = NOBODY;
#endif
#ifdef LEAVING
bool leaving;
#endif
#ifdef SUSPEND
bool suspended;
#else
#define suspended false
#endif
byte ended;

inline wake_one()
{
    atomic {
        if
        :: (sleepers & BIT(0)) != 0 && !woken[0] -> woken[0] = true
        :: else ->
            if
            :: WORKERS == 2 || ((sleepers & BIT(1)) != 0 && !woken[1]) ->
                woken[1] = woken[1] || (sleepers & BIT(1)) != 0
            :: else -> woken[WORKERS - 1] = woken[WORKERS - 1] || (sleepers & BIT(WORKERS - 1)) != 0
            fi
        fi
    }
}

inline wake_all()
{
    atomic {
        woken[0] = woken[0] || (sleepers & BIT(0)) != 0;
        woken[1] = woken[1] || (sleepers & BIT(1)) != 0;
        woken[WORKERS - 1] = woken[WORKERS - 1] || (sleepers & BIT(WORKERS - 1)) != 0
    }
}

inline append(i, operation)
{
    if
    :: !listed[i] ->
        listed[i] = true; /* P16 */
#ifndef MUTANT_no_look_at_closing
        if /* U3 */
        :: closing && i < SUBMITTERS -> closed[i] = true
        :: else
        fi
#endif
    :: else
    fi;
#ifdef MUTANT_close_by_store
    accepted = !closed[i];
    atomic {
        if
        :: accepted -> assert(!is_stopped); inbox[i] = inbox[i] | operation
        :: else
        fi
    }
#else
    atomic { /* B1 */
        if
        :: closed[i] -> accepted = false
        :: else -> assert(!is_stopped); inbox[i] = inbox[i] | operation; accepted = true
        fi
    }
#endif
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

#ifdef NESTED
proctype opener()
{
    gate = true;
    atomic { /* csched_worker_interrupt */
        if
#ifndef MUTANT_interrupt_forgotten
        :: waiter != NOBODY -> woken[waiter] = true
#endif
        :: else
        fi
    }
}
#endif

proctype closer()
{
    byte i;

#ifdef LEAVING
    if
    :: true -> atomic { leaving = true; woken[1] = true }
    :: true -> skip
    fi;
#endif
#ifdef SUSPEND
    if
    :: true -> suspended = true
    :: true -> skip
    fi;
#endif
#ifdef MUTANT_sealed_before_sweep
    sealed = true;
#endif
#ifndef MUTANT_closing_after_sweep
    closing = true; /* P16 */
#endif
    do
    :: atomic {
        i < SUBMITTERS -> /* U5: except a worker's */
        if
        :: listed[i] -> closed[i] = true /* B1 */
        :: else
        fi;
        i++
       }
    :: else -> break
    od;
#ifdef MUTANT_closing_after_sweep
    closing = true;
#endif
    sealed = true; /* S2 */
#ifndef MUTANT_seal_silent
    wake_all();
#endif
#ifdef SUSPEND
    suspended = false; /* end_suspension */
#ifndef MUTANT_resume_silent
    wake_all();
#endif
#endif
    skip
}

proctype worker(byte me)
{
    byte operation, i;
    bool waits; /* for the gate, inside the body of PARENT */
    bool saw_sealed, saw_stopped, saw_suspended, rests, quiet, accepted;

look:
#ifdef SUSPEND
    if
    :: suspended -> goto announce
    :: else
    fi;
#endif
#ifdef NESTED
    if
    :: atomic { waits && gate -> waits = false; waiter = NOBODY; goto go_on }
    :: else
    fi;
#endif
#ifdef LEAVING
    if
    :: atomic { leaving && me == 1 -> goto go }
    :: else
    fi;
#endif
    atomic {
        if
        :: deque[me] != 0 -> operation = LOWEST(deque[me]); deque[me] = deque[me] & ~operation; goto body
        :: else
        fi
    }
    atomic {
        if
        :: is_stopped && !waits -> goto go
        :: else
        fi
    }
    do
    :: atomic {
        i < INBOXES ->
        if
        :: inbox[i] != 0 -> operation = LOWEST(inbox[i]); inbox[i] = inbox[i] & ~operation; i = 0; goto body
        :: else -> i++
        fi
       }
    :: atomic { else -> i = 0; break }
    od;
    if /* a thief may leave an operation that another worker will run itself */
    :: atomic {
        deque[OTHER(1)] != 0 ->
        operation = LOWEST(deque[OTHER(1)]); deque[OTHER(1)] = deque[OTHER(1)] & ~operation; goto body
       }
#if WORKERS > 2
    :: atomic {
        deque[OTHER(2)] != 0 ->
        operation = LOWEST(deque[OTHER(2)]); deque[OTHER(2)] = deque[OTHER(2)] & ~operation; goto body
       }
#endif
    :: true -> skip
    fi;

announce:
    sleepers = sleepers | BIT(me);
#ifdef MUTANT_control_late
    atomic { saw_stopped = is_stopped; saw_suspended = suspended }
#else
    atomic { saw_sealed = sealed; saw_stopped = is_stopped; saw_suspended = suspended }
#endif
    /* anything_to_do */
#ifdef NESTED
    if
    :: waits && gate -> goto rise
    :: else
    fi;
#endif
#ifdef LEAVING
    if
    :: leaving && me == 1 -> goto rise
    :: else
    fi;
#endif
    if
    :: saw_stopped && !waits -> goto rise
    :: else
    fi;
#ifdef SUSPEND
    if
    :: saw_suspended -> goto rest
    :: deque[me] != 0 && !saw_suspended -> goto rise
    :: else
    fi;
#endif
    do
    :: atomic {
        i < INBOXES ->
        if
        :: inbox[i] != 0 -> i = 0; goto rise
        :: else -> i++
        fi
       }
    :: atomic { else -> i = 0; break }
    od;
    if
    :: SEVERAL(deque[OTHER(1)]) -> goto rise
    :: else
    fi;
#if WORKERS > 2
    if
    :: SEVERAL(deque[OTHER(2)]) -> goto rise
    :: else
    fi;
#endif
rest:
#ifdef MUTANT_two_words
    rests = true;
    if
    :: waits -> nested++
    :: else
    fi;
    awake--;
#else
    atomic {
#ifdef MUTANT_nested_forgotten
        rests = deque[me] == 0;
#elif defined MUTANT_kept_forgotten
        rests = !waits;
#else
        rests = !waits && deque[me] == 0;
#endif
        if
        :: rests -> busy--
        :: else
        fi
    }
#endif
    /* end_if_drained: X6 */
    if
#ifdef MUTANT_control_late
    :: rests && !saw_stopped && !saw_suspended ->
#else
    :: rests && saw_sealed && !saw_stopped && !saw_suspended ->
#endif
#ifdef MUTANT_two_words
        quiet = awake == 0;
        quiet = quiet && nested == 0;
#else
        atomic { /* P59 */
            quiet = busy == 0;
            if
            :: quiet -> resting = resting | BIT(me)
            :: else
            fi
        }
#ifndef MUTANT_look_once
        do
        :: atomic { i < INBOXES && quiet -> quiet = inbox[i] == 0; i++ }
        :: atomic { else -> i = 0; break }
        od;
#endif
#ifndef MUTANT_rest_once
        quiet = quiet && (resting & BIT(me)) != 0;
#endif
        resting = resting & ~BIT(me);
#ifdef MUTANT_control_late
        saw_sealed = sealed;
        quiet = quiet && saw_sealed;
#endif
#endif
        if
        :: quiet ->
            atomic {
                is_stopped = true; quiet = false;
                assert(bodies == 0);
                do
                :: i < INBOXES -> assert(inbox[i] == 0); i++
                :: else -> i = 0; break
                od;
                assert(deque[0] == 0 && deque[1] == 0 && deque[WORKERS - 1] == 0)
            }
#ifndef MUTANT_stop_silent
            wake_all()
#endif
        :: else
        fi
    :: else
    fi;
    woken[me]; /* sleeps */

rise:
#ifdef MUTANT_two_words
    if
    :: rests -> awake++
    :: else -> goto lower
    fi;
    if
    :: waits -> nested--
    :: else
    fi;
lower:
#else
    if
    :: rests -> atomic { busy++; resting = 0 } /* csched_idle_stir */
    :: else
    fi;
#endif
    atomic {
        rests = false; saw_sealed = false; saw_stopped = false; saw_suspended = false;
        woken[me] = false; sleepers = sleepers & ~BIT(me); goto look
    }

body:
#ifdef SUSPEND
    atomic {
        if
        :: suspended -> deque[me] = deque[me] | operation; operation = 0; goto look
        :: else
        fi
    }
#endif
    atomic {
        assert(!is_stopped);
        if
#ifdef NESTED
        :: operation == PARENT -> operation = 0; bodies++; waits = true; waiter = me; goto look
#elif defined LEAVING
        :: operation == PARENT -> operation = 0; bodies++
#endif
        :: else -> operation = 0; goto look
        fi
    }
#if defined NESTED || defined LEAVING
go_on:
    deque[me] = deque[me] | CHILDREN;
    wake_one();
    atomic { bodies--; goto look }
#endif

go: /* thread_main, after work: hand_over, leave */
#ifdef LEAVING
#ifndef MUTANT_deque_dropped
    do
    :: atomic {
        deque[me] != 0 -> operation = LOWEST(deque[me]); deque[me] = deque[me] & ~operation
       }
        append(SUBMITTERS, operation);
        if
        :: atomic { accepted -> operation = 0; accepted = false }
        :: atomic {
            else ->
            deque[me] = deque[me] | operation; operation = 0; leaving = false; goto look /* CSCHED_CLOSED */
           }
        fi
    :: else -> break
    od;
#endif
#endif
#ifdef MUTANT_two_words
    awake--;
#else
    busy--;
#endif
#ifndef MUTANT_leave_silent
    wake_one();
#endif
    ended++
}

init {
    byte i;
    atomic {
        run worker(0); run worker(1); run closer();
#if WORKERS > 2
        run worker(2);
#endif
        do
        :: i < SUBMITTERS -> run submitter(i); i++
        :: else -> i = 0; break
        od;
#ifdef NESTED
        run opener()
#endif
    }
    atomic {
        _nr_pr == 1;
        assert(is_stopped && deque[0] == 0 && deque[1] == 0 && deque[WORKERS - 1] == 0);
        do
        :: i < INBOXES -> assert(inbox[i] == 0); i++
        :: else -> i = 0; break
        od
    }
}

ltl ends { <> (ended == WORKERS) }
