// children.c - children of a composite that have no objects: appended, run, finished, taken.
//
//   Y1  A child is a node. Its block is called by the worker that moves its state from QUEUED to RUNNING; in
//       a cascade, by the worker that holds the cascade's word: one at a time, with BUSY set.
//   Y2  `word`: the index of the current step, and flags. BUSY: a worker is inside the cascade, or the
//       cascade's turn is in a queue. RUNS: the current step has begun. TAKEN: the children belong to the
//       embedder, and nothing done here affects them any more. One exchange ends a step; another, after the
//       block's context was released, begins the next step. Both fail once TAKEN is set. User code that runs
//       in between sees a step that has not begun. When there is nothing to release, one exchange does both.
//   Y3  `pending`, of a group: OPEN during the registration, less one for each child that has left; the close
//       turns it into the number of children that have not left. The thread that makes it 0 finishes the
//       group. A taking makes it LEAVING plus the number of children that have not left. The thread that
//       makes it LEAVING is the last one inside. It calls `finished`, too, as the embedder may have taken the
//       children when all had finished, and lets the memory go.
//   Y4  Children are taken once, under the embedder's lock. After the exchange that sets TAKEN, the
//       registering thread appends no more. A child that it publishes at that moment is either taken, or
//       withdrawn by its sender's exchange: the state decides which (P50). For a child that was taken before
//       its turn, the queued turn calls `turn`; for one that was taken while it ran, `returned` is called. So
//       each child leaves exactly once.
//   Y5  The thread that finishes the group or the cascade is inside until `finished` has returned; the
//       embedder decides under its lock. If it reports that the children were taken, the embedder has kept
//       the memory until this thread lets it go.
//   Y6  The context of a block is released under no lock, after its child has finished and left. Only a
//       cascade that continues has its next step in hand meanwhile; if the release blocks, another worker
//       takes that step (X8).
//   Y7  One worker runs a part of a range, child after child. The children after the current one are in hand
//       (X8) as a separate part, described in the otherwise unused value of its first node. While a worker is
//       idle, upper halves are pushed first, as in range.c, F2: other workers find them at once.
//
// Orderings:
//   P50  send: count, a fence, then word <-> take: word, then count, both seq_cst. So either the taker sees
//        the child, or its sender sees TAKEN.
//   P51  finished (release) -> taken (acquire): the value of a child that has finished.
//   P52  leave (release) -> the last leave (acquire): all children's writes are visible to the thread that
//        continues. In a cascade: the exchange of each step.
//   P53  in_hand (release) -> its taker (acquire): the cursor, and the writes of the previous step; for a
//        range, the words that describe the rest.

#include "children.h"

#include "port.h"
#include "scheduler_internal.h"
#include "tuning.h"
#include "worker.h"

#define TAKEN (UINT64_C(1) << 32)
#define BUSY (UINT64_C(1) << 33)
#define RUNS (UINT64_C(1) << 34)
#define OPEN (INT64_C(1) << 40)
#define LEAVING (INT64_C(1) << 50)
// Y7. Set: a worker has in hand the rest of a range, given by its first node. Clear: a cascade.
#define IS_RANGE ((uintptr_t)1)

// Swift imports the header, too, and does not support atomic fields.
#define WORD(children) ((csched_atomic(uint64_t) *)&(children)->word)
#define PENDING(children) ((csched_atomic(int64_t) *)&(children)->pending)
#define COUNT(children) ((csched_atomic(uint64_t) *)&(children)->count)
// A taker may read the capacity while the registering thread cuts off the unused room.
#define CAPACITY(region) ((csched_atomic(size_t) *)&(region)->capacity)
#define STATE(child) ((csched_atomic(uint32_t) *)&(child)->state)

static uint64_t index_of(uint64_t word) { return word & UINT32_MAX; }

csched_thread_local char thread_mark;

uintptr_t csched_thread_mark(void) { return (uintptr_t)&thread_mark; }

static void release_block(const csched_children_face *face, void *block)
{
    if (block != NULL) {
        face->release(block);
    }
}

