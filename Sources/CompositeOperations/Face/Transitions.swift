// Transitions.swift - the states of an operation as they follow each other, for whoever wants to see them.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// One step of an operation.
public struct Transition: Sendable, CustomStringConvertible {
    /// The state before; of the first element, the state that it was found in.
    public let from: OperationState
    /// The state after.
    public let to: OperationState
    /// The attempt.
    public let attempt: Int
    /// When.
    public let instant: ContinuousClock.Instant

    /// As in `queued -> executing (1)`.
    public var description: String { "\(from) -> \(to) (\(attempt))" }
}

/// The states of an operation, from the one it is found in to the terminal one.
///
/// Nothing is dropped: what is not read yet is kept, until the iterator goes.
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

/// The transitions that one observer has not read yet. Filled under the tree's lock, around which its own is never held.
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

    /// Its iterator holds it.
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

    /// Lets the reader go on, if there is something for it.
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
    /// Its states from now on. Each iterator observes by itself.
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

    /// Tells the observers of the state, if it is another one. Under the lock.
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
