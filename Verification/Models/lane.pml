/* lane.pml - a mailbox that is emptied by one drain at a time: lane.c, L1 to L7.
 *
 * A submitter pushes, then checks `queued` and `running`, and submits a drain unless one is queued or running
 * (L5). Two workers run drains. A drain decrements `queued`, acquires `running`, takes the list, runs one
 * operation before it requeues itself (L3), and checks the list once more after it has released `running`
 * (L6). The order of operations (L2) is not modelled: the list is a set.
 *   STOPS   A submitter may stop for ever, anywhere after its push.
 *   CLOSES  From some moment on the scheduler refuses drains, and a submitter withdraws what it pushed (L7).
 *
 * Properties. Bodies do not overlap (L1). A freed lane is not touched (L4). No operation runs twice, or runs
 * although its submission was refused (L7). Everything that was pushed before a submission that returned (or,
 * if the scheduler closes, by that submission) eventually runs; otherwise the end state is invalid.
 *   drained  in the end, all that is owed has run
 *
 * Runs: name | macros | checks
 *   run two    | -DOPERATIONS=1 -DFEWER=0 -DSTOPS | safety drained
 *   run stops  | -DOPERATIONS=2 -DFEWER=1 -DSTOPS | slow
 *   run closes | -DOPERATIONS=1 -DFEWER=0 -DCLOSES | safety drained
 *
 * Mutants: name | run | what fails | what is changed
 *   mutant counted_early   | stops  | invalid end state | `queued` is counted, then the drain submitted (L5)
 *   mutant counted_long    | stops  | invalid end state | `queued` is decremented when the drain ends (L5)
 *   mutant looked_early    | stops  | invalid end state | a submitter checks, then pushes (P22)
 *   mutant no_second_look  | stops  | invalid end state | no check of the list after `running` (L6)
 *   mutant given_back_late | stops  | invalid end state | checks the list, then releases `running` (L6)
 *   mutant turn_ends_blind | stops  | invalid end state | a turn ends, whatever became of the next drain (L3)
 *   mutant two_drains      | stops  | in_body | a drain does not acquire `running` (L1)
 *   mutant unreferenced    | stops  | !(freed) | a queued drain has no reference (L4)
 *   mutant withdrawn_blind | closes | withdrawn&begun | does not ask whether it was taken (L7)
 *   mutant taken_blind     | closes | withdrawn&ran | a drain does not ask whether it was withdrawn (L7)
 */

#define SUBMITTERS  2
#define BIT(i)      (1 << (i))
#define LOWEST(set) ((set) & -(set))

byte list;          /* sets of operations */
byte taken;         /* the drain's own */
byte ran;
byte withdrawn;
byte begun;         /* TAKEN, in the words of L7 */
byte owed;

short queued;
bool running;
byte references = 1;
bool freed;
byte drains;        /* in the scheduler's queues */

bool closed;
bool in_body;
bool one_stopped;
byte finished;

#define touch assert(!freed)
#define over (finished == SUBMITTERS && (owed & ~ran) == 0)

#ifdef STOPS
#define may_stop if :: !one_stopped -> one_stopped = true; goto stops :: true -> skip fi
#else
#define may_stop skip
#endif

inline release()
{
    atomic {
        touch; assert(references > 0); references--;
        if
        :: references == 0 -> freed = true
        :: else
        fi
    }
}

/* The submission of a drain, up to its result; `queued` follows. */
inline submit_drain()
{
#ifndef MUTANT_unreferenced
    atomic { touch; references++ } /* L4 */
#endif
    atomic {
        started = !closed;
        drains = drains + started
    }
}

