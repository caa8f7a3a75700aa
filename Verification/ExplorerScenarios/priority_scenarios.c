// priority_scenarios.c - operations of high and of background priority: what begins next, what must not be
// overlooked, what keeps its priority.

#include "life.h"

#include "scenarios.h"
#include "tuning.h"

enum {
    HIGH = CSCHED_PRIORITY_HIGH,
    BACKGROUND = CSCHED_PRIORITY_BACKGROUND,
    DEFAULT = CSCHED_PRIORITY_DEFAULT
};

static void submit_at(csched_operation what, csched_priority priority)
{
    csched_check(csched_submit_at(scheduler, &what, priority) == CSCHED_OK, "a submission was not accepted");
}

static void expect_priority(csched_priority priority)
{
    if (csched_priority_current() != priority) {
        explorer_fail("a body has the priority %d instead of %d (N5)", (int)csched_priority_current(),
                      (int)priority);
    }
}

// MARK: What begins next

static int turns; // plain: used by one worker
static int turn_of[ITEMS_MOST];

static void takes_its_turn(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    explorer_plain_write(csched_site("turns"), &turns);
    turn_of[number_of(context)] = ++turns;
    ran(number_of(context), disposition);
}

static csched_operation in_turn(int number) { return operation_with(number, takes_its_turn); }

// Called at the end, when the worker is asleep.
static void expect_turn(int number, int least, int most)
{
    if (turn_of[number] < least || turn_of[number] > most) {
        explorer_fail("operation %d began as number %d instead of %d to %d (S11)", number, turn_of[number],
                      least, most);
    }
}

static void open_in_turn(void)
{
    turns = 0;
    world_open_workers(1);
}

// Default operations are queued in the worker's deque and in an inbox; one of high priority overtakes them.
static void submits_0_and_1_and_waits(void *context, void *extra, csched_disposition disposition)
{
    submit(in_turn(0));
    submit(in_turn(1));
    tells_and_waits_for_gate_1(context, extra, disposition);
}

static void high_main(void)
{
    open_in_turn();
    submit(operation_with(4, submits_0_and_1_and_waits));
    gate_pass(&gates[0]);
    world_explore_without_time();
    submit(in_turn(2));
    submit_at(in_turn(3), HIGH);
    gate_open(&gates[1]);
    wait_for_all();
    expect_turn(3, 1, 1);
    world_end(5);
}
MAIN(high)

// The same, but a body submits all operations, and nothing else is queued.
static void submits_high_last(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_operation many[] = {in_turn(0), in_turn(1), in_turn(2)};
    csched_check(csched_submit_bulk(scheduler, many, 3) == CSCHED_OK, "a submission was not accepted");
    submit_at(in_turn(3), HIGH);
    submit_at(in_turn(5), BACKGROUND);
    ran(number_of(context), disposition);
}

static void high_inside_main(void)
{
    open_in_turn();
    world_explore_without_time();
    submit(operation_with(4, submits_high_last));
    wait_for_all();
    expect_turn(3, 1, 1);
    expect_turn(5, 3, 5);
    world_end(6);
}
MAIN(high_inside)

// A worker that finds no more high-priority operations checks all other workers while a resize adds workers.
static void grows(void) { csched_check(csched_scheduler_resize(scheduler, 3) == CSCHED_OK, "resize"); }

static void high_grows_main(void)
{
    world_open_workers(2);
    int other = thread_start("resizer", grows);
    world_explore();
    submit_at(operation(0), HIGH);
    submit(operation(1));
    thread_join(other);
    world_end(2);
}
MAIN(high_grows)

// Other operations of high priority ran earlier, one at a time: they form no row with operation 3.
static void high_apart_main(void)
{
    open_in_turn();
    for (int number = 5; number < 5 + CSCHED_HIGH_MOST; number++) {
        submit_at(operation(number), HIGH);
        explorer_settle(csched_site("settle"));
    }
    submit(operation_with(4, submits_0_and_1_and_waits));
    gate_pass(&gates[0]);
    world_explore_without_time();
    submit(in_turn(2));
    submit_at(in_turn(3), HIGH);
    gate_open(&gates[1]);
    wait_for_all();
    expect_turn(3, 1, 1);
    world_end(5 + CSCHED_HIGH_MOST);
}
MAIN(high_apart)

// Another worker may steal an operation of high priority, and the ones queued next to it.
static void high_and_thief_main(void)
{
    world_open_workers(2);
    quiet = 0;
    world_explore();
    csched_operation first = operation_with(0, submits_many); // 1 to 4: inherit
    submit_at(first, HIGH);
    submit_at(operation_with(5, stays_quiet), BACKGROUND);
    world_end(6);
}
MAIN(high_and_thief)

// Background operations wait for queued operations of default priority.
static void background_main(void)
{
    open_in_turn();
    submit(operation_with(4, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    world_explore_without_time();
    submit_at(in_turn(2), BACKGROUND);
    submit(in_turn(0));
    submit(in_turn(1));
    gate_open(&gates[1]);
    wait_for_all();
    expect_turn(2, 3, 3);
    world_end(3);
}
MAIN(background)

// After a suspension, the worker finds one background and one default operation. It runs the default one
// first, although the background one was submitted first.
static void resumed_main(void)
{
    open_in_turn();
    csched_scheduler_suspend(scheduler);
    submit_at(in_turn(0), BACKGROUND);
    submit(in_turn(1));
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    wait_for_all();
    expect_turn(0, 2, 2);
    world_end(2);
}
MAIN(resumed)

// Undisturbed: no other thread runs meanwhile. While more operations of the row are queued, the worker must
// not search between them: a search would begin with a yield.
enum { ROW = 3 * CSCHED_HIGH_MOST };
static csched_priority priority_of_row;
static int yields_before;
static int left_in_row;

static void is_of_a_row(void *context, void *extra, csched_disposition disposition)
{
    (void)context, (void)extra, (void)disposition;
    if (--left_in_row == 0 && times_yielded != yields_before) {
        explorer_fail("the worker yields though others wait (N4)");
    }
}

static void submits_a_row(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    for (int number = 0; number < ROW; number++) {
        submit_at(operation_with(number, is_of_a_row), priority_of_row);
    }
    yields_before = times_yielded;
}

static void run_row(csched_priority priority)
{
    priority_of_row = priority;
    left_in_row = ROW;
    world_open_workers(1);
    submit(operation_with(0, submits_a_row));
    world_end(1);
}

static void row_of_high_main(void) { run_row(HIGH); }
MAIN(row_of_high)

static void row_of_background_main(void) { run_row(BACKGROUND); }
MAIN(row_of_background)

// MARK: Shares

static int rounds; // runs of an operation that resubmits itself
static int most_rounds;

static void goes_on_until_open(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    if (!gate_is_open(&gates[0]) || !gate_is_open(&gates[1])) {
        if (++rounds > most_rounds) {
            explorer_fail("an operation waits while another one has begun %d times (S11)", rounds);
        }
        csched_yield(); // otherwise the explorer would run no other thread
        submit(operation_with(number_of(context), goes_on_until_open));
    }
}

static void opens_the_first(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[0]);
}

static void opens_the_second(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[1]);
}

