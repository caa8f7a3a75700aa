// Tenant.swift - a party on whose behalf bodies run: makes requests to the gate, waits, runs.

internal import CompositeOperationsBasics
internal import Scheduling

/// A party that shares a gate: a customer, a kind of request, a job queue.
///
/// ```swift
/// let digest = try await paying.run { sha256(of: file) }
/// try free.submit { reindex() }
/// ```
///
/// Its requests begin in the order in which they were made. All members may be used from any thread.
public final class Tenant: Sendable {
    /// The policy for a request that arrives when as many wait as the limit allows.
    public enum WhenFull: Hashable, Sendable, CaseIterable {
        /// The request is refused, as ``Refusal/Reason/full``.
        case refuse
        /// The oldest waiting request is refused, as ``Refusal/Reason/dropped``, and the new one waits. For requests that lose
        /// value with age.
        case dropOldest
        /// The calling task is suspended until its turn, however many requests wait. This slows the caller down without blocking
        /// a thread. A submission without a waiting task is refused.
        case wait
    }

    /// The gate.
    public let gate: AdmissionGate
    /// For figures, errors and dumps.
    public let name: String
    let number: Int
    private let instance = Instance(.tenants)

    init(_ gate: AdmissionGate, _ name: String, _ number: Int) {
        self.gate = gate
        self.name = name
        self.number = number
    }

    // Each unfinished request retains its tenant, so none is left now.
    deinit { gate.section { $0.removeTenant(number) } }

    static func demandWeight(_ weight: Int) {
        demand(
            1...FairOrder.most ~= weight,
            "Tenant: the weight is \(weight), and must be between 1 and \(FairOrder.most)")
    }

    static func demandLimit(_ limit: Int?) {
        demand(limit ?? 0 >= 0, "Tenant: the limit is \(limit ?? 0), and must not be negative")
    }

    private static func demandCost(_ cost: Int) {
        demand(
            1...FairOrder.most ~= cost,
            "Tenant: the cost is \(cost), and must be between 1 and \(FairOrder.most)")
    }

    /// Its share, relative to the other tenants. A change takes effect from the next turn on.
    public var weight: Int {
        get { gate.section { $0[number].figures.weight } }
        set {
            Self.demandWeight(newValue)
            gate.section { $0.setWeight(newValue, of: number) }
        }
    }

    /// How many requests may wait; nil: any number. Requests that already wait are kept.
    public var limit: Int? {
        get { gate.section { $0[number].limit } }
        set {
            Self.demandLimit(newValue)
            gate.section { $0[number].limit = newValue }
        }
    }

    /// The counts of its requests and of their outcomes.
    public var figures: TenantFigures { gate.section { $0[number].figures } }

    // MARK: Running

    /// Runs a closure on a worker when its turn has come, and returns its value.
    ///
    /// The calling task is suspended meanwhile, and no thread is blocked. A task that is cancelled while it waits leaves the line
    /// at once.
    ///
    /// - Parameters:
    ///   - deadline: when it has to have begun; a request that would begin later is refused at once. Nil: it may wait forever.
    ///   - cost: how many turns it counts as.
    ///   - body: called once, or not at all.
    /// - Throws: ``Refusal``; `CancellationError`; what `body` throws. In the first two cases `body` was not called, unless it
    ///   threw the error itself.
    /// - Precondition: the cost is between 1 and 1,048,576.
    /// - Complexity: O(log n) in the waiting tenants, under a lock; no user code runs under it.
    public nonisolated(nonsending) func run<Value>(
        startingBy deadline: ContinuousClock.Instant? = nil, cost: Int = 1,
        _ body: sending @escaping () throws -> sending Value
    ) async throws -> sending Value {
        let turn = try await turn(deadline, cost)
        nonisolated(unsafe) let body = body
        return try await turn.hold {
            try await gate.scheduler.run {
                turn.isCalled = true
                return try body()
            }
        }
    }

