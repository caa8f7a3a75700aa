// port_relacy.cpp - what stands behind the port (Relacy's atomics, heap and threads), and the program that
// runs scenarios.
//
//   Shared words   one rl::atomic for each, found by its address. csched_init makes it, and free ends it.
//   Plain memory   core and scenarios are compiled with -fsanitize=thread, but linked with what stands below:
//                  that asks Relacy's race detection, as rl::var does, for every 4 bytes.
//   Memory         from Relacy's heap: leaks, double frees. A block that was freed may not be touched until
//                  Relacy hands the same address out again, which it soon does. To touch a shared word counts
//                  as a read of its block, and to free it as a write: so a free that is not ordered after the
//                  last use is a race.
//   Futexes        a queue of sleepers for an address. The kernel's locks are full fences, on both sides; the
//                  value is read after that, and may be as old as the memory model lets it. In half of the
//                  executions no time passes, so that no timeout makes good for a wake-up that was lost.
//   Schedules      Relacy's random scheduler draws a thread before every step. Long runs of one thread, while
//                  others stand still, hardly ever come up so: in most executions a thread goes on with 3/4,
//                  15/16 or 63/64. In half of them one thread pauses at one step until no other can go on.
//                  And a scenario may say where a thread may be stopped for ever.

#include <relacy/relacy.hpp>

// Relacy renames these for code that is written for it.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef pthread_t
#undef pthread_create
#undef pthread_join

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "scenario.h"

extern "C" char __start_relacy_locals[], __stop_relacy_locals[];