static void endless(csched_priority priority, csched_priority first, csched_priority second)
{
    rounds = 0;
    most_rounds = 1000;
    world_open_workers(1);
    submit_at(operation_with(8, goes_on_until_open), priority);
    world_explore_without_time();
    submit_at(operation_with(0, opens_the_first), first);
    submit_at(operation_with(1, opens_the_second), second);
    world_end(2);
}

static void share_main(void) { endless(DEFAULT, BACKGROUND, BACKGROUND); }
MAIN(share)

static void shares_main(void) { endless(HIGH, DEFAULT, BACKGROUND); }
MAIN(shares)

static void share_of_high_main(void) { endless(HIGH, HIGH, DEFAULT); }
MAIN(share_of_high)

// The same, but a body submits the older operations, to the worker's own deques. Nothing arrives from
// outside, so the turns can be counted.
static csched_priority priority_of_first, priority_of_second;

static void submits_both_and_goes_on(void *context, void *extra, csched_disposition disposition)
{
    submit_at(operation_with(0, opens_the_first), priority_of_first);
    submit_at(operation_with(1, opens_the_second), priority_of_second);
    goes_on_until_open(context, extra, disposition);
}

static void endless_inside(csched_priority priority, csched_priority first, csched_priority second)
{
    rounds = 0;
    most_rounds = 4 * CSCHED_FAIR_MOST;
    priority_of_first = first;
    priority_of_second = second;
    world_open_workers(1);
    submit_at(operation_with(8, submits_both_and_goes_on), priority);
    world_explore_without_time();
    world_end(2);
}

static void share_inside_main(void) { endless_inside(DEFAULT, BACKGROUND, BACKGROUND); }
MAIN(share_inside)

static void shares_inside_main(void) { endless_inside(HIGH, DEFAULT, BACKGROUND); }
MAIN(shares_inside)

static void older_high_main(void) { endless_inside(HIGH, HIGH, DEFAULT); }
MAIN(older_high)

static void older_background_main(void) { endless_inside(BACKGROUND, BACKGROUND, DEFAULT); }
MAIN(older_background)

static void submits_an_older_one_and_goes_on(void *context, void *extra, csched_disposition disposition)
{
    submit(operation_with(0, opens_the_first));
    submit_at(operation_with(7, goes_on_until_open), BACKGROUND);
    goes_on_until_open(context, extra, disposition);
}

// Undisturbed: endless rows of high priority. The end of each row cuts the current fair interval short.
static int left_in_turn;

static void begins_beside_high(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    begins_in_turn(number_of(context));
    left_in_turn--;
}

static void goes_on_beside_them(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    if (left_in_turn != 0) {
        submit_at(operation_with(number_of(context), goes_on_beside_them), HIGH);
    }
}

static void older_beside_high_main(void)
{
    world_open_workers(1);
    left_in_turn = IN_TURN;
    csched_scheduler_suspend(scheduler);
    for (int number = 0; number < IN_TURN; number++) {
        submit(operation_with(number, begins_beside_high));
    }
    submit_at(operation_with(0, goes_on_beside_them), HIGH);
    csched_scheduler_resume(scheduler);
    world_end(0);
}
MAIN(older_beside_high)

// The background gets every other fair turn; the remaining ones are for older operations.
static void older_beside_background_main(void)
{
    rounds = 0;
    most_rounds = 8 * CSCHED_FAIR_MOST;
    world_open_workers(1);
    gate_open(&gates[1]);
    submit(operation_with(8, submits_an_older_one_and_goes_on));
    world_explore_without_time();
    world_end(1);
}
MAIN(older_beside_background)

// One operation of each priority resubmits itself. Counts how many operations of all priorities begin between
// two of the same priority.
enum { PRIORITIES = 3 };
static int begun_in_all;
static int last_turn[PRIORITIES];

static void goes_on_and_counts(void *context, void *extra, csched_disposition disposition)
{
    (void)disposition;
    begun_in_all++;
    last_turn[(uintptr_t)extra] = begun_in_all;
    for (int priority = 0; priority < PRIORITIES; priority++) {
        if (begun_in_all - last_turn[priority] > CSCHED_FAIR_MOST) {
            explorer_fail("%d operations began in a row, and none of priority %d (N4)",
                          begun_in_all - last_turn[priority], priority);
        }
    }
    if (begun_in_all < 6 * CSCHED_FAIR_MOST) {
        csched_operation again = operation_with(number_of(context), goes_on_and_counts);
        again.extra = extra;
        submit_at(again, (csched_priority)(uintptr_t)extra);
    }
}

static void submits_one_of_each(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    for (int priority = 0; priority < PRIORITIES; priority++) {
        csched_operation one = operation_with(priority + 1, goes_on_and_counts);
        one.extra = (void *)(uintptr_t)priority;
        submit_at(one, (csched_priority)priority);
    }
}

static void counted_shares_main(void)
{
    begun_in_all = 0;
    for (int priority = 0; priority < PRIORITIES; priority++) {
        last_turn[priority] = 0;
    }
    world_open_workers(1);
    csched_scheduler_suspend(scheduler); // so that short operations run first, and fair turns become rare
    for (int number = 0; number < CSCHED_FAIR_FIRST; number++) {
        submit(operation_with(1, does_nothing));
    }
    submit(operation_with(0, submits_one_of_each));
    csched_scheduler_resume(scheduler);
    world_explore_without_time();
    world_end(1);
}
MAIN(counted_shares)

// Many void background operations are queued, and one that is not void: all of them together use one share.
static int void_ones;

static void is_void(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    void_ones++;
    ran(number_of(context), disposition);
    csched_turn_was_void();
}

static void counts_until_open(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    if (!gate_is_open(&gates[0])) {
        if (++rounds > CSCHED_FAIR_MOST) {
            explorer_fail("%d operations have begun, and of the background %d that were void (N4)", rounds,
                          void_ones);
        }
        submit_at(operation_with(number_of(context), counts_until_open), csched_priority_current());
    }
}

enum { VOID_ONES = 6 };

static void submits_void_ones_and_goes_on(void *context, void *extra, csched_disposition disposition)
{
    // The operation that is not void is in the middle, because the newest and the oldest both get turns.
    for (int number = 0; number < VOID_ONES; number++) {
        if (number == VOID_ONES / 2) {
            submit_at(operation_with(VOID_ONES, opens_the_first), BACKGROUND);
        }
        submit_at(operation_with(number, is_void), BACKGROUND);
    }
    counts_until_open(context, extra, disposition);
}

static void void_beside(csched_priority priority)
{
    rounds = void_ones = 0;
    world_open_workers(1);
    submit_at(operation_with(VOID_ONES + 1, submits_void_ones_and_goes_on), priority);
    world_explore_without_time();
    world_end(VOID_ONES + 1);
}

static void void_beside_default_main(void) { void_beside(DEFAULT); }
MAIN(void_beside_default)

static void void_beside_high_main(void) { void_beside(HIGH); }
MAIN(void_beside_high)

// A completion's notification runs at default priority, whatever is submitted after it.
static csched_completion *notifies;

static void is_notified(void *context)
{
    expect_priority(DEFAULT);
    ran(number_of(context), CSCHED_RUN);
    gate_open(&gates[2]);
}