    /// Runs an asynchronous closure with the gate's scheduler as its executor when its turn has come, and returns its value.
    ///
    /// The closure holds its slot until it returns, even while it is suspended. Otherwise like the `run` of a synchronous
    /// closure.
    public nonisolated(nonsending) func run<Value>(
        startingBy deadline: ContinuousClock.Instant? = nil, cost: Int = 1,
        _ body: sending @escaping @concurrent () async throws -> sending Value
    ) async throws -> sending Value {
        let turn = try await turn(deadline, cost)
        nonisolated(unsafe) let body = body
        return try await turn.hold {
            try await gate.scheduler.run { @concurrent () async throws -> sending Value in
                turn.isCalled = true
                return try await body()
            }
        }
    }

    /// Submits a closure, to run on a worker when its turn has come. Does not block.
    ///
    /// - Parameters:
    ///   - deadline: when it has to have begun; a request that would begin later is refused at once. Nil: it may wait forever.
    ///   - cost: how many turns it counts as.
    ///   - body: called once, or not at all.
    ///   - orElse: called when the request is refused after this call has returned: it was dropped, its deadline passed, or the
    ///     gate was closed. Called on a worker or, if the scheduler is shut down, on the thread that detects this.
    /// - Throws: ``Refusal``, if the request is refused now; neither closure is then called.
    /// - Precondition: the cost is between 1 and 1,048,576.
    /// - Complexity: as that of `run`.
    public func submit(
        startingBy deadline: ContinuousClock.Instant? = nil, cost: Int = 1,
        _ body: @escaping @Sendable () -> Void, orElse: (@Sendable (Refusal) -> Void)? = nil
    ) throws(Refusal) {
        Self.demandCost(cost)
        let body = gate.scheduler.bound(body)
        let request = Request(
            self, cost: cost, deadline_ns: AdmissionGate.monotonic_ns(deadline),
            means: .call(body: body, orElse: orElse))
        switch gate.ask(request, canWait: true) {
        case .begins:
            guard request.begin() else {
                request.forget()
                gate.undo(request, .closed)
                throw Refusal(.closed, tenant: name)
            }
        case .waits: break
        case .refused(let refusal):
            request.forget()
            throw refusal
        case .wouldWait: fatalError("Tenant.submit: the gate refused to let a request wait that can wait")
        }
    }

    /// Suspends the task until its turn.
    private nonisolated(nonsending) func turn(
        _ deadline: ContinuousClock.Instant?, _ cost: Int
    ) async throws -> Request {
        Self.demandCost(cost)
        try Task.checkCancellation()
        let gate = gate
        let request = Request(self, cost: cost, deadline_ns: AdmissionGate.monotonic_ns(deadline))
        var verdict = gate.ask(request, canWait: false)
        if case .wouldWait = verdict {
            let wakening = await Waiter.wait { waiter in
                request.willWake(waiter)
                let (asked, isCancelled) = gate.section { state in
                    // Checked in the section: after it, the cancellation handler finds the request in its line.
                    if Task.isCancelled { return (GateState.Verdict.wouldWait, true) }
                    return (state.ask(request, now_ns: request.asked_ns, canWait: true), false)
                }
                if isCancelled { return .isCancelled }
                verdict = asked
                gate.settle(asked, of: request)
                if case .waits = asked { return .waits }
                request.forget()
                return .isOver
            } orCancelledBy: { _ in
                gate.withdraw(request, nil)
            }
            if case .cancelled = wakening {
                request.forget()
                throw CancellationError()
            }
        }
        if case .refused(let refusal) = verdict {
            request.forget()
            throw refusal
        }
        if let refusal = request.refusal { throw refusal }
        return request
    }
}

extension Request {
    /// Holds the slot while `body` runs, and returns it.
    fileprivate nonisolated(nonsending) func hold<Value>(
        _ body: nonisolated(nonsending) () async throws -> sending Value
    ) async throws -> sending Value {
        do {
            let value = try await body()
            gate.end(self)
            return value
        } catch {
            if isCalled {
                gate.end(self)
                throw error
            }
            let isCancelled = error is CancellationError
            gate.undo(self, isCancelled ? nil : .closed)
            throw isCancelled ? error : Refusal(.closed, tenant: name)
        }
    }
}
