import CompositeOperationsBasics

/// One completed call of a recorded history: what was asked, what was answered, and when, by one clock for
/// all threads.
public struct Call<Operation: Sendable, Answer: Sendable>: Sendable {
    /// What was asked.
    public let operation: Operation
    /// What was answered.
    public let answer: Answer
    /// A time before the call took effect.
    public let called: Int
    /// A time after the call took effect.
    public let returned: Int

    /// Creates a call.
    public init(_ operation: Operation, answered answer: Answer, called: Int, returned: Int) {
        self.operation = operation
        self.answer = answer
        self.called = called
        self.returned = returned
    }
}

/// What a search need not come to twice: which calls are done, and the state they left.
private struct Visited<State: Hashable>: Hashable {
    let done: UInt64
    let state: State
}

/// Whether there is an order of the calls, consistent with their times, that is a run of a sequential
/// specification.
///
/// - Parameters:
///   - history: at most 63 calls.
///   - step: the state after an operation in a state, when it can give the answer; nil when it cannot.
/// - Complexity: exponential in the number of calls that overlap.
///
/// Source: Wing and Gong, Testing and Verifying Concurrent Objects (1993), with the memory of Lowe (2017).
public func isLinearizable<State: Hashable, Operation, Answer>(
    _ history: [Call<Operation, Answer>], from initial: State, step: (State, Operation, Answer) -> State?
) -> Bool {
    demand(history.count < 64, "isLinearizable: at most 63 calls")
    var visited: Set<Visited<State>> = []
    let all = (UInt64(1) << UInt64(history.count)) - 1

    func search(_ done: UInt64, _ state: State) -> Bool {
        if done == all { return true }
        if !visited.insert(Visited(done: done, state: state)).inserted { return false }
        let open = history.indices.filter { done & (1 << UInt64($0)) == 0 }
        // Whatever comes next was called before any of the others returned.
        let horizon = open.map { history[$0].returned }.min() ?? 0
        return open.contains { index in
            let call = history[index]
            guard call.called <= horizon, let next = step(state, call.operation, call.answer) else {
                return false
            }
            return search(done | (1 << UInt64(index)), next)
        }
    }
    return search(0, initial)
}
