// Trial.swift - a case of a law: an instance, a load, and the helpers for a law's check.

import Glibc
import PropertyTesting

/// A law does not hold.
struct Violation: Error {
    let reason: String
    /// Whether something was missing when its time limit expired.
    var isLate = false
}

/// A case of a law. The law's code runs on a dedicated thread, which may block.
final class Trial: Sendable {
    let instance: Instance
    let load: Load
    /// The time limit for an event that must happen.
    let limit: Duration
    let tracer: Tracer
    private let last = Locked<[Instance.Body]>([])

    init(_ instance: Instance, _ load: Load, limit: Duration, isTraced: Bool) {
        self.instance = instance
        self.load = load
        self.limit = limit
        tracer = Tracer(isOn: isTraced)
    }

    // MARK: Requirements

    func require(_ condition: Bool, _ reason: @autoclosure () -> String) throws {
        if !condition { throw Violation(reason: reason()) }
    }

    /// Waits until the latch is zero.
    func wait(for latch: Latch, _ what: String) throws {
        if latch.wait(timeout: limit) { return }
        throw Violation(
            reason: "\(what): \(latch.left) of \(latch.count) had not after \(limit)", isLate: true)
    }

    /// Calls something that blocks, on a separate thread.
    func call(_ what: String, _ body: @escaping Instance.Body) throws {
        let latch = Latch(1)
        start {
            self.tracer.name("caller of \(what)")
            self.tracer.note("\(what)()")
            body()
            self.tracer.note("\(what) returns")
            latch.leave()
        }
        if latch.wait(timeout: limit) { return }
        throw Violation(reason: "\(what) had not returned after \(limit)", isLate: true)
    }

    // MARK: Actions

    /// Registers a body to run after the law was checked and the saboteur has ended, to wait for work in progress. The bodies run
    /// in reverse order.
    func atEnd(_ body: @escaping Instance.Body) { last.withLock { $0.append(body) } }
    func end() {
        // Each body may retain the trial, so none is kept.
        let all = last.withLock { last in
            defer { last = [] }
            return last
        }
        for body in all.reversed() { body() }
    }

    /// Submits a closure; the trace shows its number.
    ///
    /// - Parameter isAtOnce: whether `body` is called as soon as the submitted closure begins, before its work.
    func submit(_ number: Int, isAtOnce: Bool = false, _ body: @escaping @Sendable () -> Void = {}) {
        tracer.note("submit \(number)")
        instance.submit { [tracer, load] in
            tracer.note("\(number) begins")
            if isAtOnce { body() }
            load.spend(number)
            if !isAtOnce { body() }
            tracer.note("\(number) ends")
        }
    }

    /// Calls `body` with the number of each closure of the load, on the submitter threads.
    func fromAllThreads(_ body: @escaping @Sendable (_ number: Int) -> Void) {
        _ = concurrently(load.submitters) { [load, tracer] submitter in
            tracer.name("submitter \(submitter + 1)")
            for number in load.numbers(of: submitter) { body(number) }
        }
    }

    /// Submits the load, and waits until each closure has run.
    ///
    /// - Returns: how often each closure has run.
    @discardableResult
    func flood(_ body: @escaping @Sendable (Int) -> Void = { _ in }) throws -> Locked<[Int]> {
        let (runs, latch) = (Locked([Int](repeating: 0, count: load.total)), Latch(load.total))
        fromAllThreads { number in
            self.submit(number) {
                body(number)
                if runs.withLock({ runs in
                    runs[number] += 1
                    return runs[number] == 1
                }) {
                    latch.leave()
                }
            }
        }
        try wait(for: latch, "closures that were to run")
        return runs
    }

    /// Waits until a few closures that are submitted now have run; most likely the earlier ones have run too.
    func settle() throws {
        let latch = Latch(4)
        for _ in 0..<4 { instance.submit { latch.leave() } }
        try wait(for: latch, "closures that were to run")
    }
}

/// Counts down to zero, once.
final class Latch: Sendable {
    let count: Int
    private let state: Locked<Int>
    private let gate = Gate()

    init(_ count: Int) {
        self.count = count
        state = Locked(count)
        if count == 0 { gate.open() }
    }

    var left: Int { max(0, state.withLock { $0 }) }

    func leave() {
        let isZero = state.withLock { left in
            left -= 1
            return left == 0
        }
        if isZero { gate.open() }
    }

    func wait() { gate.wait() }
    func wait(timeout: Duration) -> Bool { gate.wait(timeout: timeout) }
}

/// Runs a body on a separate thread, and does not wait for it.
func start(_ body: @escaping @Sendable () -> Void) {
    pthread_detach(startThread(for: "a law", body))
}
