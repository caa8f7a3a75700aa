// children_scenarios.c - children without objects, and an embedder that takes them over.
//
// The embedder is minimal: a lock, the state of each child that it has taken, and the memory, which it
// frees when it is complete and no thread is inside any more. Children carry their number as their input.

#include "world.h"

#include <string.h>

#include "scenarios.h"

#include "cscheduler/internals/children.h"

enum { FIRST = 2, CHILDREN = 5 };

// The state of a taken child. Under the lock.
typedef enum { PLAIN, WAITS, POSTED, RUNS, ENDED, GIVEN_UP } part;

typedef struct {
    csched_children children;
    csched_child nodes[FIRST];
} memory;

static memory *of; // the composite's
static uint32_t embedder_lock;
static part parts[CHILDREN];
static uint64_t values[CHILDREN]; // plain: of children that ended after they were taken
static int registered;            // how many were sent
static int left;                  // how many of the taken children have not ended
static bool is_cascade, is_closed, is_taken, is_over, is_complete, is_given_up;
static bool is_held;                // a thread inside has to release the memory
static bool has_begun[CHILDREN];    // plain
static bool was_released[CHILDREN]; // plain
static bool throws[CHILDREN];
static bool has_contexts, is_range;
static int of_range;
static int objects; // created and not yet released
static const csched_child *asked;
static void (*while_running)(int number);
static void (*while_released)(int number);
static gate done; // it is complete, or abandoned, and its memory is freed

static void lock_embedder(void) { explorer_lock(csched_site("lock"), &embedder_lock); }
static void unlock_embedder(void) { explorer_unlock(csched_site("unlock"), &embedder_lock); }

static csched_child *child_of(void *child) { return child; }
static int number_of_child(void *child) { return (int)(child_of(child)->input & 15); }
static void *context_of(int number) { return (void *)(intptr_t)(number + 1); }

// MARK: The embedder

// Returns the value of a child; the children of a range have none.
static uint64_t value_of(csched_child *child)
{
    if ((child->flags & CSCHED_CHILD_SHARES) != 0) {
        return 100 + (uint64_t)number_of_child(child);
    }
    explorer_plain_read(csched_site("value"), &child->value[0]);
    return child->value[0];
}

static void free_memory(void)
{
    csched_children_destroy(&of->children);
    if (objects != 0) {
        explorer_fail("%d objects are left (R1)", objects);
    }
    csched_free(of);
    of = NULL;
    gate_open(&done);
}

// Under the lock. True: the caller has to free the memory, under no lock.
static bool complete(void)
{
    if (!is_closed || is_complete || left != 0 || (!is_taken && !is_over)) {
        return false;
    }
    is_complete = true;
    return !is_held;
}

static void begins(int number)
{
    explorer_plain_write(csched_site("begins"), &has_begun[number]);
    if (has_begun[number]) {
        explorer_fail("child %d began twice (S1)", number);
    }
    if (is_cascade && number > 0) {
        explorer_plain_read(csched_site("begins"), &has_begun[number - 1]);
        if (!has_begun[number - 1]) {
            explorer_fail("step %d began before the one before it (S9)", number);
        }
    }
    has_begun[number] = true;
    if (while_running != NULL) {
        while_running(number);
    }
}

static void *call(void *children, void *child)
{
    (void)children;
    int number = number_of_child(child);
    begins(number);
    if (throws[number]) {
        return context_of(number);
    }
    if ((child_of(child)->flags & CSCHED_CHILD_SHARES) == 0) {
        explorer_plain_write(csched_site("value"), &child_of(child)->value[0]);
        child_of(child)->value[0] = 100 + (uint64_t)number;
    }
    return NULL;
}

static void release(void *context)
{
    if (context == NULL) {
        return;
    }
    if (context == &objects) {
        objects--;
        return;
    }
    int number = (int)(intptr_t)context - 1;
    explorer_plain_write(csched_site("release"), &was_released[number]);
    if (was_released[number]) {
        explorer_fail("the block of child %d was released twice (R1)", number);
    }
    was_released[number] = true;
    if (while_released != NULL) {
        while_released(number);
    }
}

