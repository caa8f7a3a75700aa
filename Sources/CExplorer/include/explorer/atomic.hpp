/// explorer/atomic.hpp - std::atomic, std::thread and std::mutex under the explorer, for C++17.
///
///     #ifdef EXPLORED
///     #include <explorer/atomic.hpp>
///     namespace concurrency = explorer;
///     #else
///     #include <atomic>
///     namespace concurrency = std;
///     #endif
///
/// Provides the parts of <atomic>, <mutex>, <condition_variable> and <thread> that are declared below;
/// std::lock_guard, std::scoped_lock and std::unique_lock are used as they are. `new` and `delete` are the
/// explorer's while a program runs: late uses and leaks are reported.
///
/// Objects have 1, 2, 4 or 8 bytes, and are copied by memcpy. A step's place in the source is where the
/// method is called.

#ifndef EXPLORER_ATOMIC_HPP
#define EXPLORER_ATOMIC_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../explorer.h"

// Defined in every file that includes this; the linker keeps one.
__attribute__((weak)) void *operator new(std::size_t size)
{
    void *memory = explorer_is_running() ? explorer_allocate(size, 0) : std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}
__attribute__((weak)) void *operator new[](std::size_t size) { return operator new(size); }
__attribute__((weak)) void operator delete(void *memory) noexcept
{
    if (explorer_owns(memory)) {
        explorer_free(memory);
    } else {
        std::free(memory);
    }
}
__attribute__((weak)) void operator delete[](void *memory) noexcept { operator delete(memory); }
__attribute__((weak)) void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }
__attribute__((weak)) void operator delete[](void *memory, std::size_t) noexcept { operator delete(memory); }

namespace explorer
{

enum memory_order : int {
    memory_order_relaxed,
    memory_order_consume,
    memory_order_acquire,
    memory_order_release,
    memory_order_acq_rel,
    memory_order_seq_cst
};

namespace detail
{

// The failure order when none is given.
constexpr memory_order on_failure(memory_order success)
{
    return success == memory_order_acq_rel   ? memory_order_acquire
           : success == memory_order_release ? memory_order_relaxed
                                             : success;
}

} // namespace detail

#define EXPLORER_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <typename T> class atomic
{
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= sizeof(std::uint64_t),
                  "the explorer keeps atomic objects of at most 8 bytes");
    T object;

    static std::uint64_t word(T value)
    {
        std::uint64_t result = 0;
        std::memcpy(&result, &value, sizeof value);
        return result;
    }
    static T value(std::uint64_t word)
    {
        T result;
        std::memcpy(&result, &word, sizeof result);
        return result;
    }
    T change(explorer_change how, std::uint64_t operand, memory_order order, const char *what,
             const char *file, int line)
    {
        return value(explorer_modify(explorer_site_at(file, line, what), &object, sizeof object, how, operand,
                                     explorer_order_of(order)));
    }
    bool compare_exchange(bool is_weak, T &expected, T desired, memory_order success, memory_order failure,
                          const char *file, int line)
    {
        return explorer_cas(explorer_site_at(file, line, "compare-exchange"), &object, sizeof object,
                            &expected, word(desired), explorer_order_of(success), explorer_order_of(failure),
                            is_weak);
    }
    template <typename N> static std::uint64_t step(N count)
    {
        if constexpr (std::is_pointer<T>::value) {
            return std::uint64_t(count) * sizeof(*T());
        } else {
            return word(T(count));
        }
    }

  public:
    using value_type = T;
    static constexpr bool is_always_lock_free = true;

    atomic() noexcept : atomic(T()) {}
    atomic(T initial) noexcept { explorer_init(&object, sizeof object, word(initial)); }
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;
    bool is_lock_free() const noexcept { return true; }

