// Trial.swift - a case of a law: an instance, a load, and the means by which a law asks.

import Glibc
import PropertyTesting

/// A law does not hold.
struct Violation: Error {
    let reason: String
    /// Whether something had not come when its time was over.
    var isLate = false
}

/// A case of a law. The law's code runs on a thread of its own, which may block.
final class Trial: Sendable {
    let instance: Instance
    let load: Load
    /// For how long something may take that has to come.
    let limit: Duration
    let tracer: Tracer
    private let last = Locked<[Instance.Body]>([])

    init(_ instance: Instance, _ load: Load, limit: Duration, isTraced: Bool) {
        self.instance = instance
        self.load = load
        self.limit = limit
        tracer = Tracer(isOn: isTraced)
    }

    // MARK: Demands

    func require(_ condition: Bool, _ reason: @autoclosure () -> String) throws {
        if !condition { throw Violation(reason: reason()) }
    }

    /// Waits until it is zero.
    func wait(for latch: Latch, _ what: String) throws {
        if latch.wait(timeout: limit) { return }
        throw Violation(
            reason: "\(what): \(latch.left) of \(latch.count) had not after \(limit)", isLate: true)
    }

    /// Calls something that blocks, on a thread of its own.
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

    // MARK: Deeds

    /// Has something done when the law has been asked, and nobody is in its way any more: to wait for what still goes on. The last
    /// one comes first.
    func atEnd(_ body: @escaping Instance.Body) { last.withLock { $0.append(body) } }
    func end() {
        // Each may hold the trial: none is kept.
        let all = last.withLock { last in
            defer { last = [] }
            return last
        }
        for body in all.reversed() { body() }
    }

    /// Submits a closure, which the trace shows by its number.
    ///
    /// - Parameter isAtOnce: whether it is called as soon as the submitted one begins, before that works.
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

    /// Has all threads submit what they have to.
    func fromAllThreads(_ body: @escaping @Sendable (_ number: Int) -> Void) {
        _ = concurrently(load.submitters) { [load, tracer] submitter in
            tracer.name("submitter \(submitter + 1)")
            for number in load.numbers(of: submitter) { body(number) }
        }
    }

    /// Submits the load, and waits until each has run.
    ///
    /// - Returns: how often each has.
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

    /// Waits until a few closures that are submitted now have run: what came before most likely has, too.
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

/// Runs a body on a thread of its own, and does not wait for it.
func start(_ body: @escaping @Sendable () -> Void) {
    pthread_detach(startThread(for: "a law", body))
}
