// CompositeScope.swift - the argument of a registration block: where children are registered.

public import Runs

/// Where the children of a composite are registered: the argument of its block, bound to that run of the block.
///
/// A scope may be kept, and used while the composite executes: a child registered later counts like any other, and
/// comes last in a cascade. A registration that comes too late is refused: the returned child has already failed with a
/// ``RegistrationError``, and the refusal is reported to the diagnostic sink.
public protocol CompositeScope: Sendable {
    /// The composite.
    var control: AnyOperation { get }
    /// The number of this run of the block: it grows with each run.
    var epoch: Int32 { get }
}

/// Where the children of a transactional operation are registered. A child starts as soon as it is registered. A child
/// that is registered while a decision is open starts with the attempt that keeps it.
public struct TransactionScope: CompositeScope {
    /// The composite.
    public let control: AnyOperation
    /// The number of this run of the block: it grows with each run.
    public let epoch: Int32
}

/// Where the steps of a cascade are registered. The first one starts when the block has returned.
public struct CascadeScope: CompositeScope {
    /// The composite.
    public let control: AnyOperation
    /// The number of this run of the block: it grows with each run.
    public let epoch: Int32
}

extension CompositeScope {
    /// Whether a child would be accepted now.
    public var isOpen: Bool {
        control.look { control.composition?.refusal(of: control, epoch: epoch) == nil }
    }

    /// Whether the block should stop: the composite has been cancelled or has failed, waits for a decision, or has
    /// started over.
    ///
    /// If this is read as true while the registration block runs, the block may have left children out, so the next
    /// attempt calls it again.
    public var isCancelled: Bool {
        control.look {
            guard let composition = control.composition, composition.epoch == epoch else { return true }
            let isOver =
                control.machine.phase == .deciding
                || (control.machine.isDecided && control.machine.end != .finished)
            if isOver, composition.isRegistering { composition.isPartial = true }
            return isOver
        }
    }

    /// Cancels the composite, unless it has started over.
    @discardableResult
    public func cancel(_ reason: CancelReason? = nil) -> Bool {
        control.cancel(reason, number: nil, epoch: epoch)
    }

    /// Closes the composite's gate, unless it has started over.
    @discardableResult
    public func suspend() -> Bool { control.suspend(number: nil, epoch: epoch) }

    /// Opens the composite's gate, unless it has started over.
    @discardableResult
    public func resume(_ mode: ResumeMode = .continue) -> Bool {
        control.resume(mode, number: nil, epoch: epoch)
    }

    /// A value for the children of this epoch to share.
    public func shared<V>(_ initial: sending V) -> Shared<V> { Shared(initial) }

    /// Registers an existing operation, which must be ready, and not the child of another one.
    ///
    /// - Throws: ``RegistrationError``; then the operation is unchanged.
    @discardableResult
    public func add<V>(_ operation: OperationHandle<V>) throws(RegistrationError) -> OperationHandle<V> {
        try control.adopt(operation, epoch: epoch)
        return operation
    }

    /// Registers a block that ends its operation by a call.
    @discardableResult
    @inlinable
    public func operation(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ block: @escaping COOperation<Void>.Block
    ) -> COOperation<Void> {
        leaf(.token(block), target, options)
    }

    /// Registers a block that ends its operation by a call, with a value.
    @discardableResult
    @inlinable
    public func operation<V: Sendable>(
        returning type: V.Type, on target: (any ExecutionTarget)? = nil,
        options: OperationOptions = .standard,
        _ block: @escaping COOperation<V>.Block
    ) -> COOperation<V> {
        leaf(.token(block), target, options)
    }

    /// Registers a block that ends its operation by returning. Without a target or options, the result is a ``Child``,
    /// which needs no object.
    @discardableResult
    @inlinable
    @inline(__always)
    public func operation<V: Sendable>(_ body: consuming @escaping @Sendable () throws -> V) -> Child<V> {
        guard PlainBlock<V>.isPossible, let place = control.plainPlace(epoch: epoch) else {
            return Child(leaf(.value(body), nil, .standard))
        }
        place.node.fill(BlockCalls.Value(call: body), type: PlainBlock<V>.self, flags: [])
        return place.send() ? Child(place) : Child(withdrawn(place, V.self))
    }

    /// Registers a block that ends its operation by returning.
    @discardableResult
    @inlinable
    @_disfavoredOverload
    public func operation<V: Sendable>(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ body: @escaping @Sendable () throws -> V
    ) -> COOperation<V> {
        leaf(.value(body), target, options)
    }

    /// Registers an asynchronous block, which ends its operation by returning: one task, cancelled with the operation.
    @discardableResult
    @inlinable
    public func operation<V: Sendable>(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ body: @escaping @Sendable () async throws -> V
    ) -> COOperation<V> {
        leaf(.async(body), target, options)
    }