static void notified_main(void)
{
    world_open_workers(1);
    notifies = csched_completion_create();
    csched_completion_enter(notifies, 1);
    csched_notification *notification = csched_completion_notify(notifies, is_notified, operation(3).context);
    csched_check(notification != NULL, "notify");
    submit(operation_with(0, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    csched_operation last = operation(1);
    last.counter = notifies;
    submit(last);
    (void)csched_completion_leave(notifies, 1);
    world_explore_without_time();
    gate_open(&gates[1]);
    submit_at(operation(2), HIGH);
    wait_for_all();
    gate_pass(&gates[2]);
    expect_ran(4);
    explorer_calm(true);
    csched_notification_release(notification);
    csched_completion_release(notifies);
    world_close();
}
MAIN(notified)

// MARK: Nothing is overlooked

// At most two default operations may begin while one of high priority is queued: one that the worker already
// held, and one between two rows.
enum { LATE_MOST = 2 };
static int late; // plain: used by one worker
static int first_late;
static csched_atomic(bool) counts; // the other worker, if any, waits in a body and holds no operation

static void comes_late(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (csched_load(&counts, seq_cst) && gate_is_open(&gates[2]) && !gate_is_open(&gates[3]) &&
        ++late > LATE_MOST) {
        explorer_fail("%d operations began while one of high priority waited (N2, S11)", late);
    }
    ran(number_of(context), disposition);
}

static void opens_gate_3(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[3]);
}

static void submit_row(int count)
{
    csched_operation row[8];
    for (int index = 0; index < count; index++) {
        row[index] = operation_with(first_late + index, comes_late);
    }
    csched_check(csched_submit_bulk_at(scheduler, row, (size_t)count, DEFAULT) == CSCHED_OK,
                 "a submission was not accepted");
}

// The only worker returns from an operation of high priority, finds no other, lowers the flag, and continues
// with a row of default operations. Meanwhile one more of high priority arrives.
static void waits_and_submits_a_row(void *context, void *extra, csched_disposition disposition)
{
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    submit_row(5);
    (void)extra;
    ran(number_of(context), disposition);
}

static void lower_main(void)
{
    late = 0;
    csched_init(&counts, true);
    first_late = 2;
    world_open_workers(1);
    submit_at(operation_with(0, waits_and_submits_a_row), HIGH);
    gate_pass(&gates[0]);
    world_explore_without_time();
    gate_open(&gates[1]);
    give_way();
    submit_at(operation_with(1, opens_gate_3), HIGH);
    gate_open(&gates[2]);
    world_end(7);
}
MAIN(lower)

// The worker already has the row: only its check and the submission are explored.
static void submits_a_row_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit_row(5);
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void lower_late_main(void)
{
    late = 0;
    csched_init(&counts, true);
    first_late = 2;
    world_open_workers(1);
    submit_at(operation_with(0, submits_a_row_and_waits), HIGH);
    gate_pass(&gates[0]);
    gate_open(&gates[1]);
    world_explore_without_time();
    submit_at(operation_with(1, opens_gate_3), HIGH);
    gate_open(&gates[2]);
    world_end(7);
}
MAIN(lower_late)

// The same, but a worker pushes the operation of high priority while the other worker lowers the flag and
// then waits in a body.
static void says_so_and_passes_gate(void *context, void *extra, csched_disposition disposition)
{
    csched_store(&counts, true, seq_cst);
    passes_gate(context, extra, disposition);
}

static void waits_and_submits_the_waiting_one(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit_at(operation_with(8, says_so_and_passes_gate), DEFAULT);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void opens_gates_0_and_3(void *context, void *extra, csched_disposition disposition)
{
    opens_gate_3(context, extra, disposition);
    gate_open(&gates[0]);
}

static void pushes_high_and_a_row(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit_row(5);
    gate_pass(&gates[1]);
    submit_at(operation_with(1, opens_gates_0_and_3), HIGH);
    gate_open(&gates[2]);
    ran(number_of(context), disposition);
}

static void lower_and_push_main(void)
{
    late = 0;
    csched_init(&counts, false);
    first_late = 3;
    world_open_workers(2);
    submit_at(operation_with(0, waits_and_submits_the_waiting_one), HIGH);
    explorer_settle(csched_site("settle"));
    submit(operation_with(2, pushes_high_and_a_row));
    explorer_settle(csched_site("settle"));
    world_explore();
    gate_open(&gates[1]);
    world_end(9);
}
MAIN(lower_and_push)

// The flag is still up: one worker is in a body and will lower the flag afterwards, and no worker has checked
// since that body began.
static void passes_gate_3(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[3]);
    ran(number_of(context), disposition);
}

static void pushes_a_row_and_later_high(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    gate_pass(&gates[0]);
    submit_row(5);
    gate_pass(&gates[1]);
    submit_at(operation_with(1, opens_gates_0_and_3), HIGH);
    gate_open(&gates[2]);
    ran(number_of(context), disposition);
}

static void lower_and_push_late_main(void)
{
    late = 0;
    csched_init(&counts, false);
    first_late = 3;
    world_open_workers(2);
    submit(operation_with(9, passes_gate_3)); // so that the worker that lowers the flag continues first
    explorer_settle(csched_site("settle"));
    submit(operation_with(2, pushes_a_row_and_later_high));
    explorer_settle(csched_site("settle"));
    gate_open(&gates[3]);
    explorer_settle(csched_site("settle"));
    csched_store(&gates[3].open, 0, seq_cst);
    submit_at(operation_with(0, waits_and_submits_the_waiting_one), HIGH);
    explorer_settle(csched_site("settle"));
    gate_open(&gates[0]);
    explorer_settle(csched_site("settle"));
    csched_store(&gates[0].open, 0, seq_cst);
    world_explore_without_time();
    gate_open(&gates[1]);
    world_end(10);
}
MAIN(lower_and_push_late)

// The only worker falls asleep while an operation arrives. Its priority has been used before, or not.
static void opens_gate_0_and_lingers(void *context, void *extra, csched_disposition disposition)
{
    opens_gate(context, extra, disposition);
    give_way();
}

static void fall_asleep(csched_priority priority, bool used)
{
    world_open_workers(1);
    if (used) {
        submit_at(operation(2), priority);
        explorer_settle(csched_site("settle"));
    }
    submit(operation_with(0, opens_gate_0_and_lingers));
    gate_pass(&gates[0]);
    world_explore_without_time();
    give_way();
    submit_at(operation(1), priority);
    world_end(used ? 3 : 2);
}

static void asleep_high_main(void) { fall_asleep(HIGH, false); }
MAIN(asleep_high)

static void asleep_background_main(void) { fall_asleep(BACKGROUND, false); }
MAIN(asleep_background)

static void asleep_used_main(void) { fall_asleep(HIGH, true); }
MAIN(asleep_used)

static void asleep_background_used_main(void) { fall_asleep(BACKGROUND, true); }
MAIN(asleep_background_used)

// A body submits an operation and waits for it. The other worker, which is falling asleep, has to take the
// operation: at once or, if the priority is high, when the sentry's timeout expires (N6).
static csched_priority pushed;

static void explore_push(void)
{
    if (pushed == HIGH) {
        world_explore();
    } else {
        world_explore_without_time();
    }
}

static void submits_1_and_waits(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    submit_at(operation_with(1, opens_gate_2), pushed);
    gate_pass(&gates[2]);
}

static void push_and_wait(csched_priority priority, bool used)
{
    pushed = priority;
    world_open_workers(2);
    if (used) {
        submit_at(operation(3), priority);
        explorer_settle(csched_site("settle"));
    }
    submit(operation_with(2, opens_gate_0_and_lingers));
    gate_pass(&gates[0]);
    explore_push();
    give_way();
    submit(operation_with(0, submits_1_and_waits));
    world_end(used ? 4 : 3);
}

static void push_high_main(void) { push_and_wait(HIGH, false); }
MAIN(push_high)

static void push_background_main(void) { push_and_wait(BACKGROUND, false); }
MAIN(push_background)

static void push_used_main(void) { push_and_wait(HIGH, true); }
MAIN(push_used)

// The body has already begun: only its push and the other worker's sleep are explored.
static void waits_submits_and_waits(void *context, void *extra, csched_disposition disposition)
{
    gate_open(&gates[0]);
    gate_pass(&gates[1]);
    submits_1_and_waits(context, extra, disposition);
}

static void opens_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    gate_open(&gates[1]);
}