static void take(void)
{
    csched_children *children = &of->children;
    csched_taking taking = csched_children_take(children);
    csched_child_state state;
    csched_child *child;
    is_taken = true;
    is_held = true;
    while ((child = csched_children_take_next(children, &taking, &state)) != NULL) {
        int number = number_of_child(child);
        child->object = &objects; // each has a reference
        objects++;
        if (state == CSCHED_CHILD_FINISHED) {
            values[number] = value_of(child); // before anything that would make it visible (P51)
            if (!is_cascade && csched_child_state_of(child) != CSCHED_CHILD_FINISHED) {
                explorer_fail("child %d had finished, and has not any more", number);
            }
            parts[number] = ENDED;
            continue;
        }
        bool is_current = !is_cascade || (taking.is_begun && taking.taken - 1 == taking.current);
        parts[number] = state == CSCHED_CHILD_RUNNING ? RUNS : is_current ? POSTED : WAITS;
        left++;
    }
    is_held = csched_children_taken(children, &taking) && !is_over;
}

// The next step of a taken cascade has to begin. Under the lock.
static int next_part(void)
{
    for (int number = 0; is_cascade && is_closed && !is_given_up && number < registered; number++) {
        if (parts[number] == POSTED || parts[number] == RUNS) {
            return -1;
        }
        if (parts[number] == WAITS) {
            parts[number] = POSTED;
            return number;
        }
    }
    return -1;
}

static void part_turn(void *context, void *extra, csched_disposition disposition);

static void send_part(int number)
{
    if (number >= 0) {
        csched_operation turn = {.run = part_turn, .context = context_of(number)};
        csched_check(csched_submit_exempt(scheduler, &turn) == CSCHED_OK, "a turn was not accepted");
    }
}

// A taken child has ended, with or without its value.
static void end_part(int number, uint64_t value)
{
    lock_embedder();
    if (parts[number] != RUNS && parts[number] != GIVEN_UP) {
        explorer_fail("child %d ended, which did not run (S1)", number);
    }
    left -= parts[number] == RUNS;
    parts[number] = parts[number] == RUNS ? ENDED : GIVEN_UP;
    values[number] = value;
    int next = next_part();
    bool frees = complete();
    unlock_embedder();
    if (frees) {
        free_memory();
    }
    send_part(next);
}

// Releases the block of a taken child; those of a range are released with the first.
static void release_part(int number)
{
    if (!is_range) {
        release(context_of(number));
    }
}

// Called for a taken child before its turn.
static void turn_part(int number)
{
    lock_embedder();
    bool runs = parts[number] == POSTED;
    parts[number] = runs ? RUNS : parts[number];
    unlock_embedder();
    if (runs) {
        begins(number);
        end_part(number, throws[number] ? 0 : 100 + (uint64_t)number);
        release_part(number);
    }
}

static void part_turn(void *context, void *extra, csched_disposition disposition)
{
    (void)extra, (void)disposition;
    turn_part((int)(intptr_t)context - 1);
}

static void turn(void *children, void *child)
{
    (void)children;
    turn_part(number_of_child(child));
}

static void returned(void *children, void *child)
{
    (void)children;
    int number = number_of_child(child);
    end_part(number, value_of(child));
    release_part(number);
}

static void ensure_taken(void)
{
    lock_embedder();
    if (!is_taken) {
        take();
    }
    unlock_embedder();
}

static void threw(void *children, void *child, void *error)
{
    (void)children;
    int number = number_of_child(child);
    if (error != context_of(number)) {
        explorer_fail("child %d threw another's error", number);
    }
    ensure_taken();
    end_part(number, 0);
    release_part(number);
}

static void refused(void *children, void *child)
{
    (void)children;
    int number = number_of_child(child);
    ensure_taken();
    lock_embedder();
    left -= parts[number] == POSTED;
    parts[number] = GIVEN_UP;
    for (int other = 0; other < registered; other++) { // nothing of it is running any more
        left -= parts[other] == WAITS;
        parts[other] = parts[other] == WAITS ? GIVEN_UP : parts[other];
    }
    is_given_up = true;
    bool frees = complete();
    unlock_embedder();
    if (frees) {
        free_memory();
    }
}

static bool finished(void *children)
{
    (void)children;
    lock_embedder();
    bool taken = is_taken;
    if (!taken && is_over) {
        explorer_fail("the children finished twice (S3)");
    }
    if (!taken) {
        is_over = true;
        for (int number = 0; number < registered; number++) { // P52
            explorer_plain_read(csched_site("begins"), &has_begun[number]);
            if (!has_begun[number]) {
                explorer_fail("the children finished before child %d began (S3)", number);
            }
        }
    }
    bool frees = complete();
    unlock_embedder();
    if (frees) {
        free_memory();
    }
    return taken;
}