    T load(memory_order order = memory_order_seq_cst, EXPLORER_PLACE) const
    {
        return value(explorer_load(explorer_site_at(file, line, "load"), &object, sizeof object,
                                   explorer_order_of(order)));
    }
    void store(T desired, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        explorer_store(explorer_site_at(file, line, "store"), &object, sizeof object, word(desired),
                       explorer_order_of(order));
    }
    T exchange(T desired, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return change(EXPLORER_EXCHANGE, word(desired), order, "exchange", file, line);
    }
    bool compare_exchange_strong(T &expected, T desired, memory_order success, memory_order failure,
                                 EXPLORER_PLACE)
    {
        return compare_exchange(false, expected, desired, success, failure, file, line);
    }
    bool compare_exchange_strong(T &expected, T desired, memory_order order = memory_order_seq_cst,
                                 EXPLORER_PLACE)
    {
        return compare_exchange(false, expected, desired, order, detail::on_failure(order), file, line);
    }
    bool compare_exchange_weak(T &expected, T desired, memory_order success, memory_order failure,
                               EXPLORER_PLACE)
    {
        return compare_exchange(true, expected, desired, success, failure, file, line);
    }
    bool compare_exchange_weak(T &expected, T desired, memory_order order = memory_order_seq_cst,
                               EXPLORER_PLACE)
    {
        return compare_exchange(true, expected, desired, order, detail::on_failure(order), file, line);
    }
    template <typename N> T fetch_add(N count, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return change(EXPLORER_ADD, step(count), order, "add", file, line);
    }
    template <typename N> T fetch_sub(N count, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return change(EXPLORER_SUBTRACT, step(count), order, "subtract", file, line);
    }
    T fetch_or(T bits, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return change(EXPLORER_OR, word(bits), order, "or", file, line);
    }
    T fetch_and(T bits, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return change(EXPLORER_AND, word(bits), order, "and", file, line);
    }
    T fetch_xor(T bits, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return change(EXPLORER_XOR, word(bits), order, "xor", file, line);
    }

    operator T() const { return load(); }
    T operator=(T desired)
    {
        store(desired);
        return desired;
    }
    T operator++() { return fetch_add(1) + 1; }
    T operator++(int) { return fetch_add(1); }
    T operator--() { return fetch_sub(1) - 1; }
    T operator--(int) { return fetch_sub(1); }
    template <typename N> T operator+=(N count) { return T(fetch_add(count) + count); }
    template <typename N> T operator-=(N count) { return T(fetch_sub(count) - count); }
    T operator|=(T bits) { return T(fetch_or(bits) | bits); }
    T operator&=(T bits) { return T(fetch_and(bits) & bits); }
    T operator^=(T bits) { return T(fetch_xor(bits) ^ bits); }
};

using atomic_bool = atomic<bool>;
using atomic_char = atomic<char>;
using atomic_int = atomic<int>;
using atomic_uint = atomic<unsigned>;
using atomic_long = atomic<long>;
using atomic_ulong = atomic<unsigned long>;
using atomic_size_t = atomic<std::size_t>;
using atomic_uint32_t = atomic<std::uint32_t>;
using atomic_uint64_t = atomic<std::uint64_t>;
using atomic_uintptr_t = atomic<std::uintptr_t>;

class atomic_flag
{
    atomic<bool> is_set;

  public:
    atomic_flag(bool initial = false) noexcept : is_set(initial) {} // ATOMIC_FLAG_INIT is {0}
    bool test_and_set(memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return is_set.exchange(true, order, file, line);
    }
    void clear(memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        is_set.store(false, order, file, line);
    }
    bool test(memory_order order = memory_order_seq_cst, EXPLORER_PLACE) const
    {
        return is_set.load(order, file, line);
    }
};

/// The explorer has no signals.
inline void atomic_signal_fence(memory_order) noexcept {}

inline void atomic_thread_fence(memory_order order, EXPLORER_PLACE)
{
    explorer_fence(explorer_site_at(file, line, "fence"), explorer_order_of(order));
}

class mutex
{
    std::uint32_t word = 0;

