// tbb_peer.cpp - oneTBB behind C functions.

#include "TBBPeer.h"

#ifdef HAS_TBB

#include <deque>
#include <new>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/version.h>
#include <utility>

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

struct tbb_peer {
    // Declared before the arena, which takes its size from the limit.
    tbb::task_scheduler_handle handle{tbb::attach{}};
    tbb::global_control limit;
    tbb::task_arena arena;

    explicit tbb_peer(size_t threads)
        : limit(tbb::global_control::max_allowed_parallelism, threads), arena(static_cast<int>(threads), 1)
    {
        arena.initialize();
    }
};

struct tbb_peer_group {
    tbb::task_group group;
};

// A serial node of a flow graph runs operations one at a time and in order. An arena of one thread does so
// too, but the threads would move between the arenas, which takes some 100 us.
struct tbb_peer_lane {
    struct message {
        tbb_peer_function run;
        void *first;
        void *second;
    };

    tbb::flow::graph graph;
    tbb::flow::function_node<message> node{graph, tbb::flow::serial,
                                           [](const message &next) { next.run(next.first, next.second); }};

    ~tbb_peer_lane() { graph.wait_for_all(); }
};

struct tbb_peer_graph {
    using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

    tbb::flow::graph graph;
    std::deque<node> nodes; // nodes do not move
    std::deque<bool> begins;
};

namespace
{

// Calls `again` in the group until it returns false. Each call is enqueued behind the operations that were
// enqueued meanwhile. Tasks that a task starts with group.run() would always go ahead of these
// operations.
void repeat(tbb_peer *peer, tbb::task_group &group, tbb_peer_repeated again, void *context, size_t index)
{
    peer->arena.enqueue(group.defer([peer, &group, again, context, index] {
        if (again(context, index)) {
            repeat(peer, group, again, context, index);
        }
    }));
}

uint64_t fibonacci(uint32_t n)
{
    if (n < 2) {
        return n;
    }
    uint64_t left = 0;
    uint64_t right = 0;
    tbb::parallel_invoke([&left, n] { left = fibonacci(n - 1); }, [&right, n] { right = fibonacci(n - 2); });
    return left + right;
}

} // namespace

const char *tbb_peer_version(void)
{
    return TEXT(TBB_VERSION_MAJOR) "." TEXT(TBB_VERSION_MINOR) "." TEXT(TBB_VERSION_PATCH);
}

tbb_peer *tbb_peer_create(size_t threads) { return new tbb_peer(threads); }

void tbb_peer_destroy(tbb_peer *peer)
{
    tbb::task_scheduler_handle handle = std::move(peer->handle);
    delete peer;
    // finalize joins the threads. It refuses while another handle, arena or limit of the process is alive;
    // then the threads stay parked, which is sufficient.
    tbb::finalize(handle, std::nothrow);
}

void tbb_peer_enqueue(tbb_peer *peer, tbb_peer_function run, void *first, void *second)
{
    peer->arena.enqueue([=] { run(first, second); });
}

tbb_peer_group *tbb_peer_group_create(void) { return new tbb_peer_group; }

void tbb_peer_group_destroy(tbb_peer_group *group) { delete group; }

void tbb_peer_group_run(tbb_peer_group *group, tbb_peer_function run, void *first, void *second)
{
    group->group.run([=] { run(first, second); });
}

void tbb_peer_group_wait(tbb_peer_group *group) { group->group.wait(); }

void tbb_peer_for(size_t count, tbb_peer_indexed body, void *context)
{
    tbb::parallel_for(size_t{0}, count, [body, context](size_t index) { body(context, index); });
}

void tbb_peer_repeat(tbb_peer *peer, size_t count, tbb_peer_repeated again, void *context)
{
    peer->arena.execute([=] {
        tbb::task_group group;
        for (size_t i = 0; i < count; i++) {
            repeat(peer, group, again, context, i);
        }
        group.wait();
    });
}

tbb_peer_graph *tbb_peer_graph_create(size_t nodes, tbb_peer_indexed body, void *context)
{
    auto *graph = new tbb_peer_graph;
    for (size_t i = 0; i < nodes; i++) {
        graph->nodes.emplace_back(graph->graph, [body, context, i](const tbb::flow::continue_msg &message) {
            body(context, i);
            return message;
        });
        graph->begins.push_back(true);
    }
    return graph;
}

void tbb_peer_graph_edge(tbb_peer_graph *graph, size_t from, size_t to)
{
    tbb::flow::make_edge(graph->nodes[from], graph->nodes[to]);
    graph->begins[to] = false;
}

void tbb_peer_graph_run(tbb_peer_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.size(); i++) {
        if (graph->begins[i]) {
            graph->nodes[i].try_put(tbb::flow::continue_msg());
        }
    }
    graph->graph.wait_for_all();
}

void tbb_peer_graph_destroy(tbb_peer_graph *graph) { delete graph; }

tbb_peer_lane *tbb_peer_lane_create(void) { return new tbb_peer_lane; }

void tbb_peer_lane_destroy(tbb_peer_lane *lane) { delete lane; }

void tbb_peer_lane_enqueue(tbb_peer_lane *lane, tbb_peer_function run, void *first, void *second)
{
    lane->node.try_put({run, first, second});
}

uint64_t tbb_peer_fibonacci(uint32_t n) { return fibonacci(n); }

#else

#include <cstdlib>

const char *tbb_peer_version(void) { return nullptr; }

// Never reached: without a version, callers must not call any of these functions.
tbb_peer *tbb_peer_create(size_t) { std::abort(); }
void tbb_peer_destroy(tbb_peer *) { std::abort(); }
void tbb_peer_enqueue(tbb_peer *, tbb_peer_function, void *, void *) { std::abort(); }
tbb_peer_group *tbb_peer_group_create(void) { std::abort(); }
void tbb_peer_group_destroy(tbb_peer_group *) { std::abort(); }
void tbb_peer_group_run(tbb_peer_group *, tbb_peer_function, void *, void *) { std::abort(); }
void tbb_peer_group_wait(tbb_peer_group *) { std::abort(); }
void tbb_peer_for(size_t, tbb_peer_indexed, void *) { std::abort(); }
void tbb_peer_repeat(tbb_peer *, size_t, tbb_peer_repeated, void *) { std::abort(); }
tbb_peer_graph *tbb_peer_graph_create(size_t, tbb_peer_indexed, void *) { std::abort(); }
void tbb_peer_graph_edge(tbb_peer_graph *, size_t, size_t) { std::abort(); }
void tbb_peer_graph_run(tbb_peer_graph *) { std::abort(); }
void tbb_peer_graph_destroy(tbb_peer_graph *) { std::abort(); }
tbb_peer_lane *tbb_peer_lane_create(void) { std::abort(); }
void tbb_peer_lane_destroy(tbb_peer_lane *) { std::abort(); }
void tbb_peer_lane_enqueue(tbb_peer_lane *, tbb_peer_function, void *, void *) { std::abort(); }
uint64_t tbb_peer_fibonacci(uint32_t) { std::abort(); }

#endif
