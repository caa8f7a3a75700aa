// COOperation.swift - a leaf: one block, ended by a call or by returning.

internal import CompositeOperationsBasics
public import Runs
internal import Scheduling

/// One block of work with one explicit end, and a handle to it.
///
/// ```swift
/// let download = operation(returning: Data.self) { attempt in
///     session.load(url) { data, error in
///         if let data { attempt.finish(data) } else { attempt.fail(error!) }
///     }
/// }
/// let data = try await download.value
/// ```
///
/// A token block (``Block``) receives its attempt. It ends the operation by a call on the attempt, or by throwing;
/// returning ends nothing. The forms of `operation` whose block returns a value end when the block returns.
///
/// - SeeAlso: seed 004, COOperation.
public class COOperation<Success: Sendable>: OperationHandle<Success>, @unchecked Sendable {
    /// A block that ends its operation by a call on its attempt. Throwing is the same as ``Attempt/fail(_:)``, or, with
    /// a `CancellationError` or a ``CancelReason``, as ``Attempt/cancel(_:)``.
    public typealias Block = @Sendable (Attempt) throws -> Void

    /// A block, as it is passed into an operation or out of it.
    @usableFromInline
    enum Body {
        case none
        case token(Block)
        /// A non-escaping block, borrowed from a blocked caller. Never copied out.
        case lent(Block)
        case value(@Sendable () throws -> Success)
        case async(@Sendable () async throws -> Success)
    }

    /// The block; `blockKind` identifies its type.
    @exclusivity(unchecked) final var block = AnyClosure()

    private struct TokenBlock { let call: Block }
    private struct ValueBlock { let call: @Sendable () throws -> Success }
    private struct AsyncBlock { let call: @Sendable () async throws -> Success }

    @usableFromInline
    init(
        body: consuming Body, on target: (any ExecutionTarget)?, options: OperationOptions?,
        within composite: AnyOperation? = nil,
        admission queue: COOperationQueue? = nil
    ) {
        let (kind, block) = Self.parts(body)
        self.block = consume block
        super.init(on: target, options: options, composition: nil, within: composite, admission: queue)
        blockKind = kind
        if blockKind != .none { _ = setContext(.here(options)) }
    }

    /// A child that needs nothing but its block: see `AnyOperation.init(_:plainChildOf:)`.
    @usableFromInline
    convenience init(_ body: consuming Body, plainChildOf composite: __shared AnyOperation) {
        let (kind, block) = Self.parts(body)
        self.init(kind, block, plainChildOf: composite)
    }

    /// Like ``init(_:plainChildOf:)``.
    @inline(__always)
    init(_ kind: BlockKind, _ block: consuming AnyClosure, plainChildOf composite: __shared AnyOperation) {
        self.block = consume block
        super.init(kind, plainChildOf: composite)
    }

    override init(endedIn tree: Domain) { super.init(endedIn: tree) }

    /// A kept block may hold the operation whose value it takes, which may hold a kept block in turn.
    deinit {
        if blockKind == .none { return }
        let block = block
        self.block = AnyClosure()
        Releases.release([consume block])
    }

    /// Creates a child.
    @inlinable
    @inline(__always)
    static func child(
        _ body: Body, of composite: AnyOperation, on target: (any ExecutionTarget)?, options: OperationOptions
    ) -> COOperation<Success> {
        if target == nil, options.isStandard, !composite.givesItsPlace {
            return COOperation(body, plainChildOf: composite)
        }
        return COOperation(body: body, on: target, options: options, within: composite, admission: nil)
    }

