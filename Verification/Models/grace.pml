/* grace.pml - memory that others may still read: reclaim.c (P10), and what relies on it in inbox.c and
 * registry.c.
 *
 * One thread appends to its inbox, one operation per segment, releases it, and exits. Two workers access the
 * inbox in read sections: they take (B2), advance `head` and retire the segment (B4), and unlist an inbox
 * that its thread has left empty (R2, R3). The scheduler may be destroyed at any time; the destruction then
 * releases the inbox in place of a worker. The grace period is liburcu's guarantee, not its algorithm:
 * retired memory is freed when every section that was open at its collection has ended.
 *
 * Objects are the segments and, the last one, the inbox. `touch` represents an access.
 *
 * Properties. Freed memory is not touched, retired or freed again; a used-up segment has a next one (B3);
 * each operation is taken once (B2), and at least once unless the scheduler was destroyed before.
 *   freed   in the end every object is freed
 *
 * Runs: name | macros | checks
 *   run three | -DOPERATIONS=3 | safety
 *   run two   | -DOPERATIONS=2 | freed
 *
 * Mutants: name | run | what fails | what is changed
 *   mutant freed_at_once        | two | gone | retire frees (P10)
 *   mutant no_section           | two | gone | workers read outside sections
 *   mutant section_too_short    | two | gone | the section ends when head is read
 *   mutant reader_forgotten     | two | gone | the grace period does not wait for one of the readers
 *   mutant later_ones_freed     | two | gone | what was retired during a grace period is freed at its end
 *   mutant section_left_open    | two | <> freed | a worker that finds the inbox empty does not leave
 *   mutant retired_before_swung | two | gone | retire, then the swing of head (B4)
 *   mutant swung_by_store       | two | retired | head is compared, then stored (B4)
 *   mutant linked_late          | two | linked | published, then linked (B3)
 *   mutant taken_by_store       | two | runs | taken is compared, then stored (B2)
 *   mutant unlisted_unasked     | two | gone | unlisted though its thread has not released it (R3)
 *   mutant unlisted_by_store    | two | retired | the place is compared, then emptied (R2)
 *   mutant empty_before_asked   | two | runs[ | checked for empty, then for its thread's release (P17)
 *   mutant let_go_by_store      | two | invalid end state | holders is loaded, then stored (R2)
 */

#define WORKERS    2
#define INBOX      OPERATIONS
#define OBJECTS    (OPERATIONS + 1)
#define NONE       OPERATIONS
#define BIT(i)     (1 << (i))
#define ALL        (BIT(OBJECTS) - 1)
#define THREAD     1
#define SCHEDULER  2

byte gone;    /* set of objects: freed */
byte retired; /* set of objects: retired, and not collected */
byte batch;   /* set of objects: collected; their grace period is running */
byte inside;  /* set of workers: in a read section */
byte owing;   /* set of workers: in a section that the grace period waits for */

bool place = true; /* the registry's entry: the inbox is listed */
byte head;         /* a segment; segment i holds operation i */
byte published;
bool linked[OPERATIONS];
bool taken[OPERATIONS];
byte runs[OPERATIONS];
byte holders = THREAD | SCHEDULER; /* R2 */

bool stop; /* the scheduler is being destroyed */
byte ended;

#define touch(object) assert((gone & BIT(object)) == 0)

inline free(object)
{
    touch(object);
    gone = gone | BIT(object)
}

/* csched_inbox_destroy: with all segments from head on. */
inline free_inbox()
{
    free(INBOX);
    do
    :: head != NONE ->
        free(head);
        head = (linked[head] -> head + 1 : NONE)
    :: else -> break
    od
}

inline retire(object)
{
    touch(object); assert(((retired | batch) & BIT(object)) == 0);
#ifdef MUTANT_freed_at_once
    if
    :: object == INBOX -> free_inbox()
    :: else -> free(object)
    fi
#else
    retired = retired | BIT(object)
#endif
}

proctype thread()
{
    byte index, seen;

    do
    :: index < OPERATIONS ->
#ifndef MUTANT_linked_late
        if /* B3: the next segment is linked before anything in it is published */
        :: index != 0 -> atomic { touch(index - 1); linked[index - 1] = true }
        :: else
        fi;
#endif
        atomic { touch(INBOX); published++ }
#ifdef MUTANT_linked_late
        if
        :: index != 0 -> atomic { touch(index - 1); linked[index - 1] = true }
        :: else
        fi;
#endif
        index++
    :: else -> index = 0; break
    od;
#ifdef MUTANT_let_go_by_store
    atomic { touch(INBOX); seen = holders }
    atomic { touch(INBOX); holders = seen & ~THREAD }
#else
    atomic { touch(INBOX); seen = holders; holders = holders & ~THREAD } /* R2, P17 */
#endif
    atomic {
        if
        :: seen == THREAD -> free_inbox() /* the second of two holders, when no worker is left */
        :: else
        fi
    }
}