    /// Registers a cascade. Its block is dispatched like any other when its turn comes.
    @discardableResult
    public func cascadeOperation(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ block: @escaping @Sendable (CascadeScope) throws -> Void, completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COCascade<Void>) -> Void)? = nil
    ) -> COCascade<Void> {
        cascade(target, options, .cascadeWithoutValue(block), completion, cancellation)
    }

    /// Registers a cascade with a value.
    @discardableResult
    public func cascadeOperation<V: Sendable>(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ block: @escaping COCascade<V>.Block, completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COCascade<V>) -> Void)? = nil
    ) -> COCascade<V> {
        cascade(target, options, .cascade(block), completion, cancellation)
    }

    /// Registers a transactional operation. Its block is dispatched like any other when its turn comes.
    @discardableResult
    public func transactionalOperation(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ block: @escaping @Sendable (TransactionScope) throws -> Void,
        completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COTransaction<Void>) -> Void)? = nil
    ) -> COTransaction<Void> {
        transaction(target, options, .transactionWithoutValue(block), completion, cancellation)
    }

    /// Registers a transactional operation with a value.
    @discardableResult
    public func transactionalOperation<V: Sendable>(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
        _ block: @escaping COTransaction<V>.Block, completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (COTransaction<V>) -> Void)? = nil
    ) -> COTransaction<V> {
        transaction(target, options, .transaction(block), completion, cancellation)
    }

    /// A plain child that could not be sent, because the plain children were taken meanwhile, becomes a separate
    /// operation.
    @usableFromInline
    func withdrawn<V>(_ place: PlainPlace, _ type: V.Type) -> COOperation<V> {
        let block = place.node.takeBlock(BlockCalls.Value<V>.self)
        return leaf(.value(block.call), nil, .standard)
    }

    @inlinable
    @inline(__always)
    func leaf<V>(
        _ body: COOperation<V>.Body, _ target: (any ExecutionTarget)?, _ options: OperationOptions
    ) -> COOperation<V> {
        let child = COOperation.child(body, of: control, on: target, options: options)
        control.register(child, epoch: epoch, after: nil)
        return child
    }

    private func cascade<V>(
        _ target: (any ExecutionTarget)?, _ options: OperationOptions, _ registration: Registration,
        _ completion: (@Sendable () -> Void)?, _ cancellation: (@Sendable (COCascade<V>) -> Void)?
    ) -> COCascade<V> {
        let child = COCascade<V>(
            registration: registration, on: target, options: options, within: control)
        child.set(completion: completion, decision: COCascade<V>.decision(cancellation))
        control.register(child, epoch: epoch)
        return child
    }

    private func transaction<V>(
        _ target: (any ExecutionTarget)?, _ options: OperationOptions, _ registration: Registration,
        _ completion: (@Sendable () -> Void)?, _ cancellation: (@Sendable (COTransaction<V>) -> Void)?
    ) -> COTransaction<V> {
        let child = COTransaction<V>(
            registration: registration, on: target, options: options, within: control)
        child.set(completion: completion, decision: COTransaction<V>.decision(cancellation))
        control.register(child, epoch: epoch)
        return child
    }
}

extension CascadeScope {
    /// Registers a step that takes the value of an earlier step of this cascade, and ends by returning: a ``Child``,
    /// which needs no object.
    ///
    /// If `step` is not such a step, the child is refused: ``RegistrationError/notAnEarlierStep``.
    @discardableResult
    @inlinable
    @inline(__always)
    public func operation<Input, V: Sendable>(
        using step: borrowing Child<Input>, _ body: consuming @escaping @Sendable (Input) throws -> V
    ) -> Child<V> {
        guard PlainBlock<V>.isPossible,
            let place = control.plainPlace(epoch: epoch, after: step.node, of: step.holder)
        else {
            return Child(registerPlainStep(using: step.operation, body))
        }
        place.node.fill(
            BlockCalls.Step(call: body), type: PlainStep<Input, V>.self,
            flags: .isStep, input: step.node.unsafelyUnwrapped.address)
        return place.send() ? Child(place) : Child(withdrawnStep(place, step.operation, V.self))
    }

    /// Registers a step that takes the value of a step that has become an operation.
    @usableFromInline
    func registerPlainStep<Input, V>(
        using step: OperationHandle<Input>, _ body: consuming @escaping @Sendable (Input) throws -> V
    ) -> COOperation<V> {
        operation(using: step, on: nil, options: .standard, body)
    }

    @usableFromInline
    func withdrawnStep<Input, V>(
        _ place: PlainPlace, _ step: OperationHandle<Input>, _ type: V.Type
    ) -> COOperation<V> {
        registerPlainStep(using: step, place.node.takeBlock(BlockCalls.Step<Input, V>.self).call)
    }

