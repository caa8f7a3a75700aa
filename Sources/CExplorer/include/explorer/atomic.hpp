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
/// Objects have 1, 2, 4 or 8 bytes, and are copied by memcpy. A step's place in the source is where the
/// method is called.

#ifndef EXPLORER_ATOMIC_HPP
#define EXPLORER_ATOMIC_HPP

#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "../explorer.h"

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

inline explorer_order order_of(memory_order order)
{
    static const explorer_order orders[] = {explorer_relaxed, explorer_acquire, explorer_acquire,
                                            explorer_release, explorer_acq_rel, explorer_seq_cst};
    return orders[order];
}

// The order of a failure that nobody names.
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
                                     detail::order_of(order)));
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
                                   detail::order_of(order)));
    }
    void store(T desired, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        explorer_store(explorer_site_at(file, line, "store"), &object, sizeof object, word(desired),
                       detail::order_of(order));
    }
    T exchange(T desired, memory_order order = memory_order_seq_cst, EXPLORER_PLACE)
    {
        return change(EXPLORER_EXCHANGE, word(desired), order, "exchange", file, line);
    }
    bool compare_exchange_strong(T &expected, T desired, memory_order success, memory_order failure,
                                 EXPLORER_PLACE)
    {
        return explorer_cas(explorer_site_at(file, line, "compare-exchange"), &object, sizeof object,
                            &expected, word(desired), detail::order_of(success), detail::order_of(failure),
                            false);
    }
    bool compare_exchange_strong(T &expected, T desired, memory_order order = memory_order_seq_cst,
                                 EXPLORER_PLACE)
    {
        return compare_exchange_strong(expected, desired, order, detail::on_failure(order), file, line);
    }
    bool compare_exchange_weak(T &expected, T desired, memory_order success, memory_order failure,
                               EXPLORER_PLACE)
    {
        return explorer_cas(explorer_site_at(file, line, "compare-exchange"), &object, sizeof object,
                            &expected, word(desired), detail::order_of(success), detail::order_of(failure),
                            true);
    }
    bool compare_exchange_weak(T &expected, T desired, memory_order order = memory_order_seq_cst,
                               EXPLORER_PLACE)
    {
        return compare_exchange_weak(expected, desired, order, detail::on_failure(order), file, line);
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
};

inline void atomic_thread_fence(memory_order order, EXPLORER_PLACE)
{
    explorer_fence(explorer_site_at(file, line, "fence"), detail::order_of(order));
}

class mutex
{
    std::int32_t word = 0;

  public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock(EXPLORER_PLACE) { explorer_lock(explorer_site_at(file, line, "lock"), &word); }
    bool try_lock(EXPLORER_PLACE)
    {
        std::int32_t unlocked = 0;
        return explorer_cas(explorer_site_at(file, line, "try to lock"), &word, sizeof word, &unlocked, 1,
                            explorer_acquire, explorer_relaxed, false);
    }
    void unlock(EXPLORER_PLACE) { explorer_unlock(explorer_site_at(file, line, "unlock"), &word); }
};

/// To be joined before it goes, as std::thread is.
class thread
{
    int number = -1;

    static void run(void *body)
    {
        auto *function = static_cast<std::function<void()> *>(body);
        (*function)();
        delete function;
    }

  public:
    template <typename Body> explicit thread(Body body)
    {
        number = explorer_spawn("thread", run, new std::function<void()>(std::move(body)));
    }
    thread(thread &&other) noexcept : number(std::exchange(other.number, -1)) {}
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
        explorer_join(explorer_site_at(file, line, "join"), number);
        number = -1;
    }
};

#undef EXPLORER_PLACE

} // namespace explorer

#endif
