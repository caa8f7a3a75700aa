// The context of operations: task-local values that are inherited, or not.

import PropertyTesting
import Scheduling
import Testing

private enum Trace {
    @TaskLocal static var id: Int?
    @TaskLocal static var name = "none"
}

/// Values that operations saw, on any thread.
private final class Seen: Sendable {
    private let ids = Locked<[Int?]>([])
    func add(_ id: Int?) { ids.withLock { $0.append(id) } }
    var all: [Int?] { ids.withLock(\.self) }
    /// The number of times each value was seen.
    var counts: [Int?: Int] { Dictionary(grouping: all, by: \.self).mapValues(\.count) }
}

/// Reports its release.
private final class Released: Sendable {
    private let releases: Seen
    init(_ releases: Seen) { self.releases = releases }
    deinit { releases.add(nil) }
}

/// Submits in every way that synchronous code has; nil leaves the context unspecified.
private func submitEverything(
    to scheduler: Scheduler, context: Scheduler.Context?, seen: Seen
) throws {
    let counter = try CompletionCounter()
    let lane = try SerialLane(on: scheduler)
    let body: @Sendable () -> Void = { seen.add(Trace.id) }
    if let context {
        try scheduler.submit(context: context, in: counter, body)
        try scheduler.submit(0..<1000, context: context, in: counter) { _ in seen.add(Trace.id) }
        try lane.submit(context: context, in: counter, body)
        try scheduler.forEach(0..<1000, context: context) { _ in seen.add(Trace.id) }
    } else {
        try scheduler.submit(in: counter, body)
        try scheduler.submit(0..<1000, in: counter) { _ in seen.add(Trace.id) }
        try lane.submit(in: counter, body)
        try scheduler.forEach(0..<1000) { _ in seen.add(Trace.id) }
    }
    counter.wait()
}

private let everything = 2002

@Suite struct ContextTests {
    @Test(arguments: [1, 4])
    func `inherited values were bound at submission, in a task`(workers: Int) async throws {
        let (scheduler, seen) = (try Scheduler(.init(workers: workers)), Seen())
        try Trace.$id.withValue(42) {
            try submitEverything(to: scheduler, context: .inherited, seen: seen)
        }
        #expect(seen.counts == [42: everything])
        try await scheduler.shutdown()
    }