void csched_children_init(csched_children *children, const csched_children_face *face, void *owner,
                          csched_scheduler *scheduler, bool is_cascade, csched_child *nodes, size_t capacity)
{
    children->face = face;
    children->owner = owner;
    children->composite = NULL;
    children->scheduler = scheduler;
    csched_init(WORD(children), 0);
    csched_init(PENDING(children), OPEN);
    csched_init(COUNT(children), 0);
    children->number = 0;
    children->first = (csched_region){.next = NULL, .nodes = nodes, .capacity = capacity};
    children->last = &children->first;
    children->next = nodes;
    children->limit = nodes + capacity;
    children->cursor = NULL;
    children->cursor_region = NULL;
    children->is_cascade = is_cascade;
    children->is_closed = false;
    children->is_over = false;
    children->epoch = 0;
    children->has_objects = false;
    children->is_in_use = false;
    children->was_taken = false;
    children->taken = 0;
    children->owns_blocks = false;
}

// The next node. At least one must be left.
static csched_child *step_on(csched_taking *walk)
{
    if (walk->index == csched_load(CAPACITY(walk->region), relaxed)) { // only the first may be empty
        walk->region = walk->region->next;
        walk->index = 0;
    }
    walk->left--;
    return &walk->region->nodes[walk->index++];
}

csched_taking csched_children_walk(csched_children *children)
{
    // The registering thread may still be publishing a child that was not taken.
    return (csched_taking){.region = &children->first,
                           .left = children->was_taken ? children->taken : children->number};
}

csched_child *csched_children_walk_next(csched_taking *walk)
{
    return walk->left == 0 ? NULL : step_on(walk);
}

void csched_children_give_up(csched_children *children)
{
    if (!children->owns_blocks) {
        return;
    }
    children->owns_blocks = false;
    csched_taking walk = csched_children_walk(children);
    csched_child *child;
    while ((child = csched_children_walk_next(&walk)) != NULL) {
        if ((child->flags & CSCHED_CHILD_OWNS) != 0) {
            child->flags &= ~CSCHED_CHILD_OWNS;
            release_block(children->face, child->context);
        }
    }
}

void csched_children_destroy(csched_children *children)
{
    csched_children_give_up(children);
    if (children->has_objects) {
        csched_taking walk = csched_children_walk(children);
        csched_child *child;
        while ((child = csched_children_walk_next(&walk)) != NULL) {
            if (child->object != NULL) {
                children->face->release(child->object);
            }
        }
    }
    csched_region *next;
    for (csched_region *region = children->first.next; region != NULL; region = next) {
        next = region->next;
        csched_free(region);
    }
}

// MARK: Registration

static bool grow(csched_children *children, size_t capacity)
{
    csched_region *region = csched_allocate(sizeof *region + capacity * sizeof(csched_child), 0);
    if (region == NULL) {
        return false;
    }
    *region = (csched_region){.next = NULL, .nodes = (csched_child *)(region + 1), .capacity = capacity};
    if (children->next != children->limit) { // what is left of the last region stays empty
        csched_store(CAPACITY(children->last), (size_t)(children->next - children->last->nodes), relaxed);
    }
    children->last->next = region;
    children->last = region;
    children->next = region->nodes;
    children->limit = region->nodes + capacity;
    return true;
}

static bool were_taken(csched_children *children)
{
    return (csched_load(WORD(children), relaxed) & TAKEN) != 0;
}

// Whether children of this registration may be appended on this thread.
static bool accepts(csched_children *children, uintptr_t thread, int32_t epoch)
{
    return csched_likely(thread == (uintptr_t)&thread_mark) && csched_likely(epoch == children->epoch) &&
           csched_likely(!were_taken(children));
}

csched_child *csched_children_append(csched_children *children, uintptr_t thread, int32_t epoch)
{
    if (!accepts(children, thread, epoch) ||
        (csched_unlikely(children->next == children->limit) && !grow(children, CSCHED_CHILDREN_MORE))) {
        return NULL;
    }
    csched_child *child = children->next;
    csched_init(STATE(child), CSCHED_CHILD_QUEUED);
    child->flags = 0;
    child->object = NULL;
    return child;
}

csched_child *csched_children_append_range(csched_children *children, uintptr_t thread, int32_t epoch,
                                           size_t count)
{
    if (!accepts(children, thread, epoch) || count >= UINT32_MAX ||
        ((size_t)(children->limit - children->next) < count && !grow(children, count))) {
        return NULL;
    }
    for (size_t index = 0; index < count; index++) {
        csched_init(STATE(&children->next[index]), CSCHED_CHILD_QUEUED);
        children->next[index].object = NULL;
    }
    return children->next;
}

// P50. True: a taker sees these children.
static bool publish(csched_children *children, csched_child *first, size_t count)
{
    children->next = first + count;
    children->number += count;
    csched_store(COUNT(children), children->number, release);
    csched_fence(seq_cst);
    return csched_likely(!were_taken(children));
}

