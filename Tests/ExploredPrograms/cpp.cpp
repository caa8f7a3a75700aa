#include <explorer/atomic.hpp>

#include "expect.h"
#include "programs.h"

namespace
{

struct pair {
    std::int32_t first;
    std::int32_t second;
};

void use_each_operation()
{
    int numbers[4] = {};
    explorer::atomic<int *> pointer(numbers);
    EXPECT(pointer.fetch_add(2) == numbers);
    EXPECT(pointer.load() == numbers + 2);
    EXPECT(pointer.fetch_sub(1, explorer::memory_order_relaxed) == numbers + 2);

    explorer::atomic<signed char> small(127);
    EXPECT(small++ == 127);
    EXPECT(small == -128);
    EXPECT(--small == 127);
    EXPECT(small.fetch_and(0x3C) == 127);
    EXPECT(small.fetch_or(1) == 0x3C);
    EXPECT(small.fetch_xor(1) == 0x3D);
    EXPECT(small.exchange(-5, explorer::memory_order_acq_rel) == 0x3C);
    small = 4;
    EXPECT(small.load(explorer::memory_order_consume) == 4);

    explorer::atomic<pair> both(pair{1, 2});
    pair seen{1, 3};
    EXPECT(!both.compare_exchange_strong(seen, pair{7, 7}));
    EXPECT(seen.second == 2);
    EXPECT(both.compare_exchange_strong(seen, pair{7, 8}, explorer::memory_order_release));
    EXPECT(both.load().second == 8);

    explorer::atomic<bool> flag;
    EXPECT(!flag.load());
    explorer::mutex mutex;
    EXPECT(mutex.try_lock());
    EXPECT(!mutex.try_lock());
    mutex.unlock();
    mutex.lock();
    mutex.unlock();
    explorer::atomic_thread_fence(explorer::memory_order_seq_cst);
}

class spinlock
{
    explorer::atomic<bool> is_locked{false};

  public:
    void lock()
    {
        bool unlocked = false;
        while (!is_locked.compare_exchange_weak(unlocked, true, explorer::memory_order_acquire)) {
            unlocked = false;
            explorer_yield(explorer_site_at(__FILE__, __LINE__, "yield"));
        }
    }
    void unlock() { is_locked.store(false, explorer::memory_order_release); }
};

void add_under_a_spinlock()
{
    spinlock lock;
    explorer::atomic<int> sum(0);
    auto adds = [&] {
        lock.lock();
        int before = sum.load(explorer::memory_order_relaxed);
        sum.store(before + 1, explorer::memory_order_relaxed);
        lock.unlock();
    };
    explorer::thread first(adds);
    explorer::thread second(std::move(first));
    EXPECT(!first.joinable());
    adds();
    second.join();
    EXPECT(sum == 2);
}

// A queue of capacity one, with one condition for both sides.
void hand_over_by_a_condition()
{
    explorer::mutex mutex;
    explorer::condition_variable changed;
    int full = 0;
    explorer::thread puts([&] {
        for (int value = 1; value <= 2; value++) {
            explorer::unique_lock<explorer::mutex> lock(mutex);
            changed.wait(lock, [&] { return full == 0; });
            full = value;
            changed.notify_all();
        }
    });
    for (int value = 1; value <= 2; value++) {
        explorer::unique_lock<explorer::mutex> lock(mutex);
        changed.wait(lock, [&] { return full != 0; });
        EXPECT(full == value);
        full = 0;
        changed.notify_all();
    }
    puts.join();
}

struct error {
    int of;
};

// Each thread has its own exception.
void throw_beside_each_other()
{
    explorer::atomic<int> steps(0);
    auto throws = [&steps](int number) {
        try {
            try {
                throw error{number};
            } catch (const error &) {
                (void)steps.fetch_add(1);
                throw;
            }
        } catch (const error &thrown) {
            EXPECT(thrown.of == number);
        }
    };
    explorer::thread first(throws, 1);
    explorer::thread second(throws, 2);
    first.join();
    second.join();
    EXPECT(steps == 2);
}

void delete_what_is_used()
{
    auto *shared = new explorer::atomic<int>(0);
    explorer::thread uses([shared] { (void)shared->load(); });
    delete shared;
    uses.join();
}

struct worker {
    explorer::atomic_int calls{0};
    void work(int times) { calls += times; }
};

void use_threads_in_each_way()
{
    worker works;
    explorer::thread none;
    EXPECT(!none.joinable());
    none = explorer::thread(&worker::work, &works, 3);
    auto owned = std::make_unique<int>(4);
    explorer::thread moves([&works, owned = std::move(owned)] { works.work(*owned); });
    none.join();
    moves.join();
    explorer::this_thread::yield();
    works.calls -= 2;
    works.calls |= 8;
    works.calls &= 12;
    works.calls ^= 1;
    EXPECT(works.calls == 13);
    explorer::atomic_flag flag = ATOMIC_FLAG_INIT;
    EXPECT(!flag.test_and_set() && flag.test());
    flag.clear();
    explorer::atomic_signal_fence(explorer::memory_order_seq_cst);
}

explorer::atomic<int> global(7); // initialised before main

void use_a_global() { EXPECT(global.exchange(7) == 7); }

void join_no_thread()
{
    explorer::thread left([] {});
}

} // namespace

extern "C" const explorer_program operations_of_cpp = {
    "operations_of_cpp",
    "the operations of one thread",
    nullptr,
    use_each_operation,
};
extern "C" const explorer_program spinlock_in_cpp = {
    "spinlock_in_cpp",
    "two add one each, under a spinlock",
    nullptr,
    add_under_a_spinlock,
};
extern "C" const explorer_program unjoined_in_cpp = {
    "unjoined_in_cpp",
    "a thread that is not joined",
    nullptr,
    join_no_thread,
};
// Counts its live instances.
struct counted {
    static int live;
    counted() { live++; }
    counted(const counted &) { live++; }
    ~counted() { live--; }
};
int counted::live = 0;

// A program that fails inside a catch block, run inside another catch block whose exception remains the
// caller's.
extern "C" int explored_inside_a_catch(void)
{
    explorer_program program = {};
    program.name = "fails";
    program.body = [] {
        try {
            throw counted();
        } catch (const counted &) {
            explorer_fail("inside of a catch");
        }
    };
    explorer_options options = explorer_options_default();
    try {
        try {
            throw error{7};
        } catch (const error &) {
            EXPECT(explorer_run(&program, &options).failed);
            EXPECT(counted::live == 0);
            throw;
        }
    } catch (const error &thrown) {
        return thrown.of;
    }
}

extern "C" const explorer_program condition_in_cpp = {
    "condition_in_cpp",
    "a queue of one place",
    nullptr,
    hand_over_by_a_condition,
};
extern "C" const explorer_program exceptions_in_cpp = {
    "exceptions_in_cpp",
    "two threads throw, each its own",
    nullptr,
    throw_beside_each_other,
};
extern "C" const explorer_program deleted_while_used_in_cpp = {
    "deleted_while_used_in_cpp",
    "memory is deleted while it is used",
    nullptr,
    delete_what_is_used,
};
extern "C" const explorer_program threads_in_cpp = {
    "threads_in_cpp",
    "threads with arguments",
    nullptr,
    use_threads_in_each_way,
};
extern "C" const explorer_program global_in_cpp = {
    "global_in_cpp",
    "an object from before main",
    nullptr,
    use_a_global,
};