inline enter()
{
#ifdef MUTANT_no_section
    skip
#else
    inside = inside | BIT(me)
#endif
}

inline leave()
{
    atomic { inside = inside & ~BIT(me); owing = owing & ~BIT(me) }
}

proctype worker(byte me)
{
    byte segment, known;
    bool used;

    do
    :: stop -> break
    :: else ->
        enter();
        if
        :: place
        :: else -> goto out
        fi;
        atomic { touch(INBOX); segment = head } /* csched_inbox_take */
        do
        :: true ->
#ifdef MUTANT_section_too_short
            leave();
#endif
            atomic { touch(segment); used = taken[segment] }
            atomic { touch(INBOX); known = published }
            if
            :: segment + used >= known -> break /* empty */
            :: segment + used < known && used ->
                atomic { touch(segment); assert(linked[segment]) }
#if defined MUTANT_retired_before_swung
                atomic { retire(segment) }
                atomic { touch(INBOX); head = segment + 1; segment = head }
#elif defined MUTANT_swung_by_store
                atomic { touch(INBOX); used = (head == segment) }
                if
                :: used ->
                    atomic { touch(INBOX); head = segment + 1 }
                    atomic { retire(segment); segment++ }
                :: else -> segment = head
                fi
#else
                atomic { /* B4 */
                    touch(INBOX);
                    if
                    :: head == segment -> head = segment + 1
                    :: else -> segment = head; goto swung
                    fi
                }
                atomic { retire(segment); segment++ }
swung:
                skip
#endif
            :: segment + used < known && !used -> /* B2 */
#ifdef MUTANT_taken_by_store
                atomic { touch(segment); taken[segment] = true; runs[segment]++; assert(runs[segment] == 1) }
#else
                atomic {
                    touch(segment);
                    if
                    :: !taken[segment] -> taken[segment] = true; runs[segment]++; assert(runs[segment] == 1)
                    :: else
                    fi
                }
#endif
                goto out
            fi
        od;
        /* unlist_if_left: R3, and in this order: P17 */
#ifndef MUTANT_empty_before_asked
#ifndef MUTANT_unlisted_unasked
        atomic {
            touch(INBOX);
            if
            :: (holders & THREAD) != 0 -> goto out
            :: else
            fi
        }
#endif
#endif
        atomic { touch(INBOX); known = published }
        atomic { touch(INBOX); segment = head }
        atomic {
            touch(segment);
            if
            :: segment + taken[segment] < known -> goto out
            :: else
            fi
        }
#ifdef MUTANT_empty_before_asked
        atomic {
            touch(INBOX);
            if
            :: (holders & THREAD) != 0 -> goto out
            :: else
            fi
        }
#endif
#ifdef MUTANT_unlisted_by_store
        if
        :: place -> place = false
        :: else -> goto out
        fi;
#else
        atomic { /* one of the workers, once */
            if
            :: place -> place = false
            :: else -> goto out
            fi
        }
#endif
        atomic { retire(INBOX) } /* R2 */
out:
#ifdef MUTANT_section_left_open
        if
        :: place -> leave()
        :: else
        fi;
#else
        leave();
#endif
        atomic {
            segment = 0; known = 0; used = false;
            if
            :: !place -> break
            :: else
            fi
        }
    od;
    ended++
}

/* P10 */
proctype reclaimer()
{
    byte object;

    do
    :: atomic {
        retired != 0 ->
        batch = retired; retired = 0;
#ifdef MUTANT_reader_forgotten
        owing = inside & ~BIT(0)
#else
        owing = inside
#endif
       }
        atomic {
            owing == 0 ->
#ifdef MUTANT_later_ones_freed
            batch = batch | retired; retired = 0;
#endif
            do
            :: object < INBOX ->
                if
                :: (batch & BIT(object)) != 0 -> free(object)
                :: else
                fi;
                object++
            :: else -> object = 0; break
            od;
            if
            :: (batch & BIT(INBOX)) != 0 -> free_inbox()
            :: else
            fi;
            batch = 0
        }
    :: atomic { retired == 0 && gone == ALL -> break }
    od
}

/* csched_scheduler_destroy, optionally; and csched_registry_destroy, when no worker is left. */
proctype destroyer()
{
    byte seen;

    if
    :: stop = true
    :: true -> skip
    fi;
    atomic {
        ended == WORKERS;
        if
        :: place -> seen = holders; holders = holders & ~SCHEDULER
        :: else
        fi
    }
    atomic {
        if
        :: seen == SCHEDULER -> free_inbox()
        :: else
        fi
    }
}

init {
    byte i;
    atomic { run thread(); run worker(0); run worker(1); run reclaimer(); run destroyer() }
    atomic {
        _nr_pr == 1;
        assert(gone == ALL);
        do
        :: i < OPERATIONS -> assert(stop || runs[i] == 1); i++
        :: else -> break
        od
    }
}

ltl freed { <> (gone == ALL) }