namespace
{

constexpr int threads_most = 8;
constexpr size_t table_size = 1 << 14;
constexpr size_t blocks_most = 512;
constexpr size_t locals_most = 256;
constexpr size_t plain_most = 512; // larger pieces are set once, before they are shared

struct block {
    char *begin;
    void *raw; // Relacy's
    size_t size;
    bool live;
    rl::var_data *uses;
    struct word *words;
    struct plain *plains;
};

template <typename T> union place {
    T value;
    place() {}
    ~place() {}
};

struct word {
    uintptr_t key;
    unsigned execution;
    bool live;
    size_t width;
    word *next_of_block;
    place<rl::atomic<uint32_t>> narrow;
    place<rl::atomic<uint64_t>> wide;
};

struct plain {
    uintptr_t key;
    unsigned execution;
    plain *next_of_block;
    rl::var_data *data;
    const void *last; // who touched it
};

// Open addressing; what belongs to an earlier execution counts as free.
template <typename Entry> struct table {
    Entry entries[table_size];
    Entry *used[table_size];
    size_t count;

    Entry *find(uintptr_t key, unsigned execution)
    {
        size_t index = (key >> 2) * UINT64_C(0x9E3779B97F4A7C15) >> 50;
        while (entries[index].execution == execution && entries[index].key != key) {
            index = (index + 1) % table_size;
        }
        return &entries[index];
    }
};

table<word> words;
table<plain> plains;
block blocks[blocks_most];
size_t block_count;
unsigned execution;
bool outside; // in setup or check
int holding;  // a thread goes on with 1 - 1 / holding; 0: never forced
bool spurious;
bool time_stands;
uint64_t clock_ns;
char failure[512];
const relacy_site *latest; // for Relacy's own reports, which name no place
const relacy_scenario *scenario;

struct thread_state {
    bool begun;
    const void *asleep; // the address, or NULL
    bool joins;
    bool ended;
    bool paused;
    bool stopped;
    bool may_stop;
    unsigned steps; // until it stops
};
thread_state threads[threads_most];
bool nobody_stops; // any more
int pause_thread;  // -1: none
unsigned pause_steps;

struct {
    void *(*body)(void *);
    void *argument;
} started[threads_most];
int started_count;

char locals[threads_most + 1][locals_most];
int locals_owner;

rl::debug_info info_of(const relacy_site *site) { return rl::debug_info(site->text, site->file, site->line); }

const relacy_site nowhere = {"", "", 0};

[[noreturn]] void fail(rl::test_result_e result, const relacy_site *site, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(failure, sizeof failure, format, arguments);
    va_end(arguments);
    if (site->line != 0) {
        snprintf(failure + length, sizeof failure - length, " (%s:%u)", site->file, site->line);
    }
    rl::ctx().fail_test(failure, result, info_of(site));
    abort(); // it does not return
}

// Fibres are switched inside Relacy's functions: after each of them the locals may be another's.
void locals_are_mine()
{
    int mine = outside ? threads_most : rl::ctx().threadx_->index_;
    if (mine != locals_owner) {
        size_t size = __stop_relacy_locals - __start_relacy_locals;
        memcpy(locals[locals_owner], __start_relacy_locals, size);
        memcpy(__start_relacy_locals, locals[mine], size);
        locals_owner = mine;
    }
}

bool others_can_go_on(int self)
{
    bool can = false;
    for (int thread = 0; thread < threads_most; thread++) {
        const thread_state &state = threads[thread];
        can = can || (thread != self && state.begun && !state.ended && !state.joins && !state.stopped &&
                      !state.paused && state.asleep == nullptr);
    }
    return can;
}

// The calling thread is about to block, or to end: lets the one that pauses go on unless somebody else can.
void others_go_on(int self)
{
    for (int thread = 0; thread < threads_most; thread++) {
        if (threads[thread].paused && !others_can_go_on(self)) {
            threads[thread].paused = false;
            rl::ctx().unpark_thread(thread, false, info_of(&nowhere));
        }
    }
}

void stop_perhaps(const relacy_site *site)
{
    rl::context &context = rl::ctx();
    if (outside) {
        return;
    }
    int index = context.threadx_->index_;
    thread_state &self = threads[index];
    if (self.may_stop && !nobody_stops && self.steps-- == 0) {
        self.may_stop = false;
        self.stopped = true;
        others_go_on(index);
        context.park_current_thread(false, false, false, info_of(site));
        locals_are_mine();
    }
    if (index == pause_thread && pause_steps-- == 0) {
        pause_thread = -1;
        if (others_can_go_on(index)) {
            self.paused = true;
            context.park_current_thread(false, false, false, info_of(site));
            locals_are_mine();
        }
    }
}

// Around a step: lets the thread go on, if this execution is one with long runs.
struct step {
    bool held;
    explicit step(const relacy_site *site)
    {
        latest = site;
        stop_perhaps(site);
        held = holding != 0 && rl::ctx().rand(holding, rl::sched_type_user) != 0;
        if (held) {
            rl::ctx().disable_preemption();
        }
    }
    ~step()
    {
        if (held) {
            rl::ctx().enable_preemption();
        }
        locals_are_mine();
    }
};

block *block_of(const void *address)
{
    static block *last;
    const char *byte = static_cast<const char *>(address);
    if (last != nullptr && last < blocks + block_count && byte >= last->begin &&
        byte < last->begin + last->size) {
        return last;
    }
    for (size_t index = 0; index < block_count; index++) {
        if (byte >= blocks[index].begin && byte < blocks[index].begin + blocks[index].size) {
            return last = &blocks[index];
        }
    }
    return nullptr;
}

block *live_block_of(const relacy_site *site, const void *address)
{
    block *found = block_of(address);
    if (found != nullptr && !found->live) {
        fail(rl::test_result_access_to_freed_memory, site, "%s: the memory was freed", site->text);
    }
    return found;
}

void end_word(word *gone)
{
    if (gone->live) {
        gone->live = false;
        if (gone->width == 8) {
            gone->wide.value.~atomic();
        } else {
            gone->narrow.value.~atomic();
        }
    }
}

void store(word *at, uint64_t value, rl::memory_order order, const rl::debug_info &where)
{
    if (at->width == 8) {
        at->wide.value.store(value, order, where);
    } else {
        at->narrow.value.store(static_cast<uint32_t>(value), order, where);
    }
}

// `initial`: a stack's memory may have held another word before.
word *word_at(const relacy_site *site, const void *address, size_t width, const uint64_t *initial = nullptr)
{
    block *in = live_block_of(site, address);
    if (in != nullptr && !in->uses->load(*rl::ctx().threadx_)) {
        fail(rl::test_result_data_race, site, "%s: not ordered after the allocation", site->text);
    }
    uintptr_t key = reinterpret_cast<uintptr_t>(address);
    word *found = words.find(key, execution);
    if (found->execution != execution) {
        found->execution = execution;
        found->key = key;
        found->live = false;
        words.used[words.count++] = found;
        if (words.count > table_size / 2) {
            fail(rl::test_result_inconsistent_test_suite, site, "too many shared words");
        }
        found->next_of_block = nullptr;
        if (in != nullptr) {
            found->next_of_block = in->words;
            in->words = found;
        }
    }
    if (initial != nullptr) {
        end_word(found);
    }
    if (!found->live) {
        static const uint64_t zero = 0;
        if (initial == nullptr && in == nullptr) { // static memory is zero from the beginning
            initial = &zero;
        }
        found->live = true;
        found->width = width == 8 ? 8 : 4;
        if (found->width == 8) {
            new (&found->wide.value) rl::atomic<uint64_t>;
        } else {
            new (&found->narrow.value) rl::atomic<uint32_t>;
        }
        if (initial != nullptr) {
            rl::ctx().disable_preemption();
            store(found, *initial, rl::mo_relaxed, info_of(site));
            rl::ctx().enable_preemption();
        }
    }
    return found;
}

rl::memory_order order_of(relacy_order order)
{
    switch (order) {
    case RELACY_relaxed:
        return rl::mo_relaxed;
    case RELACY_acquire:
        return rl::mo_acquire;
    case RELACY_release:
        return rl::mo_release;
    case RELACY_acq_rel:
        return rl::mo_acq_rel;
    case RELACY_seq_cst:
        break;
    }
    return rl::mo_seq_cst;
}

template <typename T>
T modify(rl::atomic<T> &word, relacy_change change, T value, rl::memory_order order, const rl::debug_info &at)
{
    switch (change) {
    case RELACY_EXCHANGE:
        return word.exchange(value, order, at);
    case RELACY_ADD:
        return word.fetch_add(value, order, at);
    case RELACY_SUBTRACT:
        return word.fetch_sub(value, order, at);
    case RELACY_OR:
        return word.fetch_or(value, order, at);
    case RELACY_AND:
        break;
    }
    return word.fetch_and(value, order, at);
}

template <typename T>
bool compare(rl::atomic<T> &word, T &seen, T desired, rl::memory_order success, rl::memory_order failure,
             bool weak, const rl::debug_info &at)
{
    return weak ? word.compare_exchange(rl::bool_t<true>(), seen, desired, success, failure, at)
                : word.compare_exchange(rl::bool_t<false>(), seen, desired, success, failure, at);
}

void touch_plain(const void *address, size_t size, bool write, const void *where)
{
    if (!rl::is_ctx() || execution == 0) {
        return;
    }
    const char *byte = static_cast<const char *>(address);
    if (byte >= __start_relacy_locals && byte < __stop_relacy_locals) {
        return;
    }
    block *in = block_of(address);
    if (in != nullptr && !in->live) {
        fail(rl::test_result_access_to_freed_memory, &nowhere, "plain access at %p: the memory was freed",
             where);
    }
    if (size > plain_most) {
        return;
    }
    uintptr_t first = reinterpret_cast<uintptr_t>(address) & ~uintptr_t(3);
    for (uintptr_t key = first; key < reinterpret_cast<uintptr_t>(address) + size; key += 4) {
        plain *found = plains.find(key, execution);
        if (found->execution != execution) {
            found->execution = execution;
            found->key = key;
            found->data = nullptr;
            plains.used[plains.count++] = found;
            if (plains.count > table_size / 2) {
                fail(rl::test_result_inconsistent_test_suite, &nowhere, "too much plain memory");
            }
            found->next_of_block = nullptr;
            if (in != nullptr) {
                found->next_of_block = in->plains;
                in->plains = found;
            }
        }
        if (found->data == nullptr) {
            found->data = rl::ctx().var_ctor();
            found->last = nullptr;
        }
        rl::thread_info_base &self = *rl::ctx().threadx_;
        if (!(write ? found->data->store(self) : found->data->load(self))) {
            fail(rl::test_result_data_race, &nowhere, "plain %s at %p, after one at %p",
                 write ? "write" : "read", where, found->last);
        }
        found->last = where;
    }
}

void end_plain(plain *gone)
{
    if (gone->data != nullptr) {
        rl::ctx().var_dtor(gone->data);
        gone->data = nullptr;
    }
}

void begin_execution()
{
    execution++;
    words.count = plains.count = block_count = 0;
    outside = true;
    memset(threads, 0, sizeof threads);
    for (int thread = 0; thread < scenario->threads; thread++) {
        threads[thread].begun = true;
    }
    nobody_stops = false;
    memset(locals, 0, sizeof locals);
    memset(__start_relacy_locals, 0, __stop_relacy_locals - __start_relacy_locals);
    locals_owner = threads_most;
    started_count = 0;
    clock_ns = 0;
    failure[0] = '\0';
    const int kinds[] = {0, 0, 4, 16, 64};
    holding = kinds[rl::ctx().rand(5, rl::sched_type_user)];
    spurious = rl::ctx().rand(4, rl::sched_type_user) == 0;
    time_stands = rl::ctx().rand(2, rl::sched_type_user) == 0;
    pause_thread =
        static_cast<int>(rl::ctx().rand(2 * (scenario->threads + scenario->workers), rl::sched_type_user));
    pause_steps = rl::ctx().rand(scenario->workers != 0 ? 300 : 40, rl::sched_type_user);
}

void end_execution()
{
    for (size_t index = 0; index < words.count; index++) {
        end_word(words.used[index]);
    }
    for (size_t index = 0; index < plains.count; index++) {
        end_plain(plains.used[index]);
    }
    for (size_t index = 0; index < block_count; index++) {
        if (blocks[index].live) { // a leak, which Relacy reports
            rl::ctx().var_dtor(blocks[index].uses);
        }
    }
}

void end_thread()
{
    int self = rl::ctx().threadx_->index_;
    threads[self].ended = true;
    others_go_on(self);
}

template <int fixed, int dynamic> struct suite : rl::test_suite<suite<fixed, dynamic>, fixed> {
    static int const dynamic_thread_count = dynamic;

    void before()
    {
        begin_execution();
        int held = holding;
        holding = 0;
        reclaim_model_begin();
        scheduler_model_begin();
        items_begin();
        scenario->setup();
        holding = held;
        outside = false;
    }

    void thread(unsigned index)
    {
        locals_are_mine();
        scenario->thread(static_cast<int>(index));
        pthread_relacy_thread_ends();
        end_thread();
    }

    void after()
    {
        outside = true;
        locals_are_mine();
        scenario->check();
        pthread_relacy_thread_ends(); // what the setup has done
        end_execution();
    }
};

void *thread_main(void *argument)
{
    auto &mine = started[reinterpret_cast<uintptr_t>(argument)];
    locals_are_mine();
    void *result = mine.body(mine.argument);
    pthread_relacy_thread_ends();
    end_thread();
    return result;
}

} // namespace

