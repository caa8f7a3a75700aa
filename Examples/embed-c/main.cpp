// main.cpp - CScheduler in C++: a closure for each operation, and a counter that signals when all have
// run.

#include <CScheduler.h>

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>

namespace
{

struct Destroy {
    void operator()(csched_scheduler *scheduler) const { csched_scheduler_destroy(scheduler); }
    void operator()(csched_completion *counter) const { csched_completion_release(counter); }
};

using Body = std::function<void()>;

// Owns the closure that an operation carries: the closure is destroyed when the operation has run or was
// cancelled.
extern "C" void call(void *context, void *, csched_disposition disposition)
{
    std::unique_ptr<Body> body(static_cast<Body *>(context));
    if (disposition == CSCHED_RUN) {
        (*body)();
    }
}

csched_status submit(csched_scheduler *scheduler, csched_completion *counter, Body body)
{
    csched_operation operation = {};
    operation.run = call;
    operation.context = new Body(std::move(body));
    operation.counter = counter;
    csched_status status = csched_submit(scheduler, &operation);
    if (status != CSCHED_OK) { // the caller still owns it
        delete static_cast<Body *>(operation.context);
    }
    return status;
}

} // namespace

int main()
{
    csched_configuration configuration = csched_configuration_default();
    configuration.name = "embed-cpp";
    csched_scheduler *created = nullptr;
    csched_status status = csched_scheduler_create(&configuration, &created);
    std::unique_ptr<csched_scheduler, Destroy> scheduler(created);
    std::unique_ptr<csched_completion, Destroy> counter(csched_completion_create());
    if (status != CSCHED_OK || !counter) {
        std::fprintf(stderr, "embed-cpp: %s\n", csched_status_message(status));
        return 1;
    }
    std::atomic<std::uint64_t> sum{0};
    for (std::uint64_t number = 1; number <= 10000 && status == CSCHED_OK; number++) {
        status = submit(scheduler.get(), counter.get(), [&sum, number] { sum += number * number; });
    }
    if (status != CSCHED_OK ||
        csched_completion_wait(counter.get(), CSCHED_FOREVER) != CSCHED_WAIT_COMPLETED) {
        std::fprintf(stderr, "embed-cpp: %s\n", csched_status_message(status));
        return 1;
    }
    std::printf("sum of the squares of 1 ... 10000: %" PRIu64 "\n", sum.load());
    return csched_scheduler_shutdown(scheduler.get(), CSCHED_FOREVER) == CSCHED_OK ? 0 : 1;
}