    /// An operation without a context runs outside of tasks: its bindings belong to its thread.
    @Test func `inherited values were bound at submission, outside tasks`() async throws {
        let (scheduler, seen) = (try Scheduler(.init(workers: 2)), Seen())
        let outside = try Scheduler(.init(workers: 1))
        let counter = try CompletionCounter()
        try outside.submit(in: counter) {
            #expect(withUnsafeCurrentTask { $0 == nil })
            Trace.$id.withValue(42) {
                #expect(throws: Never.self) {
                    try submitEverything(to: scheduler, context: .inherited, seen: seen)
                }
            }
        }
        try await counter.wait()
        #expect(seen.counts == [42: everything])
        try await scheduler.shutdown()
        try await outside.shutdown()
    }

    @Test(arguments: [Scheduler.Context.empty, nil])
    func `no values inherit unasked`(context: Scheduler.Context?) async throws {
        // A separate scheduler: if the caller were one of its workers, a wait that helps would run
        // operations inside the bindings.
        let (scheduler, seen) = (try Scheduler(.init(workers: 2)), Seen())
        try Trace.$id.withValue(42) { try submitEverything(to: scheduler, context: context, seen: seen) }
        #expect(seen.counts == [nil: everything])
        try await scheduler.shutdown()
    }

    @Test func `a scheduler's context is the default of its operations`() async throws {
        let (scheduler, silent, asked) = (
            try Scheduler(.init(workers: 2, context: .inherited)), Seen(), Seen()
        )
        try Trace.$id.withValue(42) {
            try submitEverything(to: scheduler, context: nil, seen: silent)
            try submitEverything(to: scheduler, context: .empty, seen: asked)
        }
        #expect(silent.counts == [42: everything])
        #expect(asked.counts == [nil: everything])
        let counter = try CompletionCounter()
        try Trace.$id.withValue(7) {
            let body: @Sendable () -> Void = { silent.add(Trace.id) }
            try scheduler.submit(contentsOf: [body, body], in: counter)
        }
        try await counter.wait()
        #expect(silent.counts == [42: everything, 7: 2])
        try await Trace.$id.withValue(8) {
            try await scheduler.forEach(0..<10) { _ in silent.add(Trace.id) }
        }
        #expect(silent.counts == [42: everything, 7: 2, 8: 10])
        try await scheduler.shutdown()
    }

    @Test func `all values are inherited, each operation has its own`() async throws {
        let scheduler = try Scheduler(.init(workers: 2))
        let (counter, wrong) = (try CompletionCounter(), Seen())
        for id in 0..<1000 {
            try Trace.$id.withValue(id) {
                try Trace.$name.withValue("\(id)") {
                    try scheduler.submit(context: .inherited, in: counter) {
                        if Trace.id != id || Trace.name != "\(id)" { wrong.add(id) }
                        Trace.$id.withValue(-1) { if Trace.id != -1 { wrong.add(id) } }
                        if Trace.id != id { wrong.add(id) }
                    }
                }
            }
        }
        try await counter.wait()
        #expect(wrong.all.isEmpty)
        try await scheduler.shutdown()
    }

    @Test func `an operation in a context submits another one in the same`() async throws {
        let (scheduler, seen) = (try Scheduler(.init(workers: 2)), Seen())
        let counter = try CompletionCounter()
        try Trace.$id.withValue(42) {
            try scheduler.submit(context: .inherited, in: counter) {
                #expect(throws: Never.self) {
                    try scheduler.submit(context: .inherited, in: counter) { seen.add(Trace.id) }
                }
            }
        }
        try await counter.wait()
        #expect(seen.counts == [42: 1])
        try await scheduler.shutdown()
    }

    @Test func `an empty range calls nothing, and a range of one calls once`() async throws {
        let (scheduler, seen) = (try Scheduler(.init(workers: 4)), Seen())
        try await scheduler.forEach(0..<0, context: .inherited) { seen.add($0) }
        #expect(seen.all.isEmpty)
        try await scheduler.forEach(-1..<0, context: .inherited) { seen.add($0) }
        #expect(seen.all == [-1])
        try await scheduler.forEach(5..<1234, context: .inherited) { seen.add($0) }
        #expect(seen.all.compactMap(\.self).sorted() == [-1] + Array(5..<1234))
        try await scheduler.shutdown()
    }

    @Test func `a cancelled operation is released without being called`() async throws {
        let (scheduler, seen, releases) = (try Scheduler(.init(workers: 1)), Seen(), Seen())
        let lane = try SerialLane(on: scheduler)
        scheduler.suspend()
        try submitTokens(to: scheduler, and: lane, seen: seen, releases: releases)
        #expect(releases.all.isEmpty)
        try await scheduler.shutdown(.cancelPending)
        #expect(seen.all.isEmpty)
        #expect(releases.all.count == 2)
    }

    @Test func `a refused operation is released without being called`() async throws {
        let (scheduler, seen, releases) = (try Scheduler(.init(workers: 1)), Seen(), Seen())
        let lane = try SerialLane(on: scheduler)
        try await scheduler.shutdown()
        #expect(throws: SchedulerError.self) {
            try submitTokens(to: scheduler, and: lane, seen: seen, releases: releases)
        }
        #expect(throws: SchedulerError.self) {
            try scheduler.forEach(0..<10, context: .inherited) { seen.add($0) }
        }
        #expect(seen.all.isEmpty)
        #expect(releases.all.count == 2)
    }

    private func submitTokens(
        to scheduler: Scheduler, and lane: SerialLane, seen: Seen, releases: Seen
    ) throws {
        let (first, second) = (Released(releases), Released(releases))
        try scheduler.submit(context: .inherited) { withExtendedLifetime(first) { seen.add(1) } }
        try lane.submit(context: .inherited) { withExtendedLifetime(second) { seen.add(2) } }
    }
}