// Y4. False: the taker has it.
static bool withdraw(csched_child *child)
{
    uint32_t queued = CSCHED_CHILD_QUEUED;
    return csched_cas(STATE(child), &queued, CSCHED_CHILD_WITHDRAWN, relaxed, relaxed);
}

static void run_child(void *context, void *extra, csched_disposition disposition);
static void run_cascade(void *context, void *extra, csched_disposition disposition);
static void leave(csched_children *children);

static csched_status submit(csched_children *children, csched_function run, csched_child *child)
{
    csched_operation turn = {.run = run, .context = children, .extra = child};
    return csched_submit_exempt_at(children->scheduler, &turn, CSCHED_PRIORITY_DEFAULT);
}

static void send_turn(csched_children *children, csched_child *child)
{
    if (csched_unlikely(submit(children, run_child, child) != CSCHED_OK)) {
        children->face->refused(children, child);
        leave(children);
    }
}

bool csched_children_send(csched_children *children, csched_child *child)
{
    if (!publish(children, child, 1) && withdraw(child)) {
        return false;
    }
    if (!children->is_cascade) {
        send_turn(children, child);
    }
    return true;
}

// The part of a range that a turn covers: nodes [low, high).
typedef struct {
    uint32_t low, high;
} part;

_Static_assert(sizeof(part) <= sizeof(void *), "a part fits into a word");

static void *pack(part here) { return (void *)(uintptr_t)((uint64_t)here.high << 32 | here.low); }

static part unpack(void *word)
{
    return (part){.low = (uint32_t)(uintptr_t)word, .high = (uint32_t)((uint64_t)(uintptr_t)word >> 32)};
}

// The children that a part of a range belongs to, kept in the unused value of its first node (Y7).
static csched_children *children_of(const csched_child *first)
{
    return (csched_children *)(uintptr_t)first->value[0];
}

static void run_range(void *context, void *extra, csched_disposition disposition);

static csched_status submit_range(csched_child *first, part here)
{
    csched_operation turn = {.run = run_range, .context = first, .extra = pack(here)};
    return csched_submit_exempt_at(children_of(first)->scheduler, &turn, CSCHED_PRIORITY_DEFAULT);
}

// Y7. Pushes upper halves of a part while a worker is idle. Returns what is left of the part.
static part share(csched_worker *worker, csched_child *first, part here)
{
    while (here.high - here.low > 1 && csched_worker_is_wanted(worker)) {
        uint32_t middle = here.low + (here.high - here.low) / 2;
        if (submit_range(first, (part){middle, here.high}) != CSCHED_OK) {
            break; // out of memory: run the whole part here
        }
        here.high = middle;
    }
    return here;
}

// Y7. Holds in hand the children after the one that begins, as a separate part.
static void hold_rest(csched_worker *worker, csched_children *children, csched_child *rest, uint32_t count)
{
    rest->value[0] = (uint64_t)(uintptr_t)children;
    rest->value[1] = count;
    csched_worker_hold(worker, (uintptr_t)rest | IS_RANGE);
}

static void run_range(void *context, void *extra, csched_disposition disposition)
{
    csched_child *first = context;
    csched_children *children = children_of(first);
    part here = unpack(extra);
    if (csched_unlikely(disposition != CSCHED_RUN)) {
        for (uint32_t index = here.low; index < here.high; index++) {
            run_child(children, &first[index], disposition); // `children` may be gone after the last
        }
        return;
    }
    csched_worker *worker = csched_worker_self();
    for (;;) {
        here = share(worker, first, here);
        csched_child *child = &first[here.low++];
        if (here.low == here.high) {
            run_child(children, child, disposition);
            return;
        }
        bool goes_on = csched_worker_goes_on(worker);
        if (!goes_on && submit_range(first, here) == CSCHED_OK) { // others have their turn
            run_child(children, child, disposition);
            return;
        }
        hold_rest(worker, children, &first[here.low], here.high - here.low);
        run_child(children, child, disposition);
        if (csched_unlikely(csched_worker_take_in_hand(worker) == 0)) {
            return;
        }
    }
}

bool csched_children_send_range(csched_children *children, csched_child *first, size_t count)
{
    first->value[0] = (uint64_t)(uintptr_t)children;
    // The first child decides for all: a taker reads the count once, so it gets all of them or none.
    if (!publish(children, first, count) && withdraw(first)) {
        return false;
    }
    // The context is not released before these have left (P52).
    children->owns_blocks |= (first->flags & CSCHED_CHILD_OWNS) != 0;
    part all = {0, (uint32_t)count};
    if (submit_range(first, all) != CSCHED_OK) {
        run_range(first, pack(all), CSCHED_CANCEL);
    }
    return true;
}