proctype submitter(byte me)
{
    byte left = OPERATIONS - me * FEWER, operation, before;
    bool started, looked;

next:
    atomic { left--; operation = BIT(me * OPERATIONS + left) }
#ifdef MUTANT_looked_early
    atomic { touch; looked = queued <= 0 }
    atomic { touch; looked = looked && !running }
#endif
    atomic { /* P21, P22 */
        touch; list = list | operation;
#ifdef CLOSES
        before = operation;
#else
        before = (list | taken);
#endif
        may_stop
    }
#ifndef MUTANT_looked_early
    atomic { touch; looked = queued <= 0 }
    atomic { touch; looked = looked && !running }
#endif
    if
    :: looked -> /* L5 */
#ifdef MUTANT_counted_early
        atomic { touch; queued++; may_stop }
#endif
        submit_drain();
        if
        :: started ->
#ifndef MUTANT_counted_early
            atomic { touch; queued++; may_stop } /* L5: too low for a while, never too high */
#else
            skip
#endif
        :: else ->
            release();
            atomic { /* L7 */
                if
#ifdef MUTANT_withdrawn_blind
                :: true -> withdrawn = withdrawn | operation; before = 0
#else
                :: (begun & operation) == 0 -> withdrawn = withdrawn | operation; before = 0
                :: else
#endif
                fi
            }
            assert((withdrawn & begun) == 0)
        fi
    :: else
    fi;
    atomic {
        owed = owed | before; before = 0; looked = false; started = false; operation = 0;
        if
        :: left > 0 -> goto next
        :: else
        fi
    }
stops:
    atomic { left = 0; operation = 0; before = 0; looked = false; started = false; finished++ }
}

inline begin(result)
{
    atomic {
        touch;
#ifdef MUTANT_two_drains
        result = true;
#else
        result = !running; /* L1, P23 */
#endif
        running = true
    }
}

proctype worker()
{
    byte operation;
    bool mine, started, more;

    do
    :: atomic { drains > 0 -> drains-- }
#ifndef MUTANT_counted_long
        atomic { touch; queued-- } /* L5, P22 */
#endif
        begin(mine);
        started = false;
        do
        :: !mine -> break
        :: mine && taken == 0 ->
            atomic { touch; taken = list; list = 0 } /* P21, P22 */
            if
            :: taken == 0 -> /* finish: L6 */
#ifdef MUTANT_given_back_late
                atomic { touch; more = list != 0 }
                atomic { touch; running = false }
#else
                atomic { touch; running = false } /* P22, P23 */
                atomic { touch; more = list != 0 }
#endif
#ifdef MUTANT_no_second_look
                more = false;
#endif
                if
                :: more -> begin(mine)
                :: else -> mine = false
                fi;
                atomic { more = false; started = false }
            :: else
            fi
        :: mine && taken != 0 ->
            if
            :: started -> /* L3: it has run one operation */
                started = false;
                submit_drain();
                if
                :: started ->
                    atomic { touch; queued++ }
                    atomic { touch; running = false }
                    atomic { touch; more = queued <= 0; started = false }
#ifdef MUTANT_turn_ends_blind
                    more = false;
#endif
                    if
                    :: more -> more = false; begin(mine)
                    :: else -> mine = false
                    fi
                :: else -> release()
                fi
            :: else
            fi;
            if
            :: mine ->
                atomic {
                    operation = LOWEST(taken); taken = taken & ~operation;
                    if
#ifdef MUTANT_taken_blind
                    :: true -> begun = begun | operation
#else
                    :: (withdrawn & operation) == 0 -> begun = begun | operation /* L7 */
                    :: else -> operation = 0
#endif
                    fi
                }
                if
                :: operation != 0 ->
                    atomic { assert(!in_body); in_body = true; assert((ran & operation) == 0) }
                    atomic { in_body = false; ran = ran | operation; operation = 0 }
                :: else
                fi;
                started = true
            :: else
            fi
        od;
#ifdef MUTANT_counted_long
        atomic { touch; queued-- }
#endif
        release()
    :: over && drains == 0 -> break
    od
}

#ifdef CLOSES
proctype closer()
{
    closed = true
}
#endif

init {
    byte i;
    atomic {
        run worker(); run worker();
#ifdef CLOSES
        run closer();
#endif
        do
        :: i < SUBMITTERS -> run submitter(i); i++
        :: else -> i = 0; break
        od
    }
    finished == SUBMITTERS;
    if
    :: !one_stopped -> release() /* the owner's reference */
    :: else
    fi;
    _nr_pr == 1;
    assert(freed || one_stopped);
    assert((withdrawn & ran) == 0)
}

ltl drained { <> over }