    /// Prepares an operation; ``AnyOperation/start()`` starts it.
    ///
    /// - Parameters:
    ///   - target: where the block runs; nil: the default queue in force at this call.
    ///   - options: a name, time limits, a resolver.
    ///   - block: may also be set later.
    public convenience init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard, _ block: Block? = nil
    ) {
        self.init(body: block.map { .token($0) } ?? .none, on: target, options: options)
    }

    /// Prepares an operation whose block ends it by returning the value. Throwing fails the operation, or cancels it,
    /// as in a ``Block``.
    public convenience init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ body: @escaping @Sendable () throws -> Success
    ) {
        self.init(body: .value(body), on: target, options: options)
    }

    /// Prepares an operation with an asynchronous block: one task, cancelled with the operation.
    public convenience init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ body: @escaping @Sendable () async throws -> Success
    ) {
        self.init(body: .async(body), on: target, options: options)
    }

    @usableFromInline
    override final var hasBlock: Bool { blockKind != .none }
    override final var kindName: String { self is COSyncOperation<Success> ? "sync operation" : "operation" }

    // MARK: Block

    @inline(__always)
    private static func parts(_ body: consuming Body) -> (BlockKind, AnyClosure) {
        switch body {
        case .none: (.none, AnyClosure())
        case .token(let call): (.token, AnyClosure(TokenBlock(call: call)))
        case .lent(let call): (.lent, AnyClosure(TokenBlock(call: call)))
        case .value(let call): (.value, AnyClosure(ValueBlock(call: call)))
        case .async(let call): (.async, AnyClosure(AsyncBlock(call: call)))
        }
    }

    /// The block, except that of a step. Under the lock, or while no other thread may access it (I3).
    final var body: Body {
        get {
            switch blockKind {
            case .none, .step: .none
            case .token: .token(block.typed(TokenBlock.self).call)
            case .lent: .lent(block.typed(TokenBlock.self).call)
            case .value: .value(block.typed(ValueBlock.self).call)
            case .async: .async(block.typed(AsyncBlock.self).call)
            }
        }
        set { (blockKind, block) = Self.parts(newValue) }
    }

    @usableFromInline
    override func releaseBlock() {
        if keepsBlock { return }
        body = .none
    }

    /// The block. Set it while the operation is ready; then `start()`. Later changes are refused.
    public final var operation: Block? {
        get {
            look {
                if !machine.isTerminal, case .token(let block) = body { return block }
                return nil
            }
        }
        set {
            let context = contextHere
            let former = change { effects -> [Any] in
                guard machine.phase == .ready else {
                    _ = refuse("a change of the block of an operation that is not ready", &effects)
                    return []
                }
                defer { body = newValue.map { .token($0) } ?? .none }
                return takeBlock() + [setContext(context) as Any]
            }
            withExtendedLifetime(former) {}
        }
    }

    override final func makeCopy() -> AnyOperation {
        let body = look { () -> Body in
            if machine.isTerminal, extras?.options?.keepsBlock != true { return .none }
            return blockKind == .lent ? .none : bodyForCopy
        }
        let copy = makeBlank(body)
        copyExtras(to: copy)
        return copy
    }

    /// Under the lock.
    @usableFromInline
    var bodyForCopy: Body { body }

    /// Takes the block out, for the caller to release under no lock. Under the lock; the operation is ready.
    @usableFromInline
    func takeBlock() -> [Any] {
        defer { body = .none }
        return [body]
    }

    /// An operation of the same class and target.
    func makeBlank(_ body: Body) -> COOperation<Success> {
        let copy = COOperation(body: .none, on: nil, options: nil)
        copy.body = body
        copyPlace(to: copy)
        return copy
    }

    // MARK: Run

    @usableFromInline
    override func execute(_ number: Int32) {
        // Read without the lock: a block is in flight (I3).
        switch blockKind {
        case .none, .step: returned()
        case .token, .lent:
            do {
                try block.typed(TokenBlock.self).call(Attempt(operation: self, generation: number))
                returned()
            } catch {
                threw(error, number)
            }
        case .value:
            do {
                finishByReturn(try block.typed(ValueBlock.self).call(), number)
            } catch {
                threw(error, number)
            }
        case .async: executeAsync(number, block.typed(AsyncBlock.self).call)
        }
    }

    /// Its block has returned a value, which finishes the operation unless it has ended meanwhile.
    final func finishByReturn(_ value: Success, _ number: Int32) {
        var effects = Effects()
        let bits = lock()
        if leaveFinished(number, &effects, { store(value) }) {
            let (queue, ticket) = (admissionReference, ticket)
            unlock(bits)
            effects.perform()
            if let queue, let ticket {  // both held by its place until `releaseHoldings()` below
                queue._withUnsafeGuaranteedRef { $0.hasFinished(ticket) }
            }
            releaseHoldings()
            return
        }
        if canEnd(number) {
            store(value)
            end(.finished, nil, number: number, &effects)
        }
        left(&effects)
        unlock(bits)
        effects.perform()
    }

    private final func executeAsync(_ number: Int32, _ block: @escaping @Sendable () async throws -> Success)
    {
        let executor = target == nil ? Scheduler.shared : target as? any TaskExecutor
        // On the built-in scheduler, the priority of this turn.
        let priority = target == nil ? Scheduler.currentPriority : self.priority
        let task = Task(executorPreference: executor, priority: priority.ofTasks) {
            do {
                self.finishByReturn(try await block(), number)
            } catch {
                self.threw(error, number)
            }
        }
        let isOver = change { effects in
            if !machine.isOut { return false }  // it has returned already
            // The attempt ended before its task was stored. The block in flight may be that of the next attempt, which
            // has its own task.
            if machine.isDecided || machine.attempt != number { return true }
            let extras = ensureExtras()
            extras.task = (number, task)
            extras.isTaskCancelled = false
            // Raised meanwhile.
            if currentPriority > priority { effects.add(.escalate(task, currentPriority)) }
            return false
        }
        if isOver { task.cancel() }
    }

    // MARK: End

    /// Starts it with a block, and with closures for its end.
    ///
    /// - Parameters:
    ///   - completion: called once it has finished.
    ///   - cancellation: called once it has been cancelled; without `failure`, also once it has failed.
    ///   - failure: called once it has failed.
    /// - Returns: false, with no effect, when it is not ready.
    @discardableResult
    public final func run(
        _ block: @escaping Block, completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable () -> Void)? = nil, failure: (@Sendable (any Error) -> Void)? = nil
    ) -> Bool {
        // In a copy, this replaces a block and closures. The former ones are released after the lock.
        var former: [Any] = []
        let context = contextHere
        let hasStarted = start {
            former = takeBlock()
            if let context = setContext(context) { former.append(context) }
            body = .token(block)
            former += set(completion: completion, cancellation: cancellation, failure: failure)
        }
        withExtendedLifetime(former) {}
        return hasStarted
    }

    /// Starts it with the block that `prepare` sets.
    func start(with prepare: () -> Void) -> Bool { startIfReady(bringsBlock: true, prepare) }

    /// Finishes it, whatever its current attempt: before its start, or while it runs, is suspended, awaits a decision
    /// or pauses.
    ///
    /// - Returns: false, with no effect, when its outcome is decided already.
    @discardableResult
    public final func finish(_ value: Success) -> Bool { finish(value, number: nil) }

    /// Fails it, whatever its current attempt. Its resolver, if it has one, may redo it.
    ///
    /// - Returns: as ``finish(_:)``.
    @discardableResult
    public final func fail(_ error: any Error) -> Bool { fail(error, number: nil) }

    @inline(__always)
    final func finish(_ value: Success, number: Int32?) -> Bool {
        change { effects in
            guard canEnd(number) else { return refuseEnd("finish()", number, &effects) }
            store(value)
            return end(.finished, nil, number: number, &effects)
        }
    }

    final func fail(_ error: any Error, number: Int32?) -> Bool {
        change { effects in
            fail(error, number: number, &effects) || refuseEnd("fail()", number, &effects)
        }
    }

    /// One attempt at the work, passed to the block. Its members affect this attempt only: once the operation has moved
    /// on to another attempt, they do nothing and return false.
    public struct Attempt: Sendable {
        /// The operation.
        public let operation: COOperation<Success>
        let generation: Int32

        /// The number of the attempt, starting with 1.
        public var number: Int { Int(generation) }

        /// Whether this is the operation's current attempt, and its outcome is not decided.
        public var isCurrent: Bool {
            operation.look { operation.machine.attempt == generation && !operation.machine.isDecided }
        }

        /// Whether the block should stop: the operation has been cancelled, or has moved on to another attempt.
        public var isCancelled: Bool {
            operation.look {
                operation.machine.attempt != generation
                    || (operation.machine.isDecided && operation.machine.end == .cancelled)
            }
        }

        /// Whether the operation's gate, or one above it, is closed.
        public var isSuspended: Bool { operation.isGated }

        /// Finishes the operation.
        @discardableResult
        public func finish(_ value: Success) -> Bool { operation.finish(value, number: generation) }

        /// Fails the operation.
        @discardableResult
        public func fail(_ error: any Error) -> Bool { operation.fail(error, number: generation) }

        /// Cancels the operation.
        @discardableResult
        public func cancel(_ reason: CancelReason? = nil) -> Bool {
            operation.cancel(reason, number: generation)
        }

        /// Closes the operation's gate.
        @discardableResult
        public func suspend() -> Bool { operation.suspend(number: generation) }

        /// Opens the operation's gate.
        @discardableResult
        public func resume() -> Bool { operation.resume(.continue, number: generation) }

        /// Reruns the operation after this attempt's block has returned, and after a pause.
        @discardableResult
        public func rerun(after pause: Duration = .zero) -> Bool {
            operation.rerun(after: pause, number: generation)
        }

        /// Lets a resolver decide.
        @discardableResult
        public func resolve(using resolver: COOperationResolver) -> Bool {
            operation.resolve(using: resolver, number: generation)
        }

        /// Calls `handler`, like a handler of the operation, when the attempt is cancelled, even if it already is. An
        /// attempt is also cancelled when its time limit expires, and when it is redone at the request of other code.
        public func onCancel(_ handler: @escaping @Sendable (CancelReason) -> Void) {
            operation.addCancelHandler(generation, handler)
        }

        /// Waits until neither the operation's gate nor one above it is closed.
        ///
        /// - Throws: a ``CancelReason`` when the attempt, or the waiting task, is cancelled first.
        public func resumed() async throws(CancelReason) { try await operation.awaitGate(generation) }
    }
}