static void let_go(void *children)
{
    (void)children;
    lock_embedder();
    if (!is_held) {
        explorer_fail("memory was let go that nobody held (R1)");
    }
    is_held = false;
    bool frees = is_complete;
    unlock_embedder();
    if (frees) {
        free_memory();
    }
}

static const csched_children_face face = {.call = call,
                                          .release = release,
                                          .finished = finished,
                                          .turn = turn,
                                          .returned = returned,
                                          .threw = threw,
                                          .refused = refused,
                                          .let_go = let_go};

// MARK: The registering thread

static void begin_embedder(bool cascade)
{
    embedder_lock = 0;
    memset(parts, 0, sizeof parts);
    memset(values, 0, sizeof values);
    memset(has_begun, 0, sizeof has_begun);
    memset(was_released, 0, sizeof was_released);
    memset(throws, 0, sizeof throws);
    has_contexts = true;
    is_range = false;
    registered = left = objects = 0;
    is_cascade = cascade;
    is_closed = is_taken = is_over = is_complete = is_given_up = is_held = false;
    while_running = NULL;
    while_released = NULL;
    csched_init(&done.open, 0);
    of = csched_allocate(sizeof *of, CSCHED_LINE);
    csched_children_init(&of->children, &face, &parts, scheduler, cascade, of->nodes, FIRST);
}

static void open_world(bool cascade, uint32_t workers)
{
    world_open_workers(workers);
    begin_embedder(cascade);
}

// Registers a child that is not plain.
static void register_part(int number)
{
    lock_embedder();
    registered++;
    parts[number] = is_given_up ? GIVEN_UP : is_cascade ? WAITS : POSTED;
    left += !is_given_up;
    unlock_embedder();
    if (!is_cascade) {
        send_part(number);
    }
}

static void fill(csched_child *child, int number)
{
    child->context = has_contexts ? context_of(number) : NULL;
    child->input = (uint64_t)number;
}

static void append(int number)
{
    csched_child *child = csched_children_append(&of->children, csched_thread_mark(), 0);
    if (child != NULL) {
        fill(child, number);
        registered++;
        if (csched_children_send(&of->children, child)) {
            return;
        }
        registered--;
    }
    register_part(number);
}

static void append_range(int count)
{
    is_range = true;
    of_range = count;
    csched_child *first = csched_children_append_range(&of->children, csched_thread_mark(), 0, (size_t)count);
    if (first != NULL) {
        for (int number = 0; number < count; number++) {
            fill(&first[number], number);
            first[number].flags = CSCHED_CHILD_SHARES | (number == 0 ? CSCHED_CHILD_OWNS : 0);
        }
        registered += count;
        if (csched_children_send_range(&of->children, first, (size_t)count)) {
            return;
        }
        registered -= count;
    }
    is_range = false; // each has its own block
    for (int number = 0; number < count; number++) {
        register_part(number);
    }
}

// The registering thread must not be the last to use what it has used so far.
static void close_embedder(void)
{
    lock_embedder();
    csched_children *children = &of->children;
    is_closed = true;
    bool begins_steps = false;
    int next = -1;
    if (is_taken) {
        next = next_part();
    } else if (csched_children_close(children)) {
        is_over = true;
    } else {
        begins_steps = is_cascade;
    }
    bool frees = complete();
    unlock_embedder();
    if (frees) {
        free_memory();
    }
    if (begins_steps) {
        csched_children_begin(children);
    }
    send_part(next);
}

static void register_all(int count)
{
    for (int number = 0; number < count; number++) {
        append(number);
    }
    close_embedder();
}

static void expect_values(int count)
{
    gate_pass(&done);
    for (int number = 0; is_range && of_range > number; number++) { // the first child owns what they share
        if (was_released[number] != (number == 0)) {
            explorer_fail("what a range shares is %s (R1)",
                          number == 0 ? "never given up" : "given up again");
        }
    }
    for (int number = 0; number < count; number++) {
        explorer_plain_read(csched_site("begins"), &has_begun[number]);
        if (!has_begun[number]) {
            explorer_fail("child %d did not run (S1)", number);
        }
        if (parts[number] == ENDED && !throws[number] && values[number] != 100 + (uint64_t)number) {
            explorer_fail("child %d has the value %d", number, (int)values[number]);
        }
    }
}

// MARK: Those who take