    /// Registers a step that takes the value of an earlier step of this cascade, and ends by returning.
    ///
    /// If `step` is not such a step, the child is refused: ``RegistrationError/notAnEarlierStep``.
    @discardableResult
    @inlinable
    public func operation<Input, V: Sendable>(
        using step: OperationHandle<Input>, on target: (any ExecutionTarget)? = nil,
        options: OperationOptions = .standard, _ body: consuming @escaping @Sendable (Input) throws -> V
    ) -> COOperation<V> {
        let child =
            target == nil && options.isStandard && !control.givesItsPlace
            ? StepOperation(plainChildOf: control, using: step, body)
            : StepOperation(within: control, using: step, on: target, options: options, body)
        control.register(child, epoch: epoch, after: step)
        return child
    }

    /// Same as above, for a step that is a ``Child``, with a target or options.
    @discardableResult
    @inlinable
    @_disfavoredOverload
    public func operation<Input, V: Sendable>(
        using step: Child<Input>, on target: (any ExecutionTarget)? = nil,
        options: OperationOptions = .standard, _ body: consuming @escaping @Sendable (Input) throws -> V
    ) -> COOperation<V> {
        operation(using: step.operation, on: target, options: options, body)
    }

    /// Same as above, with an asynchronous block.
    @discardableResult
    @inlinable
    public func operation<Input, V: Sendable>(
        using step: Child<Input>, on target: (any ExecutionTarget)? = nil,
        options: OperationOptions = .standard, _ body: @escaping @Sendable (Input) async throws -> V
    ) -> COOperation<V> {
        operation(using: step.operation, on: target, options: options, body)
    }

    /// Same as above, with an asynchronous block.
    @discardableResult
    @inlinable
    public func operation<Input, V: Sendable>(
        using step: OperationHandle<Input>, on target: (any ExecutionTarget)? = nil,
        options: OperationOptions = .standard, _ body: @escaping @Sendable (Input) async throws -> V
    ) -> COOperation<V> {
        registerStep(using: step, .async({ try await body(step.valueForStep()) }), target, options)
    }

    /// Registers a step whose block takes its attempt and the value of an earlier step, and ends the step by a call.
    @discardableResult
    @inlinable
    public func operation<Input, V: Sendable>(
        using step: Child<Input>, returning type: V.Type, on target: (any ExecutionTarget)? = nil,
        options: OperationOptions = .standard,
        _ block: @escaping @Sendable (COOperation<V>.Attempt, Input) throws -> Void
    ) -> COOperation<V> {
        operation(using: step.operation, returning: type, on: target, options: options, block)
    }

    /// Registers a step whose block takes its attempt and the value of an earlier step, and ends the step by a call.
    @discardableResult
    @inlinable
    public func operation<Input, V: Sendable>(
        using step: OperationHandle<Input>, returning type: V.Type, on target: (any ExecutionTarget)? = nil,
        options: OperationOptions = .standard,
        _ block: @escaping @Sendable (COOperation<V>.Attempt, Input) throws -> Void
    ) -> COOperation<V> {
        registerStep(using: step, .token({ try block($0, step.valueForStep()) }), target, options)
    }

    @inlinable
    @inline(__always)
    func registerStep<Input, V>(
        using step: OperationHandle<Input>, _ body: COOperation<V>.Body, _ target: (any ExecutionTarget)?,
        _ options: OperationOptions
    ) -> COOperation<V> {
        let child = COOperation.child(body, of: control, on: target, options: options)
        control.register(child, epoch: epoch, after: step)
        return child
    }
}

extension TransactionScope {
    /// Registers a child for each index of a range. All children share one block; each needs no memory but a node.
    ///
    /// - Complexity: O(count). In a transactional operation with a target, options or a limited width, an operation is
    ///   created for each index.
    public func operations(_ range: Range<Int>, _ body: @escaping @Sendable (Int) throws -> Void) {
        if range.isEmpty { return }
        guard let place = control.plainPlace(epoch: epoch, count: range.count) else {
            return registerEach(range, body)
        }
        let (first, type, flags) = (place.node, PlainIndexed.self, PlainNode.Flags.isIndexed)
        let words = BlockCalls.words(of: BlockCalls.Indexed(call: body))
        for index in 0..<range.count {
            let node = PlainNode(address: first.address + index * PlainNode.Offset.size)
            node.fill(words, type: type, flags: flags, input: range.lowerBound + index)
        }
        // The first node owns the block, which all of them share.
        first.fill(
            BlockCalls.Indexed(call: body), type: type, flags: flags.union(.ownsBlock),
            input: range.lowerBound)
        if !place.send(count: range.count) {
            _ = first.takeBlock(BlockCalls.Indexed.self)
            registerEach(range, body)
        }
    }