bool csched_children_close(csched_children *children)
{
    children->is_closed = true;
    if (!children->is_cascade) {
        int64_t change = (int64_t)children->number - OPEN;
        return csched_fetch_add(PENDING(children), change, acq_rel) + change == 0; // P52
    }
    if (children->number == 0) {
        return true;
    }
    children->cursor = children->first.nodes;
    children->cursor_region = &children->first;
    csched_store(WORD(children), BUSY, relaxed); // its turn is still to be submitted
    return false;
}

void csched_children_begin(csched_children *children)
{
    if (csched_unlikely(submit(children, run_cascade, NULL) != CSCHED_OK)) {
        children->face->refused(children, children->cursor);
        children->face->let_go(children);
    }
}

// MARK: Groups

// Y3, Y5. A child's turn does not use `children` after this.
static void leave(csched_children *children)
{
    const csched_children_face *face = children->face;
    int64_t left = csched_fetch_sub(PENDING(children), 1, acq_rel) - 1; // P52
    if (csched_unlikely(left == 0 || left == LEAVING) && face->finished(children)) {
        face->let_go(children);
    }
}

static void run_child(void *context, void *extra, csched_disposition disposition)
{
    csched_children *children = context;
    csched_child *child = extra;
    const csched_children_face *face = children->face;
    uint32_t state = CSCHED_CHILD_QUEUED;
    if (csched_unlikely(disposition != CSCHED_RUN)) {
        face->refused(children, child);
        leave(children);
        return;
    }
    // Y1. relaxed: a child that was taken is read under the embedder's lock.
    if (csched_unlikely(!csched_cas(STATE(child), &state, CSCHED_CHILD_RUNNING, relaxed, relaxed))) {
        face->turn(children, child);
        leave(children);
        return;
    }
    void *error = face->call(children, child);
    if (csched_unlikely(error != NULL)) {
        face->threw(children, child, error);
        leave(children);
        return;
    }
    state = CSCHED_CHILD_RUNNING;
    if (csched_unlikely(!csched_cas(STATE(child), &state, CSCHED_CHILD_FINISHED, release, relaxed))) { // P51
        face->returned(children, child);
        leave(children);
        return;
    }
    void *block = (child->flags & CSCHED_CHILD_SHARES) != 0 ? NULL : child->context;
    leave(children);
    release_block(face, block); // Y6
}

// MARK: Cascades

static csched_child *following(csched_children *children, const csched_child *child)
{
    csched_region *region = children->cursor_region;
    const csched_child *next = child + 1;
    if (next == region->nodes + region->capacity) {
        region = children->cursor_region = region->next;
        next = region->nodes;
    }
    return (csched_child *)(uintptr_t)next;
}

// Y2. Begins the current step, at the cursor. False: the embedder has taken it, and the memory was let go.
static bool begin_step(csched_children *children, uint64_t *word)
{
    csched_child *child = children->cursor;
    *word &= ~TAKEN;
    if (csched_unlikely(!csched_cas(WORD(children), word, *word | RUNS, relaxed, relaxed))) {
        children->face->turn(children, child);
        children->face->let_go(children);
        return false;
    }
    *word |= RUNS;
    return true;
}

// This worker holds the cascade's word, and the step has begun.
static void run_steps(csched_children *children, csched_child *child, uint64_t word)
{
    const csched_children_face *face = children->face;
    csched_worker *worker = csched_worker_self();
    const uint64_t count = csched_load(COUNT(children), relaxed);
    for (;;) {
        void *error = face->call(children, child);
        if (csched_unlikely(error != NULL)) {
            face->threw(children, child, error);
            face->let_go(children);
            return;
        }
        void *block = child->context;
        bool is_last = index_of(word) + 1 == count;
        bool goes_on = !is_last && csched_worker_goes_on(worker);
        bool at_once = goes_on && block == NULL; // Y2
        uint64_t next = at_once ? word + 1 : (word + 1) & ~RUNS;
        if (csched_unlikely(!csched_cas(WORD(children), &word, next, acq_rel, relaxed))) { // Y2, P52
            face->returned(children, child);
            face->let_go(children);
            return;
        }
        csched_store(STATE(child), CSCHED_CHILD_FINISHED, release); // P51, for readers without a lock
        word = next;
        if (is_last) {
            if (csched_unlikely(face->finished(children))) { // Y5
                face->let_go(children);
            }
            release_block(face, block);
            return;
        }
        child = following(children, child);
        if (at_once) {
            continue;
        }
        children->cursor = child;
        if (!goes_on) { // other operations have their turn
            csched_children_begin(children);
            release_block(face, block);
            return;
        }
        csched_worker_hold(worker, (uintptr_t)children); // Y6
        face->release(block);
        if (csched_unlikely(csched_worker_take_in_hand(worker) == 0)) {
            return;
        }
        if (!begin_step(children, &word)) {
            return;
        }
    }
}

