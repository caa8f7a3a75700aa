// CompositeOperation.swift - operations whose work is their children: cascades and transactional operations.

public import Runs
internal import Scheduling

/// An operation whose work is its children, which a registration block declares. It ends by itself once its children
/// have ended.
public class CompositeOperation<Success: Sendable>: OperationHandle<Success>, @unchecked Sendable {
    // Unchecked: as in `AnyOperation`. `results` is written under the lock; `registration` is accessed like the block
    // (I3).

    @exclusivity(unchecked) final var registration: Registration?
    /// Type-erased: its generic type would be instantiated at run time.
    @exclusivity(unchecked) private final var results = AnyClosure()

    init(
        _ order: ChildOrder, isCascade: Bool, registration: Registration?,
        on target: (any ExecutionTarget)?, options: OperationOptions?, within composite: AnyOperation?
    ) {
        self.registration = registration
        let composition = Composition(order, isCascade: isCascade)
        super.init(on: target, options: options, composition: composition, within: composite)
        composition.owner = .passUnretained(self)
        if registration != nil { _ = setContext(.here(options)) }
    }

    override final var hasBlock: Bool { registration != nil }
    override final func releaseBlock() {
        results = AnyClosure()
        if !keepsBlock { registration = nil }
    }

    // MARK: Registration

    override final func execute(_ number: Int32) {
        compositionReference?._withUnsafeGuaranteedRef { register(number, $0) }
    }

    @inline(__always)
    private final func register(_ number: Int32, _ composition: Composition) {
        let (epoch, isCurrent) = look { (composition.epoch, machine.attempt == number) }
        guard isCurrent, let registration else {
            return change { effects in left(&effects) }
        }
        composition.registrationBegins()
        var (made, thrown): (AnyClosure, (any Error)?) = (AnyClosure(), nil)
        do {
            made = AnyClosure(try registration.call(for: self, epoch, Success.self))
        } catch { thrown = error }
        composition.registrationEnds()
        // Not in the critical section's result: the type of that result would be instantiated at run time.
        var (steps, taken): (PlainChildren?, [PlainChildren]?) = (nil, nil)
        change { effects in
            // The composite may be in another attempt, which continues with the children of this block.
            if composition.epoch == epoch {
                composition.isRegistering = false
                if let thrown {
                    composition.hasThrown = true
                    composition.attemptEnded(Self.cause(of: thrown), of: self, &effects)
                } else {
                    swap(&results, &made)  // the former results are released under no lock
                    steps = composition.registrationHasClosed(self, &effects)
                }
            }
            if let thrown { tellOfThrow(thrown, &effects) }
            left(&effects)
            taken = composition.takeUpTaken()
        }
        steps?.begin()
        taken?.giveUpBlocks()
        withExtendedLifetime(made) {}
    }

    /// Its block has thrown. Under the lock.
    @inline(never)
    private final func tellOfThrow(_ error: any Error, _ effects: inout Effects) {
        if machine.phase == .executing || machine.phase == .deciding { return }
        if machine.isDecided, machine.end == .cancelled { return }
        tell("its block threw, but its attempt had ended", error, &effects)
    }

    private static func cause(of error: any Error) -> Cause {
        let outcome: Outcome<Never> =
            switch error {
            case let reason as CancelReason where reason.isOfOperation: .cancelled(reason)
            case is CancellationError: .cancelled(CancelReason(.threwCancellation, underlying: error))
            default: .failed(error)
            }
        return Cause(index: nil, child: nil, outcome: outcome)
    }

    override final func assembleValue() -> Bool {
        results.typed(Results<Success>?.self)?.assemble(self) == true
    }

    /// Sets the closures that are not nil. Under the lock; the composite is ready.
    final func set(completion: (@Sendable () -> Void)?, decision: (@Sendable (AnyOperation) -> Void)?) {
        if let completion { withComposition { $0.completion = completion } }
        if let decision {
            _ = ensureExtras()
            composition?.decisionHandler = decision
        }
    }

    /// Starts it with a block and closures, if it is ready.
    final func start(
        _ registration: Registration, completion: (@Sendable () -> Void)?,
        decision: (@Sendable (AnyOperation) -> Void)?
    ) -> Bool {
        // In a copy, this replaces a block and closures. The former ones are released after the lock.
        var former = Given()
        let context = contextHere
        let hasStarted = startIfReady(bringsBlock: true) {
            former = given
            former.context = setContext(context)
            self.registration = registration
            set(completion: completion, decision: decision)
        }
        withExtendedLifetime(former) {}
        return hasStarted
    }

    /// Starts an unpublished composite with a block and closures.
    final func startNew(
        _ registration: Registration, completion: (@Sendable () -> Void)?,
        decision: (@Sendable (AnyOperation) -> Void)?
    ) {
        self.registration = registration
        set(completion: completion, decision: decision)
        _ = setContext(contextHere)
        startNew()
    }

