/* park.pml - submitters from outside, and workers that check, announce, recheck and sleep: idle.c, W1-W4.
 *
 * A submitter publishes to its inbox, then reads `searching`, then the sleepers' bits, then their states (P7,
 * P14), and wakes one sleeper unless two workers are already looking. A worker leaves `searching`, sets its
 * bit, checks every inbox again, and sleeps. One thread may stop for ever: a submitter, anywhere after its
 * publication, or a worker, wherever it has just changed shared state.
 *
 * Epochs (W3) are not numbers here, since these would make the number of states infinite: `means[w]` is the
 * set of submitters whose remembered state belongs to the current sleep of worker w; a rise empties it. A
 * submitter's compare-exchange succeeds while it is in the set.
 *
 * Properties. An end in which a worker sleeps while something owed is in an inbox is an invalid end state:
 * the lost wake-up. Once a submission has returned, everything that was published before it is owed,
 * including the publications of a stopped submitter (W3). If a worker stops, the operation for which it was
 * woken may stay in its inbox until the next submission: owed is then everything published before the second
 * of two consecutive submissions that came after the stop.
 *   taken   in the end, all that is owed is taken
 *
 * Runs: name | macros | checks
 *   run submitter_stops | -DWORKERS=1 -DSUBMITTERS=2 -DOPERATIONS=2 -DSUBMITTER_STOPS | safety taken
 *   run worker_stops    | -DWORKERS=2 -DSUBMITTERS=1 -DOPERATIONS=3 -DWORKER_STOPS | safety taken
 *   run both_of_two     | -DWORKERS=2 -DSUBMITTERS=2 -DOPERATIONS=1 | slow
 *
 * Mutants: name | run | what fails | what is changed
 *   mutant no_recheck    | submitter_stops | invalid end state | no look after the announcement (W1)
 *   mutant bit_late      | submitter_stops | invalid end state | the bit is set after the look (W1)
 *   mutant early_read    | submitter_stops | invalid end state | sleepers are read, then it publishes (P14)
 *   mutant no_help       | submitter_stops | invalid end state | NOTIFIED counts as woken, no futex call (W3)
 *   mutant no_epoch      | submitter_stops | invalid end state | a waker may mark a later sleep as woken (W3)
 *   mutant state_unseen  | submitter_stops | invalid end state | a worker sleeps though it was notified (P13)
 *   mutant one_looker    | worker_stops    | invalid end state | one looker is enough (W2)
 *   mutant leave_late    | worker_stops    | invalid end state | leaves `searching` after its look (W1, W2)
 *   mutant bit_first     | worker_stops    | invalid end state | the bit is set, then `searching` left (W4)
 *   mutant counted_twice | worker_stops    | invalid end state | it searches before its state is reset (W4)
 */

#define AWAKE    0
#define SLEEPING 1
#define NOTIFIED 2
#define KICKED   3

#define BIT(i)   (1 << (i))
#define INBOX(i) ((BIT(OPERATIONS) - 1) << ((i) * OPERATIONS))

byte inboxes;            /* the set of operations that are published and not yet taken (B1, B2) */
byte before[SUBMITTERS]; /* of these: to be taken when the submission in progress has returned */
byte owed;               /* those that have to be taken */
byte finished;           /* submitters that have ended, or are stopped */

byte sleepers;           /* the words of csched_idle */
byte searching;
byte state[WORKERS];
byte means[WORKERS];
bool asleep[WORKERS];    /* in the kernel's queue of the parker's word */

bool one_stopped;        /* a thread is stopped: at most one per run */
bool one_returned;       /* a submission that came after the stop has returned */

#define over (finished == SUBMITTERS && owed == 0)

#define stop_or_not if :: !one_stopped -> one_stopped = true; goto stops :: true -> skip fi
#ifdef SUBMITTER_STOPS
#define submitter_may_stop stop_or_not
#else
#define submitter_may_stop skip
#endif
#ifdef WORKER_STOPS
#define worker_may_stop stop_or_not
#else
#define worker_may_stop skip
#endif

/* The second half of unpark: the first caller, or a helper, marks the futex call as done. */
inline mark_kicked()
{
    if
    :: (means[w] & BIT(me)) != 0 && state[w] == NOTIFIED -> state[w] = KICKED
    :: else
    fi;
    means[w] = means[w] & ~BIT(me)
}

