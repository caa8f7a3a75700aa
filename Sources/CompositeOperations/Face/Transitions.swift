// Transitions.swift - the state changes of an operation, for observers.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// One state change of an operation.
public struct Transition: Sendable, CustomStringConvertible {
    /// The state before; in the first element, the state when the observation began.
    public let from: OperationState
    /// The state after.
    public let to: OperationState
    /// The number of the attempt.
    public let attempt: Int
    /// When the state changed.
    public let instant: ContinuousClock.Instant

    /// As in `queued -> executing (1)`.
    public var description: String { "\(from) -> \(to) (\(attempt))" }
}

/// The states of an operation, from the current one to the terminal one.
///
/// Nothing is dropped: unread transitions are kept until the iterator is released.
public struct Transitions: AsyncSequence, Sendable {
    let operation: AnyOperation

    /// Reads the transitions of one observer.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let buffer: TransitionBuffer

        /// The next transition; nil after the terminal state, or when the task is cancelled.
        public mutating func next() async -> Transition? { await buffer.next() }
    }

    /// Begins to observe.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer: operation.addObserver()) }
}

/// The transitions that one observer has not read yet. Filled under the tree's lock, which is never taken while the
/// buffer's own lock is held.
final class TransitionBuffer: Sendable {
    private struct State {
        var waiting: [Transition] = []
        var first = 0
        var isOver = false
        var reader = WaitList()

        var isReadable: Bool { first < waiting.count || isOver }

        mutating func take() -> Transition? {
            guard first < waiting.count else {
                waiting = []
                first = 0
                return nil
            }
            defer { first += 1 }
            return waiting[first]
        }
    }

    /// A weak reference: only its iterator holds the buffer strongly.
    struct Weak {
        private(set) weak var buffer: TransitionBuffer?
        init(_ buffer: TransitionBuffer) { self.buffer = buffer }
    }

    private let state = Guarded(State())
    private let instance = Instance(.transitions)

    func append(_ transition: Transition) {
        state.withLock { state in
            state.waiting.append(transition)
            if transition.to.isTerminal { state.isOver = true }
        }
    }

    /// Resumes the reader, if there is something to read.
    func flush() {
        state.withLock { state in state.isReadable ? state.reader.takeAll() : nil }?.wake()
    }

    func next() async -> Transition? {
        while true {
            let (transition, isOver) = state.withLock { state in (state.take(), state.isOver) }
            if transition != nil || isOver { return transition }
            let wakening = await Waiter.wait { waiter in
                state.withLock { state in state.isReadable ? .isOver : state.reader.append(waiter) }
            } orCancelledBy: { [state] waiter in
                state.withLock { $0.reader.remove(waiter) }
            }
            if wakening == .cancelled { return nil }
        }
    }
}

extension AnyOperation {
    /// Its transitions from now on. Each iterator observes separately.
    public final var transitions: Transitions { Transitions(operation: self) }

    final func addObserver() -> TransitionBuffer {
        let buffer = TransitionBuffer()
        look {
            let state = label
            buffer.append(
                Transition(from: state, to: state, attempt: Int(machine.attempt), instant: .now))
            seeFailure()
            if machine.isTerminal { return }
            let extras = ensureExtras()
            if extras.observers.isEmpty { extras.lastLabel = state }
            let count = extras.observers.count
            if count & (count - 1) == 0 { extras.observers.removeAll { $0.buffer == nil } }  // now and then
            extras.observers.append(TransitionBuffer.Weak(buffer))
        }
        return buffer
    }

    /// Notifies the observers of the state, if it has changed. Under the lock.
    final func observe(_ effects: inout Effects) {
        guard let extras, !extras.observers.isEmpty else { return }
        let state = label
        guard let former = extras.lastLabel, former != state else { return }
        extras.lastLabel = state
        let transition = Transition(from: former, to: state, attempt: Int(machine.attempt), instant: .now)
        var areGone = state.isTerminal
        for observer in extras.observers {
            guard let buffer = observer.buffer else {
                areGone = true
                continue
            }
            buffer.append(transition)
            effects.add(.flush(buffer))
            if state.isTerminal { extras.isObserved = true }
        }
        if areGone { extras.observers.removeAll { state.isTerminal || $0.buffer == nil } }
    }
}