// The children are taken over by the embedder, and continue.
static void looks(void)
{
    lock_embedder();
    if (!is_taken && !is_complete) {
        take(); // and completes nothing: a check changes nothing
    }
    unlock_embedder();
}

// Abandons all: children that have not begun never begin.
static void gives_up(void)
{
    lock_embedder();
    if (is_complete) {
        unlock_embedder();
        return;
    }
    if (!is_taken) {
        take();
    }
    is_given_up = true;
    for (int number = 0; number < registered; number++) {
        if (parts[number] == WAITS || parts[number] == POSTED) {
            parts[number] = GIVEN_UP;
            left--;
        }
    }
    bool frees = complete();
    unlock_embedder();
    if (frees) {
        free_memory();
    }
}

static void expect_given_up(int count)
{
    gate_pass(&done);
    for (int number = 0; number < count; number++) {
        explorer_plain_read(csched_site("begins"), &has_begun[number]);
        if (parts[number] == GIVEN_UP && has_begun[number]) {
            explorer_fail("child %d began, which was given up before (S13)", number);
        }
        if (parts[number] != GIVEN_UP && !has_begun[number]) {
            explorer_fail("child %d did not run (S1)", number);
        }
    }
}

// MARK: Scenarios

static void run_to_the_end(bool cascade, uint32_t workers, int count)
{
    open_world(cascade, workers);
    world_explore_without_time();
    register_all(count);
    expect_values(count);
    world_close();
}

static void group_main(void) { run_to_the_end(false, 2, 3); }
MAIN(group)

static void cascade_main(void) { run_to_the_end(true, 2, 3); }
MAIN(cascade)

static void regions_main(void) { run_to_the_end(false, 1, 5); }
MAIN(regions)

static void steps_main(void) { run_to_the_end(true, 1, 5); }
MAIN(steps)

static void none_main(void) { run_to_the_end(true, 1, 0); }
MAIN(none)

static void range_main(void)
{
    open_world(false, 2);
    world_explore_without_time();
    append_range(3);
    close_embedder();
    expect_values(3);
    world_close();
}
MAIN(range)

static void waits_for_the_look(int number)
{
    if (number == 3) {
        gate_pass(&gates[1]);
    }
}

// A range does not fit into the rest of the first region, and the child that follows it does.
static void range_after_main(void)
{
    open_world(false, 1);
    world_explore_without_time();
    append(4);
    parts[4] = PLAIN;
    append_range(3);
    append(3);
    close_embedder();
    expect_values(5);
    world_close();
}
MAIN(range_after)

// The same, and the taker steps over the rest of the first region.
static void range_after_look_main(void)
{
    open_world(false, 1);
    while_running = waits_for_the_look;
    world_explore_without_time();
    append(4);
    append_range(3);
    append(3);
    close_embedder();
    looks();
    gate_open(&gates[1]);
    expect_values(5);
    world_close();
}
MAIN(range_after_look)

static void beside(bool cascade, uint32_t workers, int count, void (*other)(void), void (*expect)(int))
{
    open_world(cascade, workers);
    int thread = thread_start("taker", other);
    world_explore_without_time();
    register_all(count);
    thread_join(thread);
    expect(count);
    world_close();
}

static void group_look_main(void) { beside(false, 1, 3, looks, expect_values); }
MAIN(group_look)
static void group_give_up_main(void) { beside(false, 1, 3, gives_up, expect_given_up); }
MAIN(group_give_up)
static void cascade_look_main(void) { beside(true, 1, 3, looks, expect_values); }
MAIN(cascade_look)
static void cascade_give_up_main(void) { beside(true, 1, 3, gives_up, expect_given_up); }
MAIN(cascade_give_up)
// The only child finishes, and with it all children.
static void last_look_main(void) { beside(false, 1, 1, looks, expect_values); }
MAIN(last_look)
static void last_give_up_main(void) { beside(false, 1, 1, gives_up, expect_given_up); }
MAIN(last_give_up)
static void last_step_look_main(void) { beside(true, 1, 1, looks, expect_values); }
MAIN(last_step_look)
static void last_step_give_up_main(void) { beside(true, 1, 1, gives_up, expect_given_up); }
MAIN(last_step_give_up)

// Two workers leave while they are taken.
static void leave_look_main(void) { beside(false, 2, 2, looks, expect_values); }
MAIN(leave_look)

