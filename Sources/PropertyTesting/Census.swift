// Census: what a process has, to find out what is left of something that should leave nothing.

import Glibc

/// Something that a process has until it gives it back.
public enum Resource: Hashable, Sendable, CustomStringConvertible {
    /// A kernel thread.
    case thread(id: Int32, name: String)
    /// A file descriptor, and what it refers to.
    case file(descriptor: Int32, target: String)
    /// Instances that a ``LiveCount`` counts.
    case instances(of: String, count: Int)

    /// The resource in a few words.
    public var description: String {
        switch self {
        case .thread(let id, let name): "thread \(id) '\(name)'"
        case .file(let descriptor, let target): "file descriptor \(descriptor) of \(target)"
        case .instances(let name, let count): "\(count) of \(name)"
        }
    }
}

/// A census could not be taken, for instance because there is no file descriptor left.
public struct CensusError: Error, Equatable, CustomStringConvertible {
    /// The directory that could not be read.
    public let path: String
    /// The reason, as `errno` has it.
    public let code: Int32

    /// Creates the error.
    public init(path: String, code: Int32) {
        self.path = path
        self.code = code
    }

    /// A sentence.
    public var description: String { "\(path) cannot be read: \(String(cString: strerror(code)))" }
}

/// The threads, the open files and the counted instances of the process at one time.
///
/// The process's, not the test's: what other tests start meanwhile is counted as well. So take it in an exit
/// test, whose process is its own, after a round that is not counted and starts what stays. Dispatch's pool,
/// which runs Swift's tasks, starts and ends threads as it likes, which nothing tells from others (a new thread
/// has the name of the thread that made it): say by `except` what is of interest, when tasks run.
///
/// ```swift
/// await #expect(processExitsWith: .success) {
///     try useScheduler()
///     await expectNothingLeft { try useScheduler() }
/// }
/// ```
public struct Census: Sendable {
    private let threads: [Int32: String]
    private let files: [Int32: String]
    private let instances: [(counter: LiveCount, value: Int)]

    /// Takes a census.
    ///
    /// - Complexity: a few system calls for each thread and each open file.
    public init() throws(CensusError) {
        // Instances last: what a thread that has just ended held is released.
        threads = Dictionary(
            uniqueKeysWithValues: try Self.numbers(in: "/proc/self/task").compactMap { id in
                contents(of: "/proc/self/task/\(id)/comm").map { (id, $0) }
            })
        files = Dictionary(
            uniqueKeysWithValues: try Self.numbers(in: "/proc/self/fd").compactMap { descriptor in
                target(of: "/proc/self/fd/\(descriptor)").map { (descriptor, $0) }
            })
        instances = LiveCount.existing.map { ($0, $0.value) }
    }

    private static func numbers(in path: String) throws(CensusError) -> [Int32] {
        var own: Int32?
        guard let names = names(in: path, reading: { own = $0 }) else {
            throw CensusError(path: path, code: errno)
        }
        return names.compactMap { Int32($0) }.filter { path.hasSuffix("/task") || $0 != own }
    }

    /// Everything there was, in order.
    public var resources: [Resource] {
        threads.sorted { $0.key < $1.key }.map { .thread(id: $0.key, name: $0.value) }
            + files.sorted { $0.key < $1.key }.map { .file(descriptor: $0.key, target: $0.value) }
            + instances.filter { $0.value != 0 }.map { .instances(of: $0.counter.name, count: $0.value) }
    }

    /// The resources of a later time that were not here.
    ///
    /// A thread is known by its number, which the kernel gives out again only after many others; a file by
    /// its descriptor and what that refers to.
    public func leftovers(in later: Census) -> [Resource] {
        later.resources.compactMap { resource in
            switch resource {
            case .thread(let id, _): return threads[id] == nil ? resource : nil
            case .file(let descriptor, let target): return files[descriptor] == target ? nil : resource
            case .instances: return nil
            }
        }
            + later.instances.compactMap { counter, value in
                let before = instances.first { $0.counter === counter }?.value ?? 0
                return value > before ? .instances(of: counter.name, count: value - before) : nil
            }
    }

    /// The resources of now that were not here, after those that are about to go have gone.
    ///
    /// A thread that was joined is in `/proc` for a moment more: the kernel wakes who joins it on the thread's
    /// way out, not at its end, and tells nobody of the end. So while something is left the census is taken
    /// again, with `sched_yield` in between, which gives the CPU to a thread on its way out; after a hundred
    /// rounds with a millisecond's sleep, so that what is really left does not cost a CPU until the limit.
    ///
    /// - Parameters:
    ///   - limit: for how long what is left may still go.
    ///   - isExpected: what may be left.
    /// - Returns: nothing as soon as nothing is left, else what is left at the limit.
    public func leftovers(
        within limit: Duration = .seconds(2), except isExpected: (Resource) -> Bool = { _ in false }
    ) throws(CensusError) -> [Resource] {
        let end = ContinuousClock.now + limit
        var rounds = 0
        while true {
            let left = leftovers(in: try Census()).filter { !isExpected($0) }
            if left.isEmpty || ContinuousClock.now >= end { return left }
            rounds += 1
            if rounds <= 100 { sched_yield() } else { usleep(1_000) }
        }
    }
}
