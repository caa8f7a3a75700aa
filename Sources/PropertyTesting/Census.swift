// Census: the resources of a process, to find leftovers of code that should leave nothing behind.

import Glibc

/// Something that a process holds until it releases it.
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
    /// The reason: the value of `errno`.
    public let code: Int32

    /// Creates the error.
    public init(path: String, code: Int32) {
        self.path = path
        self.code = code
    }

    /// A description in a sentence.
    public var description: String { "\(path) cannot be read: \(String(cString: strerror(code)))" }
}

/// The threads, the open files and the counted instances of the process at one time.
///
/// A census covers the process, not the test: it also counts things that other tests start meanwhile. So take
/// it in an exit test, which has a separate process, after an uncounted round that starts everything that is
/// meant to stay. Dispatch's pool, which runs Swift's tasks, starts and ends threads at will, and its threads
/// cannot be distinguished from others (a new thread has the name of its creator): when tasks run, use `except`
/// to exclude such threads.
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
        // Instances are counted last: by then the objects of a thread that has just ended are released.
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

    /// All resources of the census, in order.
    public var resources: [Resource] {
        threads.sorted { $0.key < $1.key }.map { .thread(id: $0.key, name: $0.value) }
            + files.sorted { $0.key < $1.key }.map { .file(descriptor: $0.key, target: $0.value) }
            + instances.filter { $0.value != 0 }.map { .instances(of: $0.counter.name, count: $0.value) }
    }

    /// The resources of a later census that are not in this one.
    ///
    /// A thread is identified by its number, which the kernel reuses only after many others; a file by its
    /// descriptor and the target of the descriptor.
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

    /// The current resources that are not in this census, after waiting for resources that are being released.
    ///
    /// A joined thread stays in `/proc` for a moment: the kernel wakes the joiner while the thread is exiting,
    /// and does not report the end of its exit. So while something is left, the census is repeated: for a
    /// hundred rounds with `sched_yield` in between, which gives the CPU to an exiting thread; then with a
    /// sleep of a millisecond, so a real leftover does not keep a CPU busy until the limit.
    ///
    /// - Parameters:
    ///   - limit: how long leftovers may still be released.
    ///   - isExpected: whether a resource may be left.
    /// - Returns: an empty array as soon as nothing is left; otherwise the leftovers at the limit.
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