static void range_beside(void (*other)(void), void (*expect)(int))
{
    open_world(false, 1);
    int thread = thread_start("taker", other);
    world_explore_without_time();
    append_range(2);
    close_embedder();
    thread_join(thread);
    expect(2);
    world_close();
}

static void range_look_main(void) { range_beside(looks, expect_values); }
MAIN(range_look)
static void range_give_up_main(void) { range_beside(gives_up, expect_given_up); }
MAIN(range_give_up)

static void throwing(bool cascade)
{
    open_world(cascade, 1);
    throws[1] = true;
    world_explore_without_time();
    register_all(3);
    expect_values(3);
    world_close();
}

static void group_throw_main(void) { throwing(false); }
MAIN(group_throw)
static void cascade_throw_main(void) { throwing(true); }
MAIN(cascade_throw)

// The release of a block waits until the next step, which its worker has in hand, has begun.
static void waits_for_the_next(int number)
{
    if (number == 0) {
        csched_block_begin();
        gate_pass(&gates[0]);
        csched_block_end();
    }
}

static void opens_for_the_last(int number)
{
    if (number == 1) {
        gate_open(&gates[0]);
    }
}

static void in_hand_main(void)
{
    open_world(true, 2);
    while_running = opens_for_the_last;
    while_released = waits_for_the_next;
    world_explore_without_time();
    register_all(3);
    expect_values(3);
    world_close();
}
MAIN(in_hand)

// The same, while the children are taken: the step in hand has begun.
static void in_hand_look_main(void)
{
    open_world(true, 2);
    while_running = opens_for_the_last;
    while_released = waits_for_the_next;
    int thread = thread_start("taker", looks);
    world_explore_without_time();
    register_all(3);
    thread_join(thread);
    expect_values(3);
    world_close();
}
MAIN(in_hand_look)

// Blocks without announcing it: the sentry takes the step, or the spare worker that the watch calls in does.
static void waits_untold(int number)
{
    if (number == 0) {
        gate_pass(&gates[0]);
    }
}

static void in_hand_untold(uint32_t workers, uint32_t spares)
{
    world_open_with_spares(workers, spares);
    begin_embedder(true);
    while_running = opens_for_the_last;
    while_released = waits_untold;
    world_explore();
    register_all(3);
    expect_values(3);
    world_close();
}

static void in_hand_sentry_main(void) { in_hand_untold(2, 0); }
MAIN(in_hand_sentry)
static void in_hand_watch_main(void) { in_hand_untold(1, 1); }
MAIN(in_hand_watch)

// MARK: What follows a child of a range is in hand while it runs

static void register_range(int count)
{
    append_range(count);
    close_embedder();
}

// The first child waits for the second one.
static void first_waits(int number)
{
    waits_for_the_next(number);
    opens_for_the_last(number);
}

static void first_waits_untold(int number)
{
    waits_untold(number);
    opens_for_the_last(number);
}

static void range_in_hand_main(void)
{
    open_world(false, 2);
    while_running = first_waits;
    world_explore_without_time();
    register_range(3);
    expect_values(3);
    world_close();
}
MAIN(range_in_hand)

// The same, while the children are taken: the next child is in hand, and its turn has not come.
static void range_in_hand_look_main(void)
{
    open_world(false, 2);
    while_running = first_waits;
    int thread = thread_start("taker", looks);
    world_explore_without_time();
    register_range(3);
    thread_join(thread);
    expect_values(3);
    world_close();
}
MAIN(range_in_hand_look)

static void range_in_hand_untold(uint32_t workers, uint32_t spares)
{
    world_open_with_spares(workers, spares);
    begin_embedder(false);
    while_running = first_waits_untold;
    world_explore();
    register_range(3);
    expect_values(3);
    world_close();
}

static void range_in_hand_sentry_main(void) { range_in_hand_untold(2, 0); }
MAIN(range_in_hand_sentry)
static void range_in_hand_watch_main(void) { range_in_hand_untold(1, 1); }
MAIN(range_in_hand_watch)

// Queries by a handle, under no lock, and reads the value (P51).
static void asks_for_the_first(void)
{
    gate_pass(&gates[3]);
    while (csched_child_state_of(asked) != CSCHED_CHILD_FINISHED) {
        csched_yield();
    }
    explorer_plain_read(csched_site("value"), &asked->value[0]);
    if (asked->value[0] != 100) {
        explorer_fail("a child that has finished has the value %d", (int)asked->value[0]);
    }
    gate_open(&gates[2]);
}