static void push_late(csched_priority priority)
{
    pushed = priority;
    world_open_workers(2);
    submit(operation_with(0, waits_submits_and_waits));
    gate_pass(&gates[0]);
    explorer_settle(csched_site("settle"));
    explore_push();
    submit(operation_with(2, opens_gate_1));
    world_end(3);
}

static void push_late_main(void) { push_late(HIGH); }
MAIN(push_late)

static void push_late_background_main(void) { push_late(BACKGROUND); }
MAIN(push_late_background)

// The pushing worker has just been added, and the other one may not know of it.
static void grow_and_push_main(void)
{
    pushed = BACKGROUND;
    world_open_workers(1);
    submit(operation_with(2, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    submit(operation_with(0, submits_1_and_waits));
    world_explore_without_time();
    gate_open(&gates[1]);
    csched_check(csched_scheduler_resize(scheduler, 2) == CSCHED_OK, "resize");
    world_end(3);
}
MAIN(grow_and_push)

// Each of two submissions needs a worker, but both counted on the same one.
static void submits_the_waiting_one(void) { submit_at(operation_with(0, passes_gate), BACKGROUND); }
static void submits_the_awaited_one(void) { submit_at(operation_with(1, opens_gate), HIGH); }

static void two_main(void)
{
    world_open_workers(2);
    csched_completion_enter(counter, 1);
    int one = thread_start("submitter", submits_the_waiting_one);
    int other = thread_start("submitter", submits_the_awaited_one);
    world_explore_without_time();
    thread_join(one);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(2);
}
MAIN(two)

// The first operations of each priority arrive at the same time: none of the flags is lost.
static void submits_the_background_one(void) { submit_at(operation(0), BACKGROUND); }
static void submits_the_high_one(void) { submit_at(operation(1), HIGH); }

static void flags_main(void)
{
    world_open_workers(1);
    csched_completion_enter(counter, 1);
    int one = thread_start("submitter", submits_the_background_one);
    int other = thread_start("submitter", submits_the_high_one);
    world_explore_without_time();
    thread_join(one);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(2);
}
MAIN(flags)

// The same while the worker is in a body.
static void flags_busy_main(void)
{
    world_open_workers(1);
    submit(operation_with(2, tells_and_waits_for_gate_1));
    gate_pass(&gates[0]);
    int one = thread_start("submitter", submits_the_background_one);
    int other = thread_start("submitter", submits_the_high_one);
    world_explore_without_time();
    thread_join(one);
    thread_join(other);
    gate_open(&gates[1]);
    world_end(3);
}
MAIN(flags_busy)

// The inbox of a priority belongs to only one scheduler.
static csched_scheduler *elsewhere;

static void runs_elsewhere(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    if (csched_scheduler_current() != elsewhere) {
        explorer_fail("an operation runs at another scheduler (S1)");
    }
    ran(number_of(context), disposition);
}

static void two_schedulers_main(void)
{
    world_open_workers(1);
    csched_configuration configuration = world_configuration();
    configuration.workers = 1;
    csched_check(csched_scheduler_create(&configuration, &elsewhere) == CSCHED_OK, "create");
    submit_at(operation(0), HIGH);
    submit_at(operation(1), BACKGROUND);
    for (csched_priority priority = DEFAULT; priority <= BACKGROUND; priority++) {
        csched_operation what = operation_with(2 + (int)priority, runs_elsewhere);
        csched_check(csched_submit_at(elsewhere, &what, priority) == CSCHED_OK, "was not accepted");
    }
    wait_for_all();
    csched_scheduler_destroy(elsewhere);
    world_end(5);
}
MAIN(two_schedulers)

// The only looker finds an operation of high priority, whose body waits for a second operation. The
// submission of the second one counted on the same looker.
static void last_to_look_main(void)
{
    world_open_workers(2);
    csched_completion_enter(counter, 1);
    submit(operation_with(2, tells_and_waits_for_gate_1));
    explorer_settle(csched_site("settle"));
    submit(operation(3));
    explorer_settle(csched_site("settle"));
    gates[0].open = 0;
    gate_open(&gates[1]);
    int other = thread_start("submitter", submits_the_awaited_one);
    world_explore_without_time();
    give_way();
    submit_at(operation_with(0, passes_gate), HIGH);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(4);
}
MAIN(last_to_look)

// Any thread may stop for ever, even a submitter that has published and not yet raised the flag.
enum { FIRST_WORKER = 1, LAST_WORKER = 2, FIRST_SUBMITTER = 3 };
enum { LATE = 8, LATE_COUNT = 3 };

static uint64_t left; // operations published but not run, at the end

static void submits_0_high(void) { submit_at(operation(0), HIGH); }
static void submits_1_in_background(void) { submit_at(operation(1), BACKGROUND); }

static void free_main(void)
{
    left = 0;
    world_open_workers(2);
    (void)thread_start("submitter", submits_0_high);
    (void)thread_start("submitter", submits_1_in_background);
    world_explore();
    for (int number = LATE; number < LATE + LATE_COUNT; number++) {
        explorer_settle(csched_site("settle"));
        submit(operation(number));
    }
    explorer_settle(csched_site("settle"));
    csched_statistics sum = csched_scheduler_statistics(scheduler);
    left = sum.submitted - sum.executed;
    gate_open(&gates[3]);
    if (!explorer_freezes()) {
        wait_for_all();
        expect_ran(2);
        world_close();
    }
}

static void free_check_frozen(int frozen)
{
    bool is_worker = frozen >= FIRST_WORKER && frozen <= LAST_WORKER;
    for (int number = 0; number < 2; number++) {
        if (!is_worker && frozen != FIRST_SUBMITTER + number && times_run(number) != 1) {
            explorer_fail("operation %d was run %d times, and no worker had stopped (S2)", number,
                          times_run(number));
        }
    }
    int missing = 0;
    for (int number = LATE; gates[3].open != 0 && number < LATE + LATE_COUNT; number++) {
        missing += times_run(number) != 1;
    }
    if (missing > is_worker) {
        explorer_fail("%d operations that came after a thread had stopped were not run (S2)", missing);
    }
    if (!is_worker && gates[3].open != 0 && left != 0) {
        explorer_fail("%d operations were published and not run (N2, S2)", (int)left);
    }
}
MAIN(free)

// MARK: Suspended

static void looks_around_high(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    expect_priority(HIGH);
    looks_around(number_of(context), disposition);
}

static void looks_around_in_background(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    expect_priority(BACKGROUND);
    looks_around(number_of(context), disposition);
}

static void suspend_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit_at(operation_with(0, looks_around_high), HIGH);
    submit_at(operation_with(1, looks_around_in_background), BACKGROUND);
    world_explore_without_time();
    suspends_and_resumes();
    world_end(2);
}
MAIN(suspend)

// The same, with the operations in the worker's own deques.
static void submits_of_each(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    looks_around(number_of(context), disposition);
    submit_at(operation_with(1, looks_around_high), HIGH);
    submit_at(operation_with(2, looks_around_in_background), BACKGROUND);
    submit_at(operation_with(3, looks_around_high), HIGH);
}

static void suspend_inside_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, submits_of_each));
    world_explore_without_time();
    suspends_and_resumes();
    world_end(4);
}
MAIN(suspend_inside)