  public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock(EXPLORER_PLACE) { explorer_lock(explorer_site_at(file, line, "lock"), &word); }
    bool try_lock(EXPLORER_PLACE)
    {
        return explorer_try_lock(explorer_site_at(file, line, "try to lock"), &word);
    }
    void unlock(EXPLORER_PLACE) { explorer_unlock(explorer_site_at(file, line, "unlock"), &word); }
};

using std::adopt_lock;
using std::defer_lock;
using std::lock_guard;
using std::scoped_lock;
using std::try_to_lock;
using std::unique_lock;

/// A condition variable that may wake spuriously, as in the standard.
class condition_variable
{
    std::uint32_t wakes = 0;

    void wake(int count, const char *what, const char *file, int line)
    {
        const explorer_site *site = explorer_site_at(file, line, what);
        (void)explorer_modify(site, &wakes, sizeof wakes, EXPLORER_ADD, 1, explorer_relaxed);
        explorer_futex_wake(site, &wakes, count);
    }

  public:
    condition_variable() = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;
    template <typename Lock> void wait(Lock &lock, EXPLORER_PLACE)
    {
        const explorer_site *site = explorer_site_at(file, line, "wait");
        auto seen = std::uint32_t(explorer_load(site, &wakes, sizeof wakes, explorer_relaxed));
        lock.unlock();
        (void)explorer_futex_wait(site, &wakes, seen, UINT64_MAX);
        lock.lock();
    }
    template <typename Lock, typename Predicate> void wait(Lock &lock, Predicate is_true, EXPLORER_PLACE)
    {
        while (!is_true()) {
            wait(lock, file, line);
        }
    }
    void notify_one(EXPLORER_PLACE) { wake(1, "notify one", file, line); }
    void notify_all(EXPLORER_PLACE) { wake(EXPLORER_THREADS, "notify all", file, line); }
};

/// Must be joined before it is destroyed, like std::thread.
class thread
{
    int number = -1;

    template <typename Call> static void run(void *call)
    {
        std::unique_ptr<Call> own(static_cast<Call *>(call));
        std::apply([](auto &body,
                      auto &...arguments) { (void)std::invoke(std::move(body), std::move(arguments)...); },
                   *own);
    }
    static const char *next_name()
    {
        static const char *const names[EXPLORER_THREADS] = {"thread 0", "thread 1", "thread 2", "thread 3",
                                                            "thread 4", "thread 5", "thread 6", "thread 7"};
        return names[explorer_threads() < EXPLORER_THREADS ? explorer_threads() : 0];
    }

  public:
    thread() = default;
    template <typename Body, typename... Arguments,
              typename = std::enable_if_t<!std::is_same<std::decay_t<Body>, thread>::value>>
    explicit thread(Body &&body, Arguments &&...arguments)
    {
        using Call = std::tuple<std::decay_t<Body>, std::decay_t<Arguments>...>;
        auto *call = new Call(std::forward<Body>(body), std::forward<Arguments>(arguments)...);
        number = explorer_spawn(next_name(), run<Call>, call);
    }
    thread(thread &&other) noexcept : number(std::exchange(other.number, -1)) {}
    thread &operator=(thread &&other) noexcept
    {
        if (joinable()) {
            explorer_fail("a thread is not joined");
        }
        number = std::exchange(other.number, -1);
        return *this;
    }
    thread(const thread &) = delete;
    thread &operator=(const thread &) = delete;
    ~thread()
    {
        if (joinable()) {
            explorer_fail("a thread is not joined");
        }
    }
    bool joinable() const noexcept { return number >= 0; }
    void join(EXPLORER_PLACE)
    {
        if (!joinable()) {
            explorer_fail("a thread is joined that is none, or has been joined, at %s:%d", file, line);
        }
        explorer_join(explorer_site_at(file, line, "join"), number);
        number = -1;
    }
};

namespace this_thread
{
inline void yield(EXPLORER_PLACE) { explorer_yield(explorer_site_at(file, line, "yield")); }
} // namespace this_thread

#undef EXPLORER_PLACE

} // namespace explorer

#endif