extern "C" {

void relacy_init(const relacy_site *site, void *object, size_t size, uint64_t value)
{
    (void)word_at(site, object, size, &value);
}

uint64_t relacy_load(const relacy_site *site, const void *object, size_t size, relacy_order order)
{
    step here(site);
    word *at = word_at(site, object, size);
    return at->width == 8 ? at->wide.value.load(order_of(order), info_of(site))
                          : at->narrow.value.load(order_of(order), info_of(site));
}

void relacy_store(const relacy_site *site, void *object, size_t size, uint64_t value, relacy_order order)
{
    step here(site);
    store(word_at(site, object, size), value, order_of(order), info_of(site));
}

uint64_t relacy_modify(const relacy_site *site, void *object, size_t size, relacy_change change,
                       uint64_t value, relacy_order order)
{
    step here(site);
    word *at = word_at(site, object, size);
    return at->width == 8 ? modify(at->wide.value, change, value, order_of(order), info_of(site))
                          : modify(at->narrow.value, change, static_cast<uint32_t>(value), order_of(order),
                                   info_of(site));
}

bool relacy_cas(const relacy_site *site, void *object, size_t size, void *expected, uint64_t desired,
                relacy_order success, relacy_order failure, bool weak)
{
    step here(site);
    word *at = word_at(site, object, size);
    uint64_t seen = 0;
    memcpy(&seen, expected, size);
    bool done;
    if (at->width == 8) {
        done =
            compare(at->wide.value, seen, desired, order_of(success), order_of(failure), weak, info_of(site));
    } else {
        uint32_t narrow = static_cast<uint32_t>(seen);
        done = compare(at->narrow.value, narrow, static_cast<uint32_t>(desired), order_of(success),
                       order_of(failure), weak, info_of(site));
        seen = narrow;
    }
    if (!done) {
        memcpy(expected, &seen, size);
    }
    return done;
}

void relacy_fence(const relacy_site *site, relacy_order order)
{
    step here(site);
    rl::atomic_thread_fence(order_of(order), info_of(site));
}

bool relacy_futex_wait(const relacy_site *site, const void *address, uint32_t value, uint64_t timeout_ns)
{
    rl::context &context = rl::ctx();
    latest = site;
    stop_perhaps(site);
    context.atomic_thread_fence_seq_cst(); // a step
    live_block_of(site, address);
    uintptr_t key = reinterpret_cast<uintptr_t>(address);
    word *found = words.find(key, execution);
    bool upper = found->execution != execution || !found->live;
    if (upper) { // half of a word
        found = words.find(key - 4, execution);
        if (found->execution != execution || !found->live || found->width != 8) {
            fail(rl::test_result_unitialized_access, site, "%s: no shared word", site->text);
        }
    }
    context.disable_preemption();
    uint64_t seen = found->width == 8 ? found->wide.value.load(rl::mo_relaxed, info_of(site))
                                      : found->narrow.value.load(rl::mo_relaxed, info_of(site));
    context.enable_preemption();
    bool woken = true;
    if (static_cast<uint32_t>(upper ? seen >> 32 : seen) == value) {
        int self = context.threadx_->index_;
        threads[self].asleep = address;
        others_go_on(self);
        rl::unpark_reason reason = context.park_current_thread(timeout_ns != UINT64_MAX && !time_stands,
                                                               spurious, false, info_of(site));
        threads[self].asleep = nullptr;
        if (reason == rl::unpark_reason_timeout) {
            clock_ns += timeout_ns;
            woken = false;
        }
    }
    locals_are_mine();
    return woken;
}

void relacy_futex_wake(const relacy_site *site, const void *address, int count)
{
    rl::context &context = rl::ctx();
    latest = site;
    stop_perhaps(site);
    context.atomic_thread_fence_seq_cst();
    for (; count > 0; count--) {
        int asleep[threads_most];
        int number = 0;
        for (int thread = 0; thread < threads_most; thread++) {
            if (threads[thread].asleep == address) {
                asleep[number++] = thread;
            }
        }
        if (number == 0) {
            break;
        }
        int chosen = asleep[number == 1 ? 0 : context.rand(number, rl::sched_type_user)];
        threads[chosen].asleep = nullptr;
        context.unpark_thread(chosen, false, info_of(site));
    }
    locals_are_mine();
}

void *relacy_allocate(const relacy_site *site, size_t size, size_t alignment)
{
    alignment = alignment < 16 ? 16 : alignment;
    void *raw = rl::ctx().alloc(size + alignment, false, info_of(site));
    uintptr_t aligned = (reinterpret_cast<uintptr_t>(raw) + alignment - 1) / alignment * alignment;
    char *begin = reinterpret_cast<char *>(aligned);
    block *fresh = block_of(begin);
    if (fresh == nullptr) {
        if (block_count == blocks_most) {
            fail(rl::test_result_inconsistent_test_suite, site, "too many blocks");
        }
        fresh = &blocks[block_count++];
    }
    *fresh = {begin, raw, size, true, rl::ctx().var_ctor(), nullptr, nullptr};
    memset(begin, 0xA5, size);
    return begin;
}

void relacy_free(const relacy_site *site, void *memory)
{
    if (memory == nullptr) {
        return;
    }
    block *gone = block_of(memory);
    if (gone == nullptr || gone->begin != memory || !gone->live) {
        fail(rl::test_result_double_free, site, "freed twice, or never allocated");
    }
    rl::thread_info_base &self = *rl::ctx().threadx_;
    if (!gone->uses->store(self)) {
        fail(rl::test_result_data_race, site, "freed, and not ordered after every use of its shared words");
    }
    rl::ctx().var_dtor(gone->uses);
    for (plain *each = gone->plains; each != nullptr; each = each->next_of_block) {
        if (each->data != nullptr && !each->data->store(self)) {
            fail(rl::test_result_data_race, site, "freed, and not ordered after the plain access at %p",
                 each->last);
        }
        end_plain(each);
        each->key = 1; // no address: the entry is not found again, and keeps its place
    }
    for (word *each = gone->words; each != nullptr; each = each->next_of_block) {
        end_word(each);
        each->key = 1;
    }
    gone->live = false;
    memset(gone->begin, 0xDB, gone->size);
    rl::ctx().free(gone->raw, false, info_of(site));
}

void relacy_yield(const relacy_site *site)
{
    rl::ctx().yield(1, info_of(site));
    locals_are_mine();
}

void relacy_may_stop(bool may)
{
    constexpr unsigned steps_most = 10;
    thread_state &self = threads[rl::ctx().threadx_->index_];
    self.may_stop = may;
    self.steps = may ? rl::ctx().rand(steps_most, rl::sched_type_user) : 0;
}

void relacy_go_on(void)
{
    nobody_stops = true;
    for (int thread = 0; thread < threads_most; thread++) {
        if (threads[thread].stopped) {
            threads[thread].stopped = false;
            rl::ctx().unpark_thread(thread, false, info_of(&nowhere));
        }
    }
}

uint64_t relacy_now_ns(void) { return clock_ns; }

void relacy_fail(const char *format, ...)
{
    char sentence[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fail(rl::test_result_user_assert_failed, &nowhere, "%s", sentence);
}

int relacy_self(void) { return outside ? -1 : rl::ctx().threadx_->index_; }

void *relacy_spawn(const relacy_site *site, void *(*body)(void *), void *argument)
{
    if (started_count == scenario->workers) {
        fail(rl::test_result_inconsistent_test_suite, site, "more threads than the scenario allows");
    }
    int index = started_count++;
    started[index] = {body, argument};
    threads[scenario->threads + scenario->workers - 1 - index].begun = true; // Relacy begins with the last
    return rl::ctx().create_thread(thread_main, reinterpret_cast<void *>(static_cast<uintptr_t>(index)));
}

void relacy_join(const relacy_site *site, void *thread)
{
    rl::ctx().sched();
    int self = rl::ctx().threadx_->index_;
    if (!static_cast<rl::win_waitable_object *>(thread)->is_signaled(info_of(site))) {
        threads[self].joins = true;
        others_go_on(self);
    }
    static_cast<rl::win_waitable_object *>(thread)->wait(false, false, info_of(site));
    threads[self].joins = false;
    locals_are_mine();
}

bool relacy_try_join(const relacy_site *site, void *thread)
{
    rl::ctx().sched();
    bool ended = static_cast<rl::win_waitable_object *>(thread)->is_signaled(info_of(site));
    if (ended) {
        static_cast<rl::win_waitable_object *>(thread)->memory_acquire(info_of(site));
    }
    locals_are_mine();
    return ended;
}

// What -fsanitize=thread calls.
#define RELACY_ACCESS(size)                                                                                  \
    void __tsan_read##size(void *address)                                                                    \
    {                                                                                                        \
        touch_plain(address, size, false, __builtin_return_address(0));                                      \
    }                                                                                                        \
    void __tsan_write##size(void *address)                                                                   \
    {                                                                                                        \
        touch_plain(address, size, true, __builtin_return_address(0));                                       \
    }                                                                                                        \
    void __tsan_unaligned_read##size(void *address)                                                          \
    {                                                                                                        \
        touch_plain(address, size, false, __builtin_return_address(0));                                      \
    }                                                                                                        \
    void __tsan_unaligned_write##size(void *address)                                                         \
    {                                                                                                        \
        touch_plain(address, size, true, __builtin_return_address(0));                                       \
    }
RELACY_ACCESS(1)
RELACY_ACCESS(2)
RELACY_ACCESS(4)
RELACY_ACCESS(8)
RELACY_ACCESS(16)

void __tsan_read_range(void *address, size_t size)
{
    touch_plain(address, size, false, __builtin_return_address(0));
}
void __tsan_write_range(void *address, size_t size)
{
    touch_plain(address, size, true, __builtin_return_address(0));
}
void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    touch_plain(from, size, false, __builtin_return_address(0));
    touch_plain(to, size, true, __builtin_return_address(0));
    return memcpy(to, from, size);
}
void *__tsan_memmove(void *to, const void *from, size_t size)
{
    touch_plain(from, size, false, __builtin_return_address(0));
    touch_plain(to, size, true, __builtin_return_address(0));
    return memmove(to, from, size);
}
void *__tsan_memset(void *to, int value, size_t size)
{
    touch_plain(to, size, true, __builtin_return_address(0));
    return memset(to, value, size);
}
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
}