    private func registerEach(_ range: Range<Int>, _ body: @escaping @Sendable (Int) throws -> Void) {
        for index in range { _ = leaf(.value({ try body(index) }), nil, .standard) as COOperation<Void> }
    }
}

extension OperationHandle {
    /// The value of an earlier step. Read without the lock: it was written before the reading step was started.
    @inlinable
    @inline(__always)
    final var finishedValue: Success {
        if !hasValue { fatalError("a step was started before the one whose value it needs") }
        return storedValue
    }

    /// Like ``finishedValue``, but also for a copy of a step, which can be started at any time: throws if the earlier
    /// step has not finished.
    @usableFromInline
    final func valueForStep() throws -> Success {
        let value = look { hasValue && isFinishedForGood ? storedValue : nil }
        guard let value else { throw RegistrationError.notAnEarlierStep }
        return value
    }
}

extension AnyOperation {
    /// Registers a child that was created for this composite. If it is refused, the child fails.
    ///
    /// - Parameter step: must be an earlier child.
    @usableFromInline
    final func register(_ child: AnyOperation, epoch: Int32, after step: AnyOperation? = nil) {
        child.isChild = true
        guard let compositionReference else { return }
        var effects = Effects()
        let bits = lock()
        compositionReference._withUnsafeGuaranteedRef { composition in
            if composition.refusal(of: self, epoch: epoch) == nil,
                step.map({ composition.isChild($0, of: self) }) ?? true
            {
                composition.append(child, to: self, &effects)
            } else {
                refuse(child, epoch: epoch, &effects)
            }
        }
        unlock(bits)
        effects.perform()
    }

    /// A registration is refused: the child fails. Under the lock.
    @inline(never)
    private final func refuse(_ child: AnyOperation, epoch: Int32, _ effects: inout Effects) {
        guard let composition else { return }
        let refusal = composition.refusal(of: self, epoch: epoch) ?? .notAnEarlierStep
        composition.refused(refusal)
        _ = child.refuse("a registration: \(refusal)", &effects)
        child.end(.failed, .failed(refusal), &effects)
    }

    /// Makes a standalone operation a child.
    final func adopt(_ child: AnyOperation, epoch: Int32) throws(RegistrationError) {
        guard let refusal = refusalToAdopt(child, epoch: epoch) else { return }
        change { effects in
            if let composition, composition.epoch == epoch { composition.refused(refusal) }
            _ = refuse("a registration: \(refusal)", &effects)
        }
        throw refusal
    }

    /// - Returns: nil: it is a child now.
    private final func refusalToAdopt(_ child: AnyOperation, epoch: Int32) -> RegistrationError? {
        let refusal = child.look { () -> RegistrationError? in
            if child.isChild { return .hasParent }
            if child.machine.phase != .ready { return .alreadyStarted }
            if !child.hasBlock { return .hasNoBlock }
            child.isChild = true
            return nil
        }
        if let refusal { return refusal }
        // Until the child has entered this tree, its lock and ours are never held at the same time.
        let isClosed = look { () -> RegistrationError? in
            if let refusal = composition?.refusal(of: self, epoch: epoch) { return refusal }
            // The child's gate may be closed. It belongs to this tree as soon as the child enters, so it is counted
            // beforehand.
            domain!._withUnsafeGuaranteedRef { $0.closedGates += 1 }
            return nil
        }
        if let isClosed {
            child.look { child.isChild = false }
            return isClosed
        }
        let hadClosedGate = child.look {
            // Read before it enters: after that, another lock guards the child.
            let isGateClosed = child.machine.isGateClosed
            child.enter(domain!)
            return isGateClosed
        }
        var effects = Effects()
        var former: (any ExecutionTarget)?  // released under no lock
        let tooLate = Self.joining(child, to: self) {
            look {
                guard let composition else { return .ended }
                if let refusal = composition.refusal(of: self, epoch: epoch) { return refusal }
                // If it is not ready, the child was ended separately in the meantime: that end is final.
                guard child.machine.phase == .ready else { return .alreadyStarted }
                if let admission, child.admission == nil || !child.hasOwnTarget {
                    former = child.target
                    child.set(
                        target: child.hasOwnTarget ? child.target : admission.target,
                        isOwn: child.hasOwnTarget, admission: admission)
                }
                composition.append(child, to: self, &effects)
                return nil
            }
        }
        look {
            if !hadClosedGate { domain!._withUnsafeGuaranteedRef { $0.closedGates -= 1 } }
            if tooLate != nil { child.isChild = false }
        }
        effects.perform()
        withExtendedLifetime(former) {}
        return tooLate
    }
}