// The last child waits until that is done, so there is still a child to query.
static void waits_for_the_handle(int number)
{
    if (number == 1) {
        gate_pass(&gates[2]);
    }
}

static void with_a_handle(bool cascade)
{
    open_world(cascade, 1);
    while_running = waits_for_the_handle;
    asked = &of->nodes[0];
    int thread = thread_start("handle", asks_for_the_first);
    world_explore_without_time();
    append(0);
    gate_open(&gates[3]);
    append(1);
    close_embedder();
    thread_join(thread);
    expect_values(2);
    world_close();
}

static void group_handle_main(void) { with_a_handle(false); }
MAIN(group_handle)
static void cascade_handle_main(void) { with_a_handle(true); }
MAIN(cascade_handle)

// Steps that the release of a block abandons do not begin.
static void gives_the_next_up(int number)
{
    if (number == 0) {
        gives_up();
    }
}

static void release_gives_up_main(void)
{
    open_world(true, 1);
    while_released = gives_the_next_up;
    world_explore_without_time();
    register_all(3);
    expect_given_up(3);
    if (has_begun[1]) {
        explorer_fail("a step began after all were given up (S13)");
    }
    world_close();
}
MAIN(release_gives_up)

// Steps without a block to release: one ends and the next begins at once.
static void bare_steps(void (*other)(void), void (*expect)(int))
{
    open_world(true, 1);
    has_contexts = false;
    int thread = thread_start("taker", other);
    world_explore_without_time();
    register_all(3);
    thread_join(thread);
    expect(3);
    world_close();
}

static void bare_steps_look_main(void) { bare_steps(looks, expect_values); }
MAIN(bare_steps_look)
static void bare_steps_give_up_main(void) { bare_steps(gives_up, expect_given_up); }
MAIN(bare_steps_give_up)

// A body on the only worker waits for all of them: they run on its stack.
static bool no_operation(const void *wanted_by, void *context, void *extra)
{
    (void)wanted_by, (void)context, (void)extra;
    return false;
}

static bool are_those(const void *wanted_by, void *children, void *child)
{
    (void)child;
    return wanted_by == children;
}

static csched_completion *inner;
static bool waits_for_a_range;

static void leaves_inner(int number)
{
    if (number == 2) {
        (void)csched_completion_leave(inner, 1);
    }
}

static void waits_for_children(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    const void *children = &of->children;
    if (waits_for_a_range) {
        append_range(3);
        close_embedder();
    } else {
        register_all(3);
    }
    csched_check(csched_completion_wait_running(inner, waits_for_children, no_operation, are_those,
                                                children) == CSCHED_WAIT_COMPLETED,
                 "wait");
    ran(number_of(context), disposition);
}

static void run_nested(bool cascade)
{
    open_world(cascade, 1);
    while_running = leaves_inner;
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    world_explore_without_time();
    submit(operation_with(0, waits_for_children));
    expect_values(3);
    wait_for_all();
    expect_ran(1);
    csched_completion_release(inner);
    world_close();
}

static void group_nested_main(void)
{
    waits_for_a_range = false;
    run_nested(false);
}
MAIN(group_nested)
static void cascade_nested_main(void)
{
    waits_for_a_range = false;
    run_nested(true);
}
MAIN(cascade_nested)
static void range_nested_main(void)
{
    waits_for_a_range = true;
    run_nested(false);
}
MAIN(range_nested)

// A wait that wants none of the children: their turns come after it.
static bool waits; // plain: of the one worker

static void runs_after_the_wait(int number)
{
    if (waits) {
        explorer_fail("child %d ran below a wait that did not want it (X7)", number);
    }
}

static void waits_for_none(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    register_all(3);
    waits = true;
    csched_check(csched_completion_wait_running(inner, waits_for_none, no_operation, are_those, NULL) ==
                     CSCHED_WAIT_COMPLETED,
                 "wait");
    waits = false;
    ran(number_of(context), disposition);
}

static void group_unwanted_main(void)
{
    waits = false;
    open_world(false, 1);
    while_running = runs_after_the_wait;
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    world_explore_without_time();
    submit(operation_with(0, waits_for_none));
    explorer_settle(csched_site("settle"));
    (void)csched_completion_leave(inner, 1);
    expect_values(3);
    wait_for_all();
    expect_ran(1);
    csched_completion_release(inner);
    world_close();
}
MAIN(group_unwanted)