extension COOperation where Success == Void {
    /// Finishes it; see ``finish(_:)``.
    @discardableResult
    public final func finish() -> Bool { finish((), number: nil) }
}

extension COOperation.Attempt where Success == Void {
    /// Finishes the operation.
    @discardableResult
    public func finish() -> Bool { finish(()) }
}

extension AnyOperation {
    final func addCancelHandler(_ number: Int32, _ handler: @escaping @Sendable (CancelReason) -> Void) {
        let context = contextHere
        let handler = if let context { context.binding(handler) } else { handler }
        change { effects in
            guard machine.attempt == number else {
                guard let (givenUp, why) = extras?.givenUp, givenUp == number else { return }
                return post(&effects, bound: .ofEnd { handler(CancelReason(why)) })
            }
            if let reason = badEnd?.reason, machine.isDecided {
                post(&effects, bound: .ofEnd { handler(reason) })
            } else if !machine.isDecided {
                ensureExtras().onCancel.append(handler)
            }
        }
    }

    final func awaitGate(_ number: Int32) async throws(CancelReason) {
        while true {
            if let reason = look({ reasonToStop(number) }) { throw reason }
            if look({ gateIsOpen }) { return }
            let wakening = await Waiter.wait { waiter in
                look {
                    if reasonToStop(number) != nil || gateIsOpen { return .isOver }
                    return ensureExtras().gateWaiters.append(waiter)
                }
            } orCancelledBy: { [self] waiter in
                look { extras?.gateWaiters.remove(waiter) ?? false }
            }
            if wakening == .cancelled, look({ !gateIsOpen && reasonToStop(number) == nil }) {
                throw CancelReason(.taskCancelled)
            }
        }
    }

    /// Under the lock.
    private final func reasonToStop(_ number: Int32) -> CancelReason? {
        if machine.attempt != number { return CancelReason() }
        guard machine.isDecided else { return nil }
        return badEnd?.reason ?? CancelReason()
    }
}
