import BenchmarkCore

/// The workloads of graphs, and of operations that take time, with Swift's own tasks.
extension TaskGroupPeer {
    static func declaredGraph(_ workload: String, n: Int) async -> Sample {
        let run = GraphRun(workload, n: n)
        let start = startClock()
        var tasks: [Task<Void, Never>] = []
        tasks.reserveCapacity(run.count)
        for (node, others) in run.graph.predecessors.enumerated() {
            let before = others.map { tasks[$0] }
            let work = NodeWork(nodes: run, node: node)
            tasks.append(
                Task.detached {
                    for task in before { await task.value }
                    if !Task.isCancelled { work.run() }
                })
        }
        for task in tasks { await task.value }
        let stop = stopClock()
        return run.sample(from: start, to: stop)
    }

    static func grains(_ workload: String, n: Int, threads: Int) -> Sample {
        let grains = Grains(workload, n: n)
        let ideal = grains.ideal(threads: threads)
        return blocking {
            let start = startClock()
            await withDiscardingTaskGroup { group in
                for index in 0..<grains.count {
                    let grain = grains[index]
                    group.addTask { grain.run() }
                }
            }
            let stop = stopClock()
            return grains.sample(from: start, to: stop, ideal: ideal)
        }
    }

    static func tree(branches: Int, threads: Int) -> Sample {
        let tree = UnbalancedTree.of(branches: branches)
        let ideal = idealOfTree(tree, threads: threads)
        let sum = StripedSum()
        return blocking {
            let start = startClock()
            await search(UnbalancedTree.root, branches: branches, sum)
            let stop = stopClock()
            return sampleOfTree(from: start, to: stop, tree, sum, ideal: ideal)
        }
    }

    private static func search(_ node: UInt64, branches: Int, _ sum: StripedSum) async {
        visit(node, sum)
        guard branches > 0 else { return }
        await withDiscardingTaskGroup { group in
            for index in 0..<branches {
                let branch = UnbalancedTree.branch(index, of: node)
                group.addTask { await search(branch, branches: UnbalancedTree.branches(of: branch), sum) }
            }
        }
    }
}