// A wait for only the first step: the next step does not follow it on the stack of the wait.
static int waiting; // plain: 1 + the thread on whose stack a body waits, or 0

static void leaves_inner_first(int number)
{
    if (number == 0) {
        (void)csched_completion_leave(inner, 1);
    } else if (waiting == 1 + explorer_self()) {
        explorer_fail("a step ran below a wait that did not want it (X7)");
    }
}

static bool is_first_step(const void *wanted_by, void *children, void *child)
{
    return wanted_by == children && number_of_child(child) == 0;
}

static void waits_for_first_step(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    const void *children = &of->children;
    register_all(2);
    waiting = 1 + explorer_self();
    csched_check(csched_completion_wait_running(inner, waits_for_first_step, no_operation, is_first_step,
                                                children) == CSCHED_WAIT_COMPLETED,
                 "wait");
    waiting = 0;
    ran(number_of(context), disposition);
}

static void first_step_nested_main(void)
{
    waiting = 0;
    open_world(true, 1);
    while_running = leaves_inner_first;
    inner = csched_completion_create();
    csched_completion_enter(inner, 1);
    world_explore_without_time();
    submit(operation_with(0, waits_for_first_step));
    expect_values(2);
    wait_for_all();
    expect_ran(1);
    csched_completion_release(inner);
    world_close();
}
MAIN(first_step_nested)

// A cascade must not delay other operations: with a worker for both, the others get their turns.
static bool other_has_run; // plain

static void other_runs(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    other_has_run = true;
    ran(number_of(context), disposition);
}

static void notes_whether_the_other_has_run(int number)
{
    if (number == 4 && !other_has_run) {
        explorer_fail("five steps went before an older operation (S11)");
    }
}

static void fair_main(void)
{
    open_world(true, 1);
    other_has_run = false;
    while_running = notes_whether_the_other_has_run;
    csched_scheduler_suspend(scheduler);
    submit(operation_with(0, other_runs));
    register_all(5);
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    wait_for_all();
    expect_values(5);
    world_close();
}

MAIN(fair)

// The other operation arrives while the first step runs: four more steps before it are too many.
static void lets_the_other_come(int number)
{
    if (number == 0) {
        gate_open(&gates[0]);
        gate_pass(&gates[1]);
    }
    notes_whether_the_other_has_run(number);
}

static void beside_a_younger_one(bool cascade, void (*registers)(int))
{
    open_world(cascade, 1);
    other_has_run = false;
    while_running = lets_the_other_come;
    world_explore_without_time();
    registers(5);
    gate_pass(&gates[0]);
    submit(operation_with(0, other_runs));
    gate_open(&gates[1]);
    wait_for_all();
    expect_values(5);
    world_close();
}

static void fair_inside_main(void) { beside_a_younger_one(true, register_all); }
MAIN(fair_inside)
static void range_fair_main(void) { beside_a_younger_one(false, register_range); }
MAIN(range_fair)

// A step suspends the scheduler: the next one does not begin.
static void suspends_between(int number)
{
    if (number == 0) {
        csched_scheduler_suspend(scheduler);
        gate_open(&gates[0]);
    }
}

static void suspended_main(void)
{
    open_world(true, 1);
    while_running = suspends_between;
    register_all(2);
    gate_pass(&gates[0]);
    explorer_settle(csched_site("settle"));
    if (has_begun[1]) {
        explorer_fail("a step began under a suspension (X3)");
    }
    while_running = NULL;
    world_explore_without_time();
    csched_scheduler_resume(scheduler);
    expect_values(2);
    world_close();
}
MAIN(suspended)

// The shutdown comes first: nothing is lost.
static void shut_down_with(bool cascade, void (*registers)(int))
{
    open_world(cascade, 1);
    csched_scheduler_suspend(scheduler);
    registers(3);
    world_explore_without_time();
    csched_check(csched_scheduler_shutdown(scheduler, 0) == CSCHED_OK, "shutdown");
    expect_given_up(3);
    world_close();
}

static void group_cancelled_main(void) { shut_down_with(false, register_all); }
MAIN(group_cancelled)
static void cascade_cancelled_main(void) { shut_down_with(true, register_all); }
MAIN(cascade_cancelled)
static void range_cancelled_main(void) { shut_down_with(false, register_range); }
MAIN(range_cancelled)