    final func replaceRegistration(_ new: Registration?) {
        let context = contextHere
        let former = change { effects -> [Any] in
            guard machine.phase == .ready else {
                _ = refuse("a change of the block of an operation that is not ready", &effects)
                return []
            }
            defer { registration = new }
            return [registration as Any, setContext(context) as Any]
        }
        withExtendedLifetime(former) {}
    }

    final func copyComposite(to copy: CompositeOperation<Success>) {
        let former = look {
            machine.isTerminal && extras?.options?.keepsBlock != true ? Given() : given
        }
        copy.registration = former.registration
        copyExtras(to: copy)
        copy.set(completion: former.completion, decision: former.decision)
    }

    /// Under the lock; without the context.
    private final var given: Given {
        Given(
            registration: registration, completion: composition?.completion,
            decision: composition?.decisionHandler)
    }

    // MARK: Decisions

    /// From the decision handler: begins a new attempt that keeps the children that have finished, and redoes all
    /// others. On a composite that was not started, the same as `start()`.
    ///
    /// While the block is still registering, the new attempt waits for its return. If the block throws, or may have
    /// left children out, the call is a `rerun()`. A block may have left children out if one was refused because the
    /// attempt was over, or if it read ``CompositeScope/isCancelled`` as true.
    ///
    /// - Returns: false, with no effect, unless a decision is open; also when the block threw, or a resolver has no
    ///   attempt left.
    @discardableResult
    public final func awake() -> Bool {
        if look({ machine.phase == .ready }) { return start() }
        return change { effects in
            guard !isExhausted, redo(.awake, after: .zero, &effects) else {
                return refuse("awake(), but no decision is open, or its block threw", &effects)
            }
            return true
        }
    }

    /// From the decision handler: keeps the decision open after the handler has returned, until the returned hold is
    /// released. Then the composite ends, unless a decision has been made.
    ///
    /// - Returns: nil unless a decision is open.
    public final func deferDecision() -> DecisionHold? {
        look {
            guard machine.phase == .deciding, let composition else { return nil }
            composition.holds += 1
            return DecisionHold(self, machine.attempt)
        }
    }

    /// The causes of the last attempt's end: the first one, and those that followed it.
    public final var causes: [Cause] {
        look {
            seeFailure()
            return composition?.causes ?? []
        }
    }

    /// The children of the current epoch, in the order of their registration; empty after the end.
    public final var children: [AnyOperation] { look { Array(composition?.childrenAsOperations() ?? []) } }
}

/// Block, closures and context of a composite. Not a tuple: see `ForCopy` in OperationHandle.swift.
private struct Given {
    var registration: Registration?
    var completion: (@Sendable () -> Void)?
    var decision: (@Sendable (AnyOperation) -> Void)?
    var context: OperationContext?
}

/// Keeps a decision open. See ``CompositeOperation/deferDecision()``.
public final class DecisionHold: Sendable {
    private let operation: AnyOperation
    private let number: Int32

    init(_ operation: AnyOperation, _ number: Int32) {
        self.operation = operation
        self.number = number
    }

    deinit { operation.decisionIsOver(number) }
}

/// Runs its children one after another, in the order of their registration.
///
/// ```swift
/// cascadeOperation { cascade in
///     cascade.operation(on: network) { step in load { step.finish() } }
///     cascade.operation { index() }
/// }
/// ```
///
/// - SeeAlso: seed 004, COCascadeOperation.
public final class COCascadeOperation<Success: Sendable>: CompositeOperation<Success>, @unchecked Sendable {
    /// A registration block.
    public typealias Block = @Sendable (CascadeScope) throws -> Results<Success>

    init(
        registration: Registration?, on target: (any ExecutionTarget)?, options: OperationOptions?,
        within composite: AnyOperation? = nil
    ) {
        super.init(
            .cascade, isCascade: true, registration: registration, on: target, options: options,
            within: composite)
    }

    /// Prepares a cascade; `start()` starts it.
    public convenience init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard, _ block: Block? = nil
    ) {
        self.init(registration: block.map { .cascade($0) }, on: target, options: options)
    }

    override var kindName: String { "cascade" }

    override func makeCopy() -> AnyOperation {
        let copy = COCascadeOperation(registration: nil, on: nil, options: nil)
        copyPlace(to: copy)
        copyComposite(to: copy)
        return copy
    }

    /// The registration block, wrapped; set it while the cascade is ready.
    public var operation: Block? {
        get {
            guard let registration = look({ machine.isTerminal ? nil : registration }) else { return nil }
            return { try registration.call(for: $0.control, $0.epoch, Success.self) }
        }
        set { replaceRegistration(newValue.map { .cascade($0) }) }
    }

    /// Starts it with a block.
    ///
    /// - Parameters:
    ///   - completion: called once when every child has finished.
    ///   - cancellation: called when a child did not finish, to decide what happens next, or when the cascade itself is
    ///     cancelled.
    /// - Returns: false, with no effect, when it is not ready.
    @discardableResult
    // A block that returns nothing matches both forms until its body is type-checked.
    @_disfavoredOverload
    public func run(
        _ block: @escaping Block, completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COCascadeOperation<Success>) -> Void)? = nil
    ) -> Bool {
        start(.cascade(block), completion: completion, decision: Self.decision(cancellation))
    }

    static func decision(
        _ handler: (@Sendable (COCascadeOperation<Success>) -> Void)?
    ) -> (@Sendable (AnyOperation) -> Void)? {
        guard let handler else { return nil }
        return { handler(unsafeDowncast($0, to: COCascadeOperation<Success>.self)) }
    }
}

