#include <explorer/atomic.hpp>

#include "programs.h"

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            explorer_fail("%s does not hold", #condition);                                                   \
        }                                                                                                    \
    } while (0)

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