// The turn of a cascade.
static void run_cascade(void *context, void *extra, csched_disposition disposition)
{
    (void)extra;
    csched_children *children = context;
    if (csched_unlikely(disposition != CSCHED_RUN)) {
        children->face->refused(children, children->cursor);
        children->face->let_go(children);
        return;
    }
    uint64_t word = csched_load(WORD(children), relaxed);
    if (begin_step(children, &word)) {
        run_steps(children, children->cursor, word);
    }
}

csched_operation csched_children_in_hand(uintptr_t in_hand)
{
    if ((in_hand & IS_RANGE) == 0) {
        return (csched_operation){.run = run_cascade, .context = (void *)in_hand};
    }
    csched_child *rest = (void *)(in_hand & ~IS_RANGE);
    return (csched_operation){
        .run = run_range, .context = rest, .extra = pack((part){0, (uint32_t)rest->value[1]})};
}

// MARK: Taking

csched_taking csched_children_take(csched_children *children)
{
    uint64_t word = csched_fetch_or(WORD(children), TAKEN, seq_cst); // P50
    children->has_objects = true;
    csched_taking taking = {.region = &children->first,
                            .left = csched_load(COUNT(children), seq_cst), // P50
                            .current = index_of(word),
                            .is_begun = (word & BUSY) != 0,
                            .is_running = (word & RUNS) != 0,
                            .is_in_use = (word & BUSY) != 0};
    return taking;
}

// Y4. The former state. WITHDRAWN: it is not a child.
static csched_child_state take_child(csched_child *child)
{
    uint32_t state = csched_load(STATE(child), acquire); // P51
    while (state != CSCHED_CHILD_FINISHED && state != CSCHED_CHILD_WITHDRAWN &&
           !csched_cas_weak(STATE(child), &state, CSCHED_CHILD_TAKEN, acquire, acquire)) {
    }
    return state;
}

static csched_child_state step_state(const csched_taking *taking)
{
    uint64_t index = taking->taken;
    if (index < taking->current) {
        return CSCHED_CHILD_FINISHED;
    }
    return index == taking->current && taking->is_running ? CSCHED_CHILD_RUNNING : CSCHED_CHILD_QUEUED;
}

csched_child *csched_children_take_next(csched_children *children, csched_taking *taking,
                                        csched_child_state *state)
{
    (void)children;
    csched_child *child = csched_children_walk_next(taking);
    if (child == NULL) {
        return NULL;
    }
    *state = taking->is_begun ? step_state(taking) : take_child(child);
    if (*state == CSCHED_CHILD_WITHDRAWN) {
        taking->left = 0; // nothing follows
        return NULL;
    }
    taking->taken++;
    return child;
}

bool csched_children_taken(csched_children *children, csched_taking *taking)
{
    if (children->is_cascade) {
        return taking->is_in_use;
    }
    int64_t change = LEAVING + (children->is_closed ? 0 : (int64_t)taking->taken - OPEN);
    int64_t before = csched_fetch_add(PENDING(children), change, acq_rel); // Y3
    // Y5. 0 after the close: a thread is finishing the group, or has done so.
    return children->is_closed && before == 0 ? true : before + change != LEAVING;
}

csched_child_state csched_child_state_of(const csched_child *child)
{
    return (csched_child_state)csched_load(STATE(child), acquire); // P51
}

csched_children_turn csched_children_turn_of(const csched_operation *operation)
{
    if (operation->run == run_child) {
        return (csched_children_turn){operation->context, operation->extra};
    }
    if (operation->run == run_cascade) {
        csched_children *children = operation->context;
        return (csched_children_turn){children, children->cursor};
    }
    if (operation->run == run_range) {
        csched_child *first = operation->context;
        part here = unpack(operation->extra);
        return (csched_children_turn){children_of(first),
                                      here.high - here.low == 1 ? &first[here.low] : NULL};
    }
    return (csched_children_turn){NULL, NULL};
}
