// DSL.swift - the functions that create an operation and start it. Their spelling is that of seed 004.

public import Runs
public import Scheduling

/// Starts an operation whose block ends it by a call.
///
/// - Parameters:
///   - completion: called once it has finished.
///   - cancellation: called once it has been cancelled; without `failure`, also once it has failed.
///   - failure: called once it has failed.
@discardableResult
@inlinable
public func operation(
    on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ block: @escaping COOperation<Void>.Block, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable () -> Void)? = nil, failure: (@Sendable (any Error) -> Void)? = nil
) -> COOperation<Void> {
    let made = COOperation<Void>(body: .token(block), on: target, options: options)
    made.startNew(completion: completion, cancellation: cancellation, failure: failure)
    return made
}

/// Starts an operation whose block ends it by a call, with a value; its closures are those of
/// ``operation(on:options:_:completion:cancellation:failure:)-(_,_,COOperation<Void>.Block,_,_,_)``.
@discardableResult
@inlinable
public func operation<V: Sendable>(
    returning type: V.Type, on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ block: @escaping COOperation<V>.Block, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable () -> Void)? = nil, failure: (@Sendable (any Error) -> Void)? = nil
) -> COOperation<V> {
    let made = COOperation(body: .token(block), on: target, options: options)
    made.startNew(completion: completion, cancellation: cancellation, failure: failure)
    return made
}

/// Starts an operation whose block ends it by returning; its closures are those of
/// ``operation(on:options:_:completion:cancellation:failure:)-(_,_,COOperation<Void>.Block,_,_,_)``.
@discardableResult
@inlinable
public func operation<V: Sendable>(
    on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ body: @escaping @Sendable () throws -> V, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable () -> Void)? = nil, failure: (@Sendable (any Error) -> Void)? = nil
) -> COOperation<V> {
    let made = COOperation(body: .value(body), on: target, options: options)
    made.startNew(completion: completion, cancellation: cancellation, failure: failure)
    return made
}

/// Starts an operation whose asynchronous block ends it by returning: one task, cancelled with the operation. Its
/// closures are those of
/// ``operation(on:options:_:completion:cancellation:failure:)-(_,_,COOperation<Void>.Block,_,_,_)``.
@discardableResult
@inlinable
public func operation<V: Sendable>(
    on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ body: @escaping @Sendable () async throws -> V, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable () -> Void)? = nil, failure: (@Sendable (any Error) -> Void)? = nil
) -> COOperation<V> {
    let made = COOperation(body: .async(body), on: target, options: options)
    made.startNew(completion: completion, cancellation: cancellation, failure: failure)
    return made
}

/// Runs a block on the calling thread, which waits until the operation is ended by a call.
///
/// - Parameter timeout: after this time the operation is cancelled; nil: never.
/// - Returns: the operation, which has ended.
@available(*, noasync, message: "Blocks the thread; use operation and its value.")
@discardableResult
public func syncOperation(
    timeout: Duration? = nil, _ block: (COOperation<Void>.Attempt) throws -> Void
) -> COSyncOperation<Void> {
    syncOperation(returning: Void.self, timeout: timeout, block)
}

/// Runs a block on the calling thread, which waits until the operation is ended by a call, with a value.
@available(*, noasync, message: "Blocks the thread; use operation and its value.")
@discardableResult
public func syncOperation<V: Sendable>(
    returning type: V.Type, timeout: Duration? = nil, _ block: (COOperation<V>.Attempt) throws -> Void
) -> COSyncOperation<V> {
    let sync = COSyncOperation<V>()
    sync.run(timeout: timeout, block)
    return sync
}

/// Runs a block on a target, and waits until the operation is ended by a call.
///
/// - Parameter timeout: after this time the operation is cancelled, and the call returns; a running block continues.
/// - Returns: the operation; without a result if its block has not returned.
@available(*, noasync, message: "Blocks the thread; use operation and its value.")
@discardableResult
public func syncOperation(
    on target: any ExecutionTarget, timeout: Duration? = nil, _ block: @escaping COOperation<Void>.Block
) -> COSyncOperation<Void> {
    let sync = COSyncOperation<Void>(on: target, block)
    _ = sync.startAndWait(until: timeout.map { ContinuousClock.now + $0 })
    return sync
}

/// Starts a cascade.
///
/// - Parameters:
///   - block: registers the steps; it runs on the target, as every block does.
///   - completion: called once when every step has finished.
///   - cancellation: called when a step did not finish, to decide what happens next: cancel, which is the default,
///     rerun, awake, or a resolver. Also called when the cascade itself is cancelled.
@discardableResult
public func cascadeOperation(
    on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ block: @escaping @Sendable (CascadeScope) throws -> Void, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable (COCascade<Void>) -> Void)? = nil
) -> COCascade<Void> {
    let cascade = COCascade<Void>(registration: nil, on: target, options: options)
    cascade.startNew(
        .cascadeWithoutValue(block), completion: completion, decision: COCascade<Void>.decision(cancellation))
    return cascade
}

/// Starts a cascade with a value.
@discardableResult
public func cascadeOperation<V: Sendable>(
    on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ block: @escaping COCascade<V>.Block, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable (COCascade<V>) -> Void)? = nil
) -> COCascade<V> {
    let cascade = COCascade<V>(registration: nil, on: target, options: options)
    cascade.startNew(.cascade(block), completion: completion, decision: COCascade<V>.decision(cancellation))
    return cascade
}

/// Starts a transactional operation.
///
/// - Parameters:
///   - block: registers the children; it runs on the target, as every block does.
///   - completion: called once when every child has finished.
///   - cancellation: called when a child did not finish, to decide what happens next; see
///     ``cascadeOperation(on:options:_:completion:cancellation:)-(_,_,(CascadeScope)->Void,_,_)``.
@discardableResult
public func transactionalOperation(
    on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ block: @escaping @Sendable (TransactionScope) throws -> Void, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable (COTransaction<Void>) -> Void)? = nil
) -> COTransaction<Void> {
    let transaction = COTransaction<Void>(registration: nil, on: target, options: options)
    transaction.startNew(
        .transactionWithoutValue(block), completion: completion,
        decision: COTransaction<Void>.decision(cancellation))
    return transaction
}

/// Starts a transactional operation with a value.
@discardableResult
public func transactionalOperation<V: Sendable>(
    on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard,
    _ block: @escaping COTransaction<V>.Block, completion: (@Sendable () -> Void)? = nil,
    cancellation: (@Sendable (COTransaction<V>) -> Void)? = nil
) -> COTransaction<V> {
    let transaction = COTransaction<V>(registration: nil, on: target, options: options)
    transaction.startNew(
        .transaction(block), completion: completion, decision: COTransaction<V>.decision(cancellation))
    return transaction
}

// MARK: Queues

/// The built-in scheduler.
public func concurrentQueue() -> Scheduler { .shared }

/// A new serial lane on the built-in scheduler: one block at a time, in the order of submission.
public func serialQueue(_ label: String = "") -> SerialLane {
    do { return try SerialLane(label: label) } catch { fatalError("serialQueue: \(error)") }
}

/// Sets the default queue; see ``COQueues/setDefaultQueue(_:)``.
public func COSetDefaultQueue(_ target: (any ExecutionTarget)?) { COQueues.setDefaultQueue(target) }

/// The default queue in force here; see ``COQueues/defaultQueue``.
public func CODefaultQueue() -> any ExecutionTarget { COQueues.defaultQueue }