const explorer_program children_scenarios[] = {
    SCENARIO("children", group, "S1 S3", "three children on two workers"),
    SCENARIO("children", cascade, "S1 S3 S9", "three steps on two workers"),
    SCENARIO("children", regions, "S1 S3 R1", "more children than the first region has room for"),
    SCENARIO("children", steps, "S1 S3 S9 S11", "more steps than one worker runs in a row"),
    SCENARIO("children", none, "S3", "a cascade without a step"),
    SCENARIO("children", range, "S1 S3", "a range of children"),
    SCENARIO("children", range_after, "S1 S3 R1", "a range of children between others"),
    SCENARIO("children", range_after_look, "S1 S3 R1", "children of several regions are taken"),
    SCENARIO("children", group_look, "S1 S3 R1", "children are taken, and go on"),
    SCENARIO("children", group_give_up, "S1 S13 R1", "children are taken, and given up"),
    SCENARIO("children", cascade_look, "S1 S3 S9 R1", "steps are taken, and go on"),
    SCENARIO("children", cascade_give_up, "S1 S13 R1", "steps are taken, and given up"),
    SCENARIO("children", last_look, "S3 R1", "the only child finishes while it is taken"),
    SCENARIO("children", last_give_up, "S3 S13 R1", "the only child finishes while it is given up"),
    SCENARIO("children", last_step_look, "S3 R1", "the only step finishes while it is taken"),
    SCENARIO("children", last_step_give_up, "S3 S13 R1", "the only step finishes while it is given up"),
    SCENARIO("children", leave_look, "S3 R1", "two workers leave while their children are taken"),
    SCENARIO("children", range_look, "S1 S3 R1", "a range is taken, and goes on"),
    SCENARIO("children", range_give_up, "S1 S13 R1", "a range is taken, and given up"),
    SCENARIO("children", group_throw, "S1 S3 R1", "a child throws"),
    SCENARIO("children", cascade_throw, "S1 S3 S9 R1", "a step throws"),
    SCENARIO("children", in_hand, "S1 S3", "the release of a block waits for the next step"),
    SCENARIO("children", in_hand_look, "S1 S3 R1", "the same, while the steps are taken"),
    SCENARIO("children", in_hand_sentry, "S1 S12", "the same, and nobody is told that it waits"),
    SCENARIO("children", in_hand_watch, "S1 S12", "likewise, with one worker and a spare"),
    SCENARIO("children", range_in_hand, "S1 S3", "a child of a range waits for the next one"),
    SCENARIO("children", range_in_hand_look, "S1 S3 R1", "the same, while the children are taken"),
    SCENARIO("children", range_in_hand_sentry, "S1 S12", "the same, and nobody is told that it waits"),
    SCENARIO("children", range_in_hand_watch, "S1 S12", "likewise, with one worker and a spare"),
    SCENARIO("children", group_handle, "S1", "a handle of a child, and its value"),
    SCENARIO("children", cascade_handle, "S1", "a handle of a step, and its value"),
    SCENARIO("children", release_gives_up, "S13 R1", "the release of a block gives up the steps after it"),
    SCENARIO("children", bare_steps_look, "S1 S3 S9 R1", "steps without blocks to release are taken"),
    SCENARIO("children", bare_steps_give_up, "S1 S13 R1", "steps without blocks to release are given up"),
    SCENARIO("children", group_nested, "S1 S3", "the only worker waits for children"),
    SCENARIO("children", cascade_nested, "S1 S3", "the only worker waits for steps"),
    SCENARIO("children", range_nested, "S1 S3", "the only worker waits for a range"),
    SCENARIO("children", group_unwanted, "S1 S3", "a wait that wants none of the children"),
    SCENARIO("children", first_step_nested, "S16", "the only worker waits for the first of two steps"),
    SCENARIO("children", fair, "S11", "an older operation, and steps"),
    SCENARIO("children", fair_inside, "S11", "an operation that comes while steps run"),
    SCENARIO("children", range_fair, "S11", "an operation that comes while a range runs"),
    SCENARIO("children", suspended, "S5", "the scheduler is suspended between two steps"),
    SCENARIO("children", group_cancelled, "S13 R1", "a shutdown cancels children"),
    SCENARIO("children", cascade_cancelled, "S13 R1", "a shutdown cancels steps"),
    SCENARIO("children", range_cancelled, "S13 R1", "a shutdown cancels a range"),
};
const size_t children_scenario_count = sizeof children_scenarios / sizeof children_scenarios[0];