static void suspend_two_main(void)
{
    quiet = 0;
    world_open_workers(2);
    submit(operation_with(0, submits_of_each));
    world_explore();
    suspends_and_resumes();
    world_end(4);
}
MAIN(suspend_two)

// Operations submitted while suspended run afterwards.
static void resume_main(void)
{
    world_open_workers(2);
    csched_scheduler_suspend(scheduler);
    submit_at(operation_with(0, passes_gate), HIGH);
    submit_at(operation_with(1, opens_gate), BACKGROUND);
    explorer_settle(csched_site("settle"));
    world_explore();
    csched_scheduler_resume(scheduler);
    world_end(2);
}
MAIN(resume)

// A worker returns from its body while the scheduler is being suspended; one operation of high priority is
// queued.
static void submits_1_high(void *context, void *extra, csched_disposition disposition)
{
    submit_at(operation_with(1, looks_around_high), HIGH);
    tells_and_waits_for_gate_1(context, extra, disposition);
}

static void suspended_sleeps_main(void)
{
    quiet = 0;
    world_open_workers(1);
    submit(operation_with(0, submits_1_high));
    gate_pass(&gates[0]);
    world_explore_without_time();
    gate_open(&gates[1]);
    suspends_and_resumes();
    world_end(2);
}
MAIN(suspended_sleeps)

static void submits_the_submitting_one_high(void *context, void *extra, csched_disposition disposition)
{
    submit_at(operation_with(0, submits_1_and_waits), HIGH);
    tells_and_waits_for_gate_1(context, extra, disposition);
}

// A suspended scheduler is shut down. The operations in the worker's deque need two workers, and are run
// while both still exist.
static void suspend_and_drain_main(void)
{
    pushed = HIGH;
    world_open_workers(2);
    submit(operation_with(2, submits_the_submitting_one_high));
    gate_pass(&gates[0]);
    csched_scheduler_suspend(scheduler);
    explorer_settle(csched_site("settle"));
    gate_open(&gates[1]);
    world_explore();
    give_way();
    csched_check(csched_scheduler_shutdown(scheduler, CSCHED_FOREVER) == CSCHED_OK, "shutdown");
    world_end(3);
}
MAIN(suspend_and_drain)

// MARK: The end

static void submits_high_and_background(void)
{
    for (int number = 0; number < 2; number++) {
        csched_operation what = operation(number);
        accepted[number] = csched_submit_at(scheduler, &what, number == 0 ? HIGH : BACKGROUND) == CSCHED_OK;
    }
}

static void end_beside_a_submitter(uint64_t timeout_ns)
{
    world_open_workers(1);
    int submitter = thread_start("submitter", submits_high_and_background);
    world_explore_without_time();
    shut_down(timeout_ns);
    explorer_calm(true);
    thread_join(submitter);
    expect_accepted(2, timeout_ns == 0);
    csched_operation refused = operation(14);
    refused.counter = NULL;
    csched_check(csched_submit_at(scheduler, &refused, HIGH) == CSCHED_CLOSED &&
                     csched_submit_at(scheduler, &refused, BACKGROUND) == CSCHED_CLOSED,
                 "a submission after shutdown was accepted (S14)");
    world_close();
}

static void drain_main(void) { end_beside_a_submitter(CSCHED_FOREVER); }
MAIN(drain)

static void cancel_main(void) { end_beside_a_submitter(0); }
MAIN(cancel)

// The same, but the submitting thread already has its inboxes.
static void submits_and_later_again(void)
{
    submit_at(operation(8), HIGH);
    submit_at(operation(9), BACKGROUND);
    gate_pass(&gates[0]);
    submits_high_and_background();
}

static void drain_again_main(void)
{
    world_open_workers(1);
    int submitter = thread_start("submitter", submits_and_later_again);
    explorer_settle(csched_site("settle"));
    world_explore_without_time();
    gate_open(&gates[0]);
    shut_down(CSCHED_FOREVER);
    explorer_calm(true);
    thread_join(submitter);
    expect_accepted(2, false);
    world_close();
}
MAIN(drain_again)

// A body submits the remaining operations.
static void submits_1_to_3(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    ran(number_of(context), disposition);
    submit_at(operation(1), BACKGROUND);
    submit_at(operation(2), HIGH);
    submit(operation(3));
}

static void end_inside(uint64_t timeout_ns, uint32_t workers)
{
    world_open_workers(workers);
    for (int number = 0; number < 4; number++) {
        accepted[number] = true;
    }
    submit(operation_with(0, submits_1_to_3));
    world_explore_without_time();
    shut_down(timeout_ns);
    explorer_calm(true);
    expect_settled(1);
    if (times_run(0) == 1) {
        expect_accepted(4, timeout_ns == 0);
    }
    world_close();
}

static void drain_inside_main(void) { end_inside(CSCHED_FOREVER, 1); }
MAIN(drain_inside)

static void cancel_inside_main(void) { end_inside(0, 1); }
MAIN(cancel_inside)

static void drain_two_main(void) { end_inside(CSCHED_FOREVER, 2); }
MAIN(drain_two)

// MARK: Workers come and go

static void submits_of_each_and_waits(void *context, void *extra, csched_disposition disposition)
{
    submits_of_each(context, extra, disposition);
    gate_open(&gates[2]);
    gate_pass(&gates[1]);
}

static void shrink_main(void)
{
    quiet = 0;
    world_open_workers(2);
    submit(operation_with(4, passes_gate)); // for the worker that stays
    submit(operation_with(0, submits_of_each_and_waits));
    gate_pass(&gates[2]);
    world_explore();
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_open(&gates[1]);
    gate_open(&gates[0]);
    world_end(5);
}
MAIN(shrink)

// A worker leaves, and its deques with it, while the remaining one is busy.
static void leave_main(void)
{
    quiet = 0;
    world_open_workers(2);
    submit(operation_with(4, passes_gate));
    explorer_settle(csched_site("settle"));
    submit(operation_with(0, submits_of_each_and_waits));
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    gate_open(&gates[1]);
    explorer_settle(csched_site("settle"));
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    world_explore();
    gate_open(&gates[0]);
    world_end(5);
}
MAIN(leave)