namespace
{

struct options {
    rl::iteration_t iterations = 20000;
    bool history = false;
};

// Relacy writes with std::ostream, whose buffers would come from the heap it watches.
struct standard_output : std::streambuf {
    int overflow(int byte) override { return byte == EOF ? 0 : putchar(byte); }
};

// As rl::simulate does, but with the one scheduler that is used: each takes seconds to compile.
template <int fixed, int dynamic> bool simulate(bool history, rl::test_params &parameters)
{
    typedef suite<fixed, dynamic> program;
    typedef rl::random_scheduler<program::params::thread_count> scheduler;
    rl::ostringstream state;
    bool passed = rl::run_test<program, scheduler>(parameters, state, false) == rl::test_result_success;
    if (!passed && history) { // the same execution again
        parameters.initial_state = state.str();
        parameters.collect_history = true;
        rl::ostringstream unused;
        rl::run_test<program, scheduler>(parameters, unused, true);
    }
    return passed;
}

// A line: name, iterations, milliseconds, verdict.
bool run(const relacy_scenario &which, const options &chosen)
{
    static standard_output buffer;
    static std::ostream output(&buffer), nothing(nullptr);
    scenario = &which;
    rl::test_params parameters;
    parameters.iteration_count = chosen.iterations;
    parameters.execution_depth_limit = which.workers != 0 ? 20000 : 4000;
    parameters.output_stream = chosen.history ? &output : &nothing;
    parameters.progress_stream = &nothing;
    timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    bool passed = false;
    switch (which.threads * 10 + which.workers) {
    case 20:
        passed = simulate<2, 0>(chosen.history, parameters);
        break;
    case 30:
        passed = simulate<3, 0>(chosen.history, parameters);
        break;
    case 40:
        passed = simulate<4, 0>(chosen.history, parameters);
        break;
    case 12:
        passed = simulate<1, 2>(chosen.history, parameters);
        break;
    case 22:
        passed = simulate<2, 2>(chosen.history, parameters);
        break;
    default:
        fprintf(stderr, "%s: no such number of threads\n", which.name);
        exit(2);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    long ms = (ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1000000;
    printf("%s\t%llu\t%ld\t", which.name, static_cast<unsigned long long>(parameters.stop_iteration), ms);
    if (passed) {
        printf("passed\n");
    } else {
        printf("FAILED: %s: ", rl::test_result_str(parameters.test_result));
        if (failure[0] != '\0') {
            printf("%s\n", failure);
        } else {
            printf("last step: %s (%s:%u)\n", latest->text, latest->file, latest->line);
        }
    }
    fflush(stdout);
    return passed;
}

[[noreturn]] void usage()
{
    fprintf(stderr, "usage: scenarios [--list] [--iterations N] [--history] [scenario...]\n");
    exit(2);
}

} // namespace

int main(int count, char **arguments)
{
    const relacy_scenario *const parts[] = {deque_scenarios,      inbox_scenarios,    idle_scenarios,
                                            completion_scenarios, capacity_scenarios, registry_scenarios,
                                            scheduler_scenarios,  join_scenarios,     lane_scenarios};
    options chosen;
    bool list = false;
    int index = 1;
    for (; index < count && strncmp(arguments[index], "--", 2) == 0; index++) {
        const char *option = arguments[index];
        const char *value = index + 1 < count ? arguments[index + 1] : "";
        if (strcmp(option, "--list") == 0) {
            list = true;
        } else if (strcmp(option, "--history") == 0) {
            chosen.history = true;
        } else if (strcmp(option, "--iterations") == 0 && atoll(value) > 0) {
            chosen.iterations = strtoull(value, nullptr, 10), index++;
        } else {
            usage();
        }
    }
    bool passed = true;
    int number = 0;
    for (const relacy_scenario *part : parts) {
        for (; part->name != nullptr; part++) {
            bool wanted = index == count;
            for (int name = index; name < count; name++) {
                wanted = wanted || strcmp(arguments[name], part->name) == 0;
            }
            if (wanted && list) {
                printf("%s\t%s\n", part->name, part->sentence);
            } else if (wanted) {
                passed = run(*part, chosen) && passed;
            }
            number += wanted;
        }
    }
    if (number == 0) {
        fprintf(stderr, "scenarios: there is no such scenario\n");
        return 2;
    }
    return passed ? 0 : 1;
}
