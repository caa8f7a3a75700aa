// TBBPeer.h - oneTBB behind C functions, so that Swift can call it. If oneTBB was not installed when this
// was built, tbb_peer_version() is NULL and no other function may be called.
//
// An outside thread that calls a group's `run` and `wait` runs tasks itself while it waits, as in every
// program that uses oneTBB: with `threads` = 2 it is one of the two. Operations that are not waited for are
// enqueued, and only the library's threads run them.

#ifndef TBB_PEER_H
#define TBB_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*tbb_peer_function)(void *_Nullable first, void *_Nullable second);

typedef void (*tbb_peer_indexed)(void *_Nullable context, size_t index);
typedef bool (*tbb_peer_repeated)(void *_Nullable context, size_t index); // whether to run it again

typedef struct tbb_peer tbb_peer;             // the limit of threads, and an arena for enqueued operations
typedef struct tbb_peer_group tbb_peer_group; // a task_group
typedef struct tbb_peer_graph tbb_peer_graph; // continue nodes of a flow graph
typedef struct tbb_peer_lane tbb_peer_lane;   // a serial node of a flow graph

// "2021.8.0"; NULL without oneTBB. The text is static.
const char *_Nullable tbb_peer_version(void);

// Limits the process to `threads` (at least 1) threads of oneTBB, including callers that take part.
tbb_peer *_Nonnull tbb_peer_create(size_t threads);

// Waits until the library's threads have exited. Nothing may be pending.
void tbb_peer_destroy(tbb_peer *_Nonnull peer);

// task_arena::enqueue. From any thread.
void tbb_peer_enqueue(tbb_peer *_Nonnull peer, tbb_peer_function _Nonnull run, void *_Nullable first,
                      void *_Nullable second);

tbb_peer_group *_Nonnull tbb_peer_group_create(void);
void tbb_peer_group_destroy(tbb_peer_group *_Nonnull group);

// task_group::run. From the thread that created the group, or from a task of the group.
void tbb_peer_group_run(tbb_peer_group *_Nonnull group, tbb_peer_function _Nonnull run, void *_Nullable first,
                        void *_Nullable second);

// task_group::wait. The caller runs tasks while it waits.
void tbb_peer_group_wait(tbb_peer_group *_Nonnull group);

// parallel_for: `body` once for each index below `count`. The caller takes part.
void tbb_peer_for(size_t count, tbb_peer_indexed _Nonnull body, void *_Nullable context);

// Runs `count` tasks in the arena of tbb_peer_enqueue, each repeatedly until it returns false. The caller
// takes part, and runs enqueued operations too.
void tbb_peer_repeat(tbb_peer *_Nonnull peer, size_t count, tbb_peer_repeated _Nonnull again,
                     void *_Nullable context);

// A node for each index below `nodes`, which calls `body` when all nodes with an edge to it have run.
tbb_peer_graph *_Nonnull tbb_peer_graph_create(size_t nodes, tbb_peer_indexed _Nonnull body,
                                               void *_Nullable context);
void tbb_peer_graph_edge(tbb_peer_graph *_Nonnull graph, size_t from, size_t to);

// Returns when all nodes have run; once for each graph.
void tbb_peer_graph_run(tbb_peer_graph *_Nonnull graph);
void tbb_peer_graph_destroy(tbb_peer_graph *_Nonnull graph);

tbb_peer_lane *_Nonnull tbb_peer_lane_create(void);
void tbb_peer_lane_destroy(tbb_peer_lane *_Nonnull lane);
void tbb_peer_lane_enqueue(tbb_peer_lane *_Nonnull lane, tbb_peer_function _Nonnull run,
                           void *_Nullable first, void *_Nullable second);

// The Fibonacci number of `n`, each call a task: the example in oneTBB's own documentation.
uint64_t tbb_peer_fibonacci(uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