// A worker leaves, and there is no memory to transfer its operations: the worker runs them itself.
static void submits_1_high_and_waits_for_gate_1(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit_at(operation_with(1, opens_gate), HIGH);
    gate_open(&gates[2]);
    gate_pass(&gates[1]);
    ran(number_of(context), disposition);
}

static void leave_memory_main(void)
{
    world_open_workers(2);
    submit(operation_with(2, passes_gate));
    explorer_settle(csched_site("settle"));
    submit(operation_with(0, submits_1_high_and_waits_for_gate_1));
    gate_pass(&gates[2]);
    csched_check(csched_scheduler_resize(scheduler, 1) == CSCHED_OK, "resize");
    explorer_memory_ends(true);
    world_explore_without_time();
    gate_open(&gates[1]);
    wait_for_all();
    explorer_memory_ends(false);
    world_end(3);
}
MAIN(leave_memory)

// The blocking worker loses its seat; the operations in its deques are run nevertheless.
static void submits_of_each_and_blocks(void *context, void *extra, csched_disposition disposition)
{
    submits_of_each(context, extra, disposition);
    submit_at(operation_with(4, opens_gate), BACKGROUND);
    csched_block_begin();
    gate_pass(&gates[0]);
    csched_block_end();
}

static void replaced_main(void)
{
    quiet = 0;
    world_open_with_spares(1, 1);
    submit(operation_with(0, submits_of_each_and_blocks));
    world_explore();
    world_end(5);
}
MAIN(replaced)

// The worker continues without a seat, and enters the reserve with operations that it has submitted.
static void blocks_and_submits(void *context, void *extra, csched_disposition disposition)
{
    gate_pass(&gates[0]);
    submits_of_each(context, extra, disposition);
}

static void reserve_main(void)
{
    quiet = 0;
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks_and_submits));
    explorer_settle(csched_site("settle"));
    submit_at(operation(4), HIGH); // so that the waiting worker is replaced
    explorer_settle(csched_site("settle"));
    gate_open(&gates[0]);
    world_explore();
    world_end(5);
}
MAIN(reserve)

// The only worker blocks, and the operation that would unblock it is queued.
static void blocks(void *context, void *extra, csched_disposition disposition)
{
    csched_block_begin();
    passes_gate(context, extra, disposition);
    csched_block_end();
}

static void block(csched_priority priority)
{
    world_open_with_spares(1, 1);
    submit(operation_with(0, blocks));
    world_explore();
    submit_at(operation_with(1, opens_gate), priority);
    world_end(2);
}

static void block_high_main(void) { block(HIGH); }
MAIN(block_high)

static void block_background_main(void) { block(BACKGROUND); }
MAIN(block_background)

// MARK: Inherited

static void has_high_priority(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    expect_priority(HIGH);
    ran(number_of(context), disposition);
}

static void submits_children(void *context, void *extra, csched_disposition disposition)
{
    has_high_priority(context, extra, disposition);
    submit(operation_with(1, has_high_priority));
    csched_operation grandchild[] = {operation_with(2, has_high_priority),
                                     operation_with(3, has_high_priority)};
    csched_check(csched_submit_bulk(scheduler, grandchild, 2) == CSCHED_OK, "a submission was not accepted");
    csched_operation jobs[] = {operation_with(4, has_high_priority), operation_with(5, has_high_priority)};
    for (int job = 0; job < 2; job++) { // the second goes to an inbox
        csched_check(csched_submit_job(scheduler, &jobs[job], CSCHED_PRIORITY_INHERITED) == CSCHED_OK,
                     "a job was not accepted");
    }
}

static void has_default_priority(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    expect_priority(DEFAULT);
    ran(number_of(context), disposition);
}

static void inherit_main(void)
{
    world_open_workers(2);
    world_explore();
    submit_at(operation_with(0, submits_children), HIGH);
    submit(operation_with(6, has_default_priority));
    expect_priority(DEFAULT);
    world_end(7);
}
MAIN(inherit)

// Branches: the joining worker pops the second one itself, or another worker steals it.
static int branches[2]; // plain

static void branch(void *context)
{
    expect_priority(HIGH);
    int number = (int)(intptr_t)context;
    explorer_plain_write(csched_site("branch"), &branches[number]);
    branches[number]++;
}

static void passes_gate_as_branch(void *context)
{
    gate_pass(&gates[0]);
    branch(context);
}

static void opens_gate_as_branch(void *context)
{
    branch(context);
    gate_open(&gates[0]);
}

static void join(void (*first)(void *), void (*second)(void *))
{
    csched_branch one = {.function = first, .context = (void *)(intptr_t)0};
    csched_branch other = {.function = second, .context = (void *)(intptr_t)1};
    csched_check(csched_join(scheduler, one, other) == CSCHED_OK, "join");
    expect_priority(HIGH);
    for (int number = 0; number < 2; number++) {
        explorer_plain_read(csched_site("branch"), &branches[number]);
        if (branches[number] != 1) {
            explorer_fail("branch %d was run %d times (S1)", number, branches[number]);
        }
    }
}

static void joins(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    join(branch, branch);
    ran(number_of(context), disposition);
}

static void joins_in_need(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    join(passes_gate_as_branch, opens_gate_as_branch);
    ran(number_of(context), disposition);
}

// The second branch lies below another operation in the deque. That operation also keeps its priority.
static void submits_as_branch(void *context)
{
    submit(operation_with(1, has_high_priority));
    branch(context);
}

static void joins_below_another(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    join(submits_as_branch, branch);
    if (times_run(1) != 0) {
        explorer_fail("a join ran what is none of its branches (S1)");
    }
    ran(number_of(context), disposition);
}

static void run_joining(csched_function body, uint32_t workers)
{
    branches[0] = branches[1] = 0;
    world_open_workers(workers);
    world_explore();
    submit_at(operation_with(0, body), HIGH);
    world_end(1);
}

static void fork_main(void) { run_joining(joins, 2); }
MAIN(fork)

static void fork_alone_main(void) { run_joining(joins, 1); }
MAIN(fork_alone)

static void fork_below_main(void)
{
    branches[0] = branches[1] = 0;
    world_open_workers(1);
    world_explore();
    submit_at(operation_with(0, joins_below_another), HIGH);
    world_end(2);
}
MAIN(fork_below)

static void fork_taken_main(void) { run_joining(joins_in_need, 2); }
MAIN(fork_taken)

// A wait inside a body runs the operations that it waits for, of any priority. Each runs at its own priority.
static csched_completion *inner;

static csched_operation of_inner(int number, csched_function body)
{
    csched_operation what = operation_with(number, body);
    what.counter = inner;
    return what;
}

static void has_background_priority(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    expect_priority(BACKGROUND);
    ran(number_of(context), disposition);
}

static void submits_and_waits_for_inner(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    submit_at(of_inner(1, has_default_priority), DEFAULT);
    submit_at(of_inner(2, has_background_priority), BACKGROUND);
    submit(of_inner(3, has_high_priority));
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    expect_priority(HIGH);
    submit(operation_with(4, has_high_priority));
    ran(number_of(context), disposition);
}