proctype submitter(byte me)
{
    byte left = OPERATIONS, lookers, bits, w;
    bool late, first;

next:
#ifdef MUTANT_early_read
    bits = sleepers;
#endif
    atomic { /* B1, P7 */
        left--;
        inboxes = inboxes | BIT(me * OPERATIONS + left);
#ifdef WORKER_STOPS
        late = one_stopped;
        before[me] = (!one_stopped || one_returned -> inboxes : 0);
#else
        before[me] = inboxes;
#endif
        submitter_may_stop
    }
    lookers = (searching < 2 -> searching : 2); /* P14 */
#ifndef MUTANT_early_read
    bits = sleepers; /* P14 */
#endif
    do
    :: atomic { w < WORKERS && (bits & BIT(w)) == 0 -> w++ }
#ifdef MUTANT_one_looker
    :: atomic { w == WORKERS || lookers >= 1 -> break }
#else
    :: atomic { w == WORKERS || lookers >= 2 -> break } /* W2 */
#endif
    /* unpark. Its loop around a compare-exchange is one step: that of the exchange, or of the last load. */
    :: atomic {
        else ->
        if
        :: state[w] == KICKED -> goto counted
#ifdef MUTANT_no_help
        :: state[w] == NOTIFIED -> goto counted
#else
        :: state[w] == NOTIFIED -> means[w] = means[w] | BIT(me); first = false
#endif
        :: state[w] == SLEEPING ->
            state[w] = NOTIFIED; means[w] = means[w] | BIT(me); first = true; submitter_may_stop
        :: state[w] == AWAKE -> /* it sees the state before it sleeps: no futex call */
            state[w] = NOTIFIED; means[w] = means[w] | BIT(me); first = true; submitter_may_stop; goto kick
        fi
       }
        atomic { asleep[w] = false; submitter_may_stop } /* the futex call; a late one is harmless */
kick:
        atomic {
            mark_kicked();
            if
            :: first -> break
            :: else
            fi
        }
counted:
        atomic { lookers++; w++ } /* W3: it counts as a looker */
    od;
    atomic {
        w = 0; bits = 0; lookers = 0; first = false;
        owed = owed | before[me]; before[me] = 0;
        one_returned = one_returned || late; late = false;
        if
        :: left > 0 -> goto next
        :: else
        fi
    }
stops:
    atomic { left = 0; lookers = 0; bits = 0; w = 0; first = false; before[me] = 0; finished++ }
}

proctype worker(byte me)
{
    byte i;

search:
    atomic { searching++; worker_may_stop }
look: /* checks the inboxes in turn; takes everything in the first that is not empty */
    do
    :: atomic {
        i < SUBMITTERS ->
        if
        :: (inboxes & INBOX(i)) != 0 ->
            inboxes = inboxes & ~INBOX(i); owed = owed & inboxes; i = 0;
            do
            :: i < SUBMITTERS -> before[i] = before[i] & inboxes; i++
            :: else -> i = 0; break
            od;
            break
        :: else -> i++
        fi
       }
    :: atomic { else -> i = 0; goto announce }
    od;
    atomic { searching--; goto search } /* found; the body runs, and ends */

announce: /* P14. Between here and rise, the worker appears to others as a sleeper. */
#if defined MUTANT_bit_first
    atomic { sleepers = sleepers | BIT(me); worker_may_stop }
    atomic { searching--; worker_may_stop }
#elif defined MUTANT_bit_late
    atomic { searching--; worker_may_stop }
#elif defined MUTANT_leave_late
    atomic { sleepers = sleepers | BIT(me); worker_may_stop }
#else
    atomic { searching--; worker_may_stop }
    atomic { sleepers = sleepers | BIT(me); worker_may_stop }
#endif
#ifndef MUTANT_no_recheck
    do /* W1: the check after the announcement */
    :: atomic {
        i < SUBMITTERS ->
        if
#ifdef MUTANT_leave_late
        :: (inboxes & INBOX(i)) != 0 -> i = 0; searching--; goto rise
#else
        :: (inboxes & INBOX(i)) != 0 -> i = 0; goto rise
#endif
        :: else -> i++
        fi
       }
    :: atomic { else -> i = 0; break }
    od;
#endif
#ifdef MUTANT_bit_late
    sleepers = sleepers | BIT(me);
#endif
#ifdef MUTANT_leave_late
    searching--;
#endif
    atomic { /* csched_idle_sleep: W3 */
        if
#ifdef MUTANT_state_unseen
        :: true -> state[me] = SLEEPING; worker_may_stop
#else
        :: state[me] == AWAKE -> state[me] = SLEEPING; worker_may_stop
        :: else -> goto rise
#endif
        fi
    }
    atomic { /* futex_wait compares and sleeps in one step */
        if
        :: state[me] == SLEEPING -> asleep[me] = true
        :: else -> goto rise
        fi
    }
    do
    :: atomic {
        !asleep[me] ->
        if
        :: state[me] == SLEEPING -> asleep[me] = true /* a futex call meant for an earlier sleep */
        :: else -> break
        fi
       }
    :: atomic { asleep[me] && over -> asleep[me] = false; goto done }
    od;

rise: /* W4: state, then the bit, then searching */
#ifdef MUTANT_counted_twice
    atomic { searching++; worker_may_stop }
#endif
    atomic {
        state[me] = AWAKE;
#ifndef MUTANT_no_epoch
        means[me] = 0;
#endif
        worker_may_stop
    }
    atomic { sleepers = sleepers & ~BIT(me); worker_may_stop }
#ifdef MUTANT_counted_twice
    goto look;
#else
    atomic { searching++; worker_may_stop; goto look }
#endif

stops:
    atomic {
        owed = 0;
        do
        :: i < SUBMITTERS -> before[i] = 0; i++
        :: else -> i = 0; break
        od
    }
done:
    skip
}

init {
    byte i;
    atomic {
        do
        :: i < WORKERS -> run worker(i); i++
        :: else -> i = 0; break
        od;
        do
        :: i < SUBMITTERS -> run submitter(i); i++
        :: else -> i = 0; break
        od
    }
}

ltl taken { <> over }
