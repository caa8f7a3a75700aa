// ring.cpp - a ring with one writer and one reader, in C++: one source for the product and for the explorer.

#ifdef EXPLORED
#include <explorer/atomic.hpp>
namespace concurrency = explorer;
#else
#include <atomic>
#include <thread>
namespace concurrency = std;
#endif

#ifdef RING_RELAXED
static constexpr auto publication = concurrency::memory_order_relaxed;
#else
static constexpr auto publication = concurrency::memory_order_release;
#endif

template <int Size> class ring
{
    int values[Size] = {};
    concurrency::atomic<unsigned> written{0};
    concurrency::atomic<unsigned> read{0};

  public:
    bool push(int value)
    {
        unsigned at = written.load(concurrency::memory_order_relaxed);
        if (at - read.load(concurrency::memory_order_acquire) == Size) {
            return false;
        }
        values[at % Size] = value;
        written.store(at + 1, publication);
        return true;
    }
    bool pop(int &value)
    {
        unsigned at = read.load(concurrency::memory_order_relaxed);
        if (written.load(concurrency::memory_order_acquire) == at) {
            return false;
        }
        value = values[at % Size];
        read.store(at + 1, concurrency::memory_order_release);
        return true;
    }
};

extern "C" void ring_hands_over(void)
{
    ring<2> shared;
    concurrency::thread writer([&shared] {
        for (int value = 1; value <= 3; value++) {
            (void)shared.push(value);
        }
    });
    int last = 0;
    for (int look = 0; look < 3; look++) {
        int value = 0;
        if (shared.pop(value)) {
            if (value <= last) {
                explorer_fail("%d came after %d", value, last);
            }
            last = value;
        }
    }
    writer.join();
}