/// A group of children that run in any order, with one completion or one cancellation. Not an atomic change: nothing is
/// rolled back.
///
/// ```swift
/// transactionalOperation { group in
///     for image in images { group.operation { resize(image) } }
/// } completion: {
///     print("all resized")
/// }
/// ```
///
/// - SeeAlso: seed 004, COTransactionalOperation; `DispatchGroup`.
public final class COTransactionalOperation<Success: Sendable>: CompositeOperation<Success>,
    @unchecked Sendable
{
    /// A registration block.
    public typealias Block = @Sendable (TransactionScope) throws -> Results<Success>

    init(
        registration: Registration?, on target: (any ExecutionTarget)?, options: OperationOptions?,
        within composite: AnyOperation? = nil
    ) {
        super.init(
            ChildOrder(width: options?.width), isCascade: false, registration: registration,
            on: target,
            options: options, within: composite)
    }

    /// Prepares a transactional operation; `start()` starts it.
    public convenience init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard, _ block: Block? = nil
    ) {
        self.init(registration: block.map { .transaction($0) }, on: target, options: options)
    }

    override var kindName: String { "transactional operation" }

    override func makeCopy() -> AnyOperation {
        let copy = COTransactionalOperation(
            registration: nil, on: nil, options: look { extras?.options })
        copyPlace(to: copy)
        copyComposite(to: copy)
        return copy
    }

    /// The registration block, wrapped; set it while the operation is ready.
    public var operation: Block? {
        get {
            guard let registration = look({ machine.isTerminal ? nil : registration }) else { return nil }
            return { try registration.call(for: $0.control, $0.epoch, Success.self) }
        }
        set { replaceRegistration(newValue.map { .transaction($0) }) }
    }

    /// Starts it with a block; see a cascade's `run`.
    @discardableResult
    // A block that returns nothing matches both forms until its body is type-checked.
    @_disfavoredOverload
    public func run(
        _ block: @escaping Block, completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COTransactionalOperation<Success>) -> Void)? = nil
    ) -> Bool {
        start(.transaction(block), completion: completion, decision: Self.decision(cancellation))
    }

    static func decision(
        _ handler: (@Sendable (COTransactionalOperation<Success>) -> Void)?
    ) -> (@Sendable (AnyOperation) -> Void)? {
        guard let handler else { return nil }
        return { handler(unsafeDowncast($0, to: COTransactionalOperation<Success>.self)) }
    }
}

/// Short for ``COCascadeOperation``.
public typealias COCascade = COCascadeOperation
/// Short for ``COTransactionalOperation``.
public typealias COTransaction = COTransactionalOperation

extension COCascadeOperation where Success == Void {
    /// Prepares a cascade without a value.
    public convenience init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ block: @escaping @Sendable (CascadeScope) throws -> Void
    ) {
        self.init(registration: .cascadeWithoutValue(block), on: target, options: options)
    }

    /// Like ``operation``, for a block without a value.
    @_disfavoredOverload
    public var operation: (@Sendable (CascadeScope) throws -> Void)? {
        get {
            guard let block: Block = operation else { return nil }
            return { scope in _ = try block(scope) }
        }
        set { replaceRegistration(newValue.map { .cascadeWithoutValue($0) }) }
    }

    /// Starts it with a block.
    @discardableResult
    public func run(
        _ block: @escaping @Sendable (CascadeScope) throws -> Void, completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COCascadeOperation<Void>) -> Void)? = nil
    ) -> Bool {
        start(.cascadeWithoutValue(block), completion: completion, decision: Self.decision(cancellation))
    }
}

extension COTransactionalOperation where Success == Void {
    /// Prepares a transactional operation without a value.
    public convenience init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ block: @escaping @Sendable (TransactionScope) throws -> Void
    ) {
        self.init(registration: .transactionWithoutValue(block), on: target, options: options)
    }

    /// Like ``operation``, for a block without a value.
    @_disfavoredOverload
    public var operation: (@Sendable (TransactionScope) throws -> Void)? {
        get {
            guard let block: Block = operation else { return nil }
            return { scope in _ = try block(scope) }
        }
        set { replaceRegistration(newValue.map { .transactionWithoutValue($0) }) }
    }

    /// Starts it with a block.
    @discardableResult
    public func run(
        _ block: @escaping @Sendable (TransactionScope) throws -> Void,
        completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COTransactionalOperation<Void>) -> Void)? = nil
    ) -> Bool {
        start(.transactionWithoutValue(block), completion: completion, decision: Self.decision(cancellation))
    }
}
