// TracedBody.swift - runs that have spans, while a tracer is installed (RunTrace.swift).
//
// A run in an invoker has a span from its submission to its end; any other run, while it executes. A run called inside a run
// with a span, and a member of a run of several commands, have no span: each is an event of the outer span.

internal import CInspection
@_spi(Faces) internal import Runs

/// The work of a run, as a part of its trace.
final class TracedBody<Output: Sendable>: TransactionBody<Output>, @unchecked Sendable {
    // Unchecked, as its superclass is: it adds only constants.
    private let body: TransactionBody<Output>
    private let trace: RunTrace

    init(_ body: TransactionBody<Output>, _ trace: RunTrace) {
        (self.body, self.trace) = (body, trace)
        super.init(body.options)
    }

    override var isSynchronous: Bool { body.isSynchronous }
    override var nameOfCommand: String? { body.nameOfCommand }
    override var tellsFailures: Bool { body.tellsFailures }
    override func traced(in trace: RunTrace) -> AnyBody { self }

    override func runSynchronously(_ context: CommandContext) throws -> Output {
        var result: Result<Output, any Error>?
        trace.bind { result = Result { try body.runSynchronously(context) } }
        return try result!.get()  // set, since `bind` has called the closure
    }

    override func run(_ context: CommandContext) async throws -> Output {
        try await trace.bind { [body] in try await body.run(context) }
    }

    override var undoability: Undoability? { body.undoability }
    override func undo(_ context: CommandContext) async throws { try await body.undo(context) }
    override func undoNow(_ context: CommandContext) throws { try body.undoNow(context) }
    override var isRolledBack: Bool { body.isRolledBack }
    override func renewed() -> TransactionBody<Output> { body.renewed() }
}

extension CommandRun {
    /// The work for a lane, with a span that ends with the run. Call under no lock.
    final func tracing(_ body: AnyBody) -> AnyBody {
        guard locked({ $0.machine.state == .ready }),
            let trace = RunTrace.begin(
                .command, body.nameOfCommand ?? "transaction", number: transaction.number)
        else { return body }
        whenEnded(isSpan: true) { bad in
            trace.end(bad)
            return []
        }
        return body.traced(in: trace)
    }
}

extension CommandHandle {
    /// Traces a run that does not go through a lane, as a span or as an event of the enclosing run. Call under no lock.
    ///
    /// - Parameter perform: runs the body.
    func tracing(
        _ body: TransactionBody<Output>, _ perform: (TransactionBody<Output>) throws -> Output
    ) throws -> Output {
        let name = body.nameOfCommand ?? "transaction"
        let (trace, outer) = traces(name)
        let traced = trace.map { TracedBody(body, $0) } ?? body
        let result = Result { try perform(traced) }
        note(result, name, trace, outer)
        return try result.get()
    }

    /// As the overload for work that does not await.
    func tracing(
        _ body: TransactionBody<Output>, _ perform: (TransactionBody<Output>) async throws -> Output
    ) async throws -> Output {
        let name = body.nameOfCommand ?? "transaction"
        let (trace, outer) = traces(name)
        let traced = trace.map { TracedBody(body, $0) } ?? body
        let result = await Result<Output, any Error>.catching { try await perform(traced) }
        note(result, name, trace, outer)
        return try result.get()
    }

    private func traces(_ name: String) -> (own: RunTrace?, outer: RunTrace?) {
        if let outer = RunTrace.current, outer.takesCommands { return (nil, outer) }
        return (RunTrace.begin(.command, name, number: transaction.number), nil)
    }

    private func note(
        _ result: Result<Output, any Error>, _ name: String, _ trace: RunTrace?, _ outer: RunTrace?
    ) {
        var bad: Outcome<Never>?
        if case .failure(let error) = result { bad = .failed(error) }
        if let latched = self.result?.badEnd, bad != nil { bad = latched }
        trace?.end(bad)
        outer?.add(RunTrace.Event(name: name, number: transaction.number, end: RunTrace.End(bad)))
    }
}

extension TransactionOptions {
    /// ``observer``; while a tracer is installed, it also records the run's members as events of the innermost run with a span.
    var tracedObserver: (@Sendable (TransactionEvent) -> Void)? {
        guard inspection_traces(), let trace = RunTrace.current, trace.takesCommands else { return observer }
        return { [observer] event in
            switch event {
            case .finished(let member):
                trace.add(RunTrace.Event(name: "member", number: UInt64(member), end: .finished))
            case .failed(let member, _):
                trace.add(RunTrace.Event(name: "member", number: UInt64(member), end: .failed))
            default: break
            }
            observer?(event)
        }
    }
}
