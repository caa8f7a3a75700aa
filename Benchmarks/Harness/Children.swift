import Foundation

/// The child processes of one restart, by peer and measurement; a dead one is replaced at the next request for it.
final class Children {
    enum Count { case time, allocations, liveBytes }

    private struct Key: Hashable {
        let name: String
        let count: Count
    }

    private let program: String
    private let threads: Int
    private var children: [Key: ChildProcess] = [:]

    init(program: String, threads: Int) {
        self.program = program
        self.threads = threads
    }

    /// - Throws: ``BenchmarkError`` when the process cannot be started.
    func child(_ name: String, counting count: Count) async throws -> ChildProcess {
        let key = Key(name: name, count: count)
        if let child = children[key], child.isAlive { return child }
        let peer = name == Coordinator.again ? "ours" : name
        var arguments = ["child", "--peer", peer, "--threads", "\(threads)"]
        if count == .allocations { arguments.append("--count-allocations") }
        // jemalloc counts the memory in a thread's cache as live.
        let theirs = ProcessInfo.processInfo.environment["MALLOC_CONF"].map { $0 + "," } ?? ""
        let environment = count == .liveBytes ? ["MALLOC_CONF": theirs + "tcache:false"] : [:]
        let child = try await ChildProcess(program: program, arguments: arguments, environment: environment)
        children[key] = child
        return child
    }

    var all: [ChildProcess] { Array(children.values) }

    /// Voluntary context switches of the timed processes so far, by peer.
    func switches() -> [String: Int] {
        Dictionary(
            uniqueKeysWithValues: children.compactMap { key, child in
                guard key.count == .time, let switches = voluntarySwitches(ofProcess: child.pid) else {
                    return nil
                }
                return (key.name, switches)
            })
    }

    /// Kills the children; returns when they have ended.
    func endAll() async {
        for child in children.values { await child.end() }
        children = [:]
    }
}