static void nest_on(uint32_t workers)
{
    world_open_workers(workers);
    inner = csched_completion_create();
    world_explore();
    submit_at(operation_with(0, submits_and_waits_for_inner), HIGH);
    wait_for_all();
    expect_ran(5);
    explorer_calm(true);
    csched_completion_release(inner);
    world_close();
}

static void nested_main(void) { nest_on(1); }
MAIN(nested)

static void nested_two_main(void) { nest_on(2); }
MAIN(nested_two)

// The operation that is waited for is in the deque of the other worker, which is busy.
static void submits_inner_and_waits(void *context, void *extra, csched_disposition disposition)
{
    submit_at(of_inner(1, has_high_priority), HIGH);
    tells_and_waits_for_gate_1(context, extra, disposition);
}

static void waits_for_inner(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_check(csched_completion_wait(inner, CSCHED_FOREVER) == CSCHED_WAIT_COMPLETED, "wait");
    expect_priority(DEFAULT);
    gate_open(&gates[1]);
    ran(number_of(context), disposition);
}

static void nested_theft_main(void)
{
    world_open_workers(2);
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    submit(operation_with(0, submits_inner_and_waits));
    world_explore();
    gate_pass(&gates[0]);
    (void)csched_completion_leave(inner, 1);
    submit(operation_with(2, waits_for_inner));
    wait_for_all();
    expect_ran(3);
    explorer_calm(true);
    csched_completion_release(inner);
    world_close();
}
MAIN(nested_theft)

// MARK: Lanes

static csched_lane *lane;

static void lane_submit(csched_operation what, csched_priority priority)
{
    csched_check(csched_lane_submit_at(lane, &what, priority) == CSCHED_OK,
                 "a submission to the lane was not accepted");
}

// A drain is queued behind other operations: one of high priority in the lane expedites it.
static void open_lane(void)
{
    open_in_turn();
    lane = csched_lane_create(scheduler);
    submit(operation_with(5, submits_0_and_1_and_waits));
    gate_pass(&gates[0]);
    submit(in_turn(2));
}

static void end_lane(int count)
{
    gate_open(&gates[1]);
    wait_for_all();
    csched_lane_release(lane);
    explorer_settle(csched_site("settle"));
    expect_ran(count);
}

static void hurry_main(void)
{
    open_lane();
    world_explore_without_time();
    lane_submit(in_turn(3), DEFAULT);
    lane_submit(in_turn(4), HIGH);
    end_lane(6);
    expect_turn(3, 1, 1);
    expect_turn(4, 2, 2);
    world_close();
}
MAIN(hurry)

// Without an urgent operation the drain waits its turn, and no longer.
static void lane_of_default_priority(void *context, void *extra, csched_disposition disposition)
{
    expect_priority(DEFAULT);
    takes_its_turn(context, extra, disposition);
}

static void lane_in_background_main(void)
{
    open_lane();
    submit_at(in_turn(6), BACKGROUND);
    world_explore_without_time();
    lane_submit(operation_with(3, lane_of_default_priority), BACKGROUND);
    lane_submit(operation_with(4, lane_of_default_priority), BACKGROUND);
    end_lane(7);
    world_close();
}
MAIN(lane_in_background)

// A lane that was expedited once is expedited again the next time.
static void hurry_again_main(void)
{
    open_in_turn();
    lane = csched_lane_create(scheduler);
    lane_submit(in_turn(6), HIGH);
    explorer_settle(csched_site("settle"));
    turns = 0;
    submit(operation_with(5, submits_0_and_1_and_waits));
    gate_pass(&gates[0]);
    submit(in_turn(2));
    world_explore_without_time();
    lane_submit(in_turn(3), DEFAULT);
    lane_submit(in_turn(4), HIGH);
    end_lane(7);
    expect_turn(3, 1, 1);
    expect_turn(4, 2, 2);
    world_close();
}
MAIN(hurry_again)

// Many operations of high priority cause one drain.
static void hurry_once_main(void)
{
    open_lane();
    world_explore_without_time();
    uint64_t before = csched_scheduler_statistics(scheduler).submitted;
    lane_submit(in_turn(3), HIGH);
    lane_submit(in_turn(4), HIGH);
    if (csched_scheduler_statistics(scheduler).submitted - before > 1) {
        explorer_fail("two drains were queued (L8, S17)");
    }
    end_lane(6);
    world_close();
}
MAIN(hurry_once)

// Two threads expedite the same lane, while it drains.
static void lane_submits_3_high(void) { lane_submit(operation(3), HIGH); }

static void hurry_two_main(void)
{
    world_open_workers(2);
    lane = csched_lane_create(scheduler);
    csched_completion_enter(counter, 1);
    int other = thread_start("submitter", lane_submits_3_high);
    world_explore_without_time();
    lane_submit(operation(0), DEFAULT);
    lane_submit(operation(1), HIGH);
    lane_submit(operation(2), BACKGROUND);
    thread_join(other);
    csched_lane_release(lane);
    (void)csched_completion_leave(counter, 1);
    world_end(4);
}
MAIN(hurry_two)

// MARK: Room, memory, threads

static void full_main(void)
{
    world_open_with_places(1);
    world_explore_without_time();
    submit_at(operation(0), HIGH);
    submit_at(operation(1), BACKGROUND);
    submit_at(operation(2), HIGH);
    world_end(3);
}
MAIN(full)

// An operation's place becomes free when it begins, not only when the worker looks for the next operation.
static void full_begun_main(void)
{
    world_open_with_places(1);
    world_explore_without_time();
    submit_at(operation_with(0, passes_gate), HIGH);
    submit_at(operation(1), HIGH);
    gate_open(&gates[0]);
    world_end(2);
}
MAIN(full_begun)

static void memory_main(void)
{
    world_open_workers(1);
    world_explore_without_time();
    for (int number = 0; number < 2; number++) {
        csched_operation what = operation(number);
        csched_status status = csched_submit_at(scheduler, &what, number == 0 ? HIGH : BACKGROUND);
        csched_check(status == CSCHED_OK || status == CSCHED_OUT_OF_MEMORY,
                     "neither accepted nor out of memory");
        accepted[number] = status == CSCHED_OK;
    }
    wait_for_all();
    expect_accepted(2, false);
    world_close();
}
MAIN(memory)

// A thread submits and ends; its inboxes are then freed.
static void churn_main(void)
{
    world_open_workers(1);
    csched_completion_enter(counter, 1);
    int one = thread_start("submitter", submits_0_high);
    world_explore();
    thread_join(one);
    int other = thread_start("submitter", submits_1_in_background);
    thread_join(other);
    (void)csched_completion_leave(counter, 1);
    world_end(2);
}
MAIN(churn)

const explorer_program priority_scenarios[] = {
    SCENARIO("priority", high, "S1 S11", "one of high priority behind others begins next"),
    SCENARIO("priority", high_inside, "S1 S11", "a body submits one of high priority behind others"),
    SCENARIO("priority", high_grows, "R3 S1", "high priority is looked for at workers that become more"),
    SCENARIO("priority", high_apart, "S1 S11", "one of high priority, and none in a row before it"),
    SCENARIO("priority", high_and_thief, "S1 S3 R4", "another worker steals those of high priority"),
    SCENARIO("priority", background, "S1 S11", "one of the background begins behind others"),
    SCENARIO("priority", resumed, "S7 S11", "one of each is found by a search, the background's last"),
    SCENARIO("priority", row_of_high, "S12", "many of high priority, without a search in between"),
    SCENARIO("priority", row_of_background, "S12", "many of the background, without a search in between"),
    SCENARIO("priority", notified, "S15", "one of high priority comes before a notification"),
    SCENARIO("priority", share, "S11", "the background has a share, while others keep coming"),
    SCENARIO("priority", shares, "S11", "each priority has a share, while high ones keep coming"),
    SCENARIO("priority", counted_shares, "S11", "one of each priority goes on: no gap is too long"),
    SCENARIO("priority", void_beside_default, "S11", "void turns of the background have one share together"),
    SCENARIO("priority", void_beside_high, "S11", "the same, while high ones go on"),
    SCENARIO("priority", share_of_high, "S11", "one of high priority submits itself, and others come"),
    SCENARIO("priority", share_inside, "S11", "the background in the worker's deque has a share"),
    SCENARIO("priority", shares_inside, "S11", "each priority in the worker's deques has a share"),
    SCENARIO("priority", older_high, "S11", "one of high priority submits itself, and an older one waits"),
    SCENARIO("priority", older_beside_high, "S11", "older ones beside rows of high priority"),
    SCENARIO("priority", older_beside_background, "S11",
             "default and background ones go on, and an older one waits"),
    SCENARIO("priority", older_background, "S11",
             "one of the background submits itself, and an older one waits"),
    SCENARIO("priority", lower, "S1 S11", "one comes as the worker finds none, and goes on with others"),
    SCENARIO("priority", lower_late, "S1 S11", "one comes as the worker finds none, and has others"),
    SCENARIO("priority", lower_and_push, "S1 S11", "a worker submits one as another finds none"),
    SCENARIO("priority", lower_and_push_late, "S1 S11",
             "a worker submits one as another finds none, and nobody has looked before"),
    SCENARIO("priority", asleep_high, "S1 S3", "the first of high priority as the worker falls asleep"),
    SCENARIO("priority", asleep_background, "S1 S3",
             "the first of the background as the worker falls asleep"),
    SCENARIO("priority", asleep_used, "S1 S3", "one of high priority as the worker falls asleep"),
    SCENARIO("priority", asleep_background_used, "S1 S3", "one of the background as the worker falls asleep"),
    SCENARIO("priority", push_high, "S3 S12",
             "a body waits for the first of high priority, which it submits"),
    SCENARIO("priority", push_background, "S3 S12", "a body waits for the first of the background"),
    SCENARIO("priority", push_used, "S3 S12", "a body waits for one of high priority, which it submits"),
    SCENARIO("priority", push_late, "S3 S12",
             "a body submits one of high priority as the other worker falls asleep"),
    SCENARIO("priority", push_late_background, "S3 S12", "the same, of the background"),
    SCENARIO("priority", grow_and_push, "S3 S12",
             "a worker that has just come submits, and another falls asleep"),
    SCENARIO("priority", two, "S1 S3 S12", "two threads submit, and the operations need a worker each"),
    SCENARIO("priority", flags, "S1 S3", "the first of each priority come at once"),
    SCENARIO("priority", flags_busy, "S1 S3", "the first of each priority come at once, and nobody looks"),
    SCENARIO("priority", two_schedulers, "S1", "a thread submits of each priority to two schedulers"),
    SCENARIO("priority", last_to_look, "S3 S12", "two submissions count on one worker"),
    SCENARIO("priority", free, "S1 S2 S12", "any thread stops for ever between submit and the end",
             .check_frozen = free_check_frozen),
    SCENARIO("priority", suspend, "S7 S3", "suspended while operations come from outside"),
    SCENARIO("priority", suspend_inside, "S7 S3", "suspended while a worker empties its deques"),
    SCENARIO("priority", suspend_two, "S7 S3", "suspended while a second worker steals"),
    SCENARIO("priority", resume, "S3 S7", "resumed with two operations that need a worker each"),
    SCENARIO("priority", suspended_sleeps, "S7 S3", "suspended as a worker comes from a body"),
    SCENARIO("priority", suspend_and_drain, "S13 S7", "a suspended scheduler ends, and one lies in a deque"),
    SCENARIO("priority", drain, "S13 S14", "a thread's first submissions beside a shutdown"),
    SCENARIO("priority", cancel, "C1 C4 S13", "a thread's first submissions beside a shutdown that cancels"),
    SCENARIO("priority", drain_again, "S13 S14", "a thread's later submissions beside a shutdown"),
    SCENARIO("priority", drain_inside, "S13", "a shutdown while a body submits"),
    SCENARIO("priority", cancel_inside, "C1 S13", "a shutdown that cancels while a body submits"),
    SCENARIO("priority", drain_two, "S13", "a shutdown while one of two workers submits"),
    SCENARIO("priority", shrink, "S1 S8", "a worker goes that has some of each in its deques"),
    SCENARIO("priority", leave, "S1 S8", "it has gone before the other one looks"),
    SCENARIO("priority", leave_memory, "S1 S8", "it goes, and there is no memory"),
    SCENARIO("priority", replaced, "S1 S16", "a worker blocks that has some of each in its deques"),
    SCENARIO("priority", reserve, "S1 S16", "a worker without a seat has some of each in its deques"),
    SCENARIO("priority", block_high, "S3 S16", "the only worker blocks, and one of high priority waits"),
    SCENARIO("priority", block_background, "S3 S16",
             "the only worker blocks, and one of the background waits"),
    SCENARIO("priority", inherit, "S1 S15", "what a body submits has its priority"),
    SCENARIO("priority", fork, "S1 S15", "branches have the priority of their body"),
    SCENARIO("priority", fork_alone, "S1 S15", "branches have the priority of their body, on one worker"),
    SCENARIO("priority", fork_below, "S1 S15", "a branch below another operation"),
    SCENARIO("priority", fork_taken, "S12 S15", "a branch that is taken has the priority of its body"),
    SCENARIO("priority", nested, "S15 S16", "a wait inside a body runs operations of each priority"),
    SCENARIO("priority", nested_two, "S15 S16", "the same, on two workers"),
    SCENARIO("priority", nested_theft, "S15 S16", "a wait inside a body takes one of another worker's"),
    SCENARIO("priority", hurry, "S9 S11", "one of high priority hurries its lane"),
    SCENARIO("priority", lane_in_background, "S9 S11", "one of the background does not slow its lane down"),
    SCENARIO("priority", hurry_again, "S9 S11", "a lane is hurried for the second time"),
    SCENARIO("priority", hurry_once, "S17", "a lane is hurried once by two of high priority"),
    SCENARIO("priority", hurry_two, "S1 S9", "two threads hurry a lane that drains"),
    SCENARIO("priority", full, "K1 S3 S6", "submissions of each priority wait for room"),
    SCENARIO("priority", full_begun, "K1 S6", "one of high priority begins, and another waits for room"),
    SCENARIO("priority", memory, "S1 S6", "memory runs out", .allocations_fail = true),
    SCENARIO("priority", churn, "R1 S1", "threads come, submit and end"),
};
const size_t priority_scenario_count = sizeof priority_scenarios / sizeof priority_scenarios[0];
