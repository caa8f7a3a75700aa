// Linearizability.swift - checks whether calls of several threads have an order that explains each answer.

import CompositeOperationsBasics

/// One completed call of a recorded history: the operation, the answer, and the times, by one clock for all threads.
public struct Call<Operation: Sendable, Answer: Sendable>: Sendable {
    /// The operation that was called.
    public let operation: Operation
    /// The answer.
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

/// Calls that no order explains.
public struct LinearizabilityFailure<Operation: Sendable, Answer: Sendable>: Sendable, CustomStringConvertible
{
    /// The calls up to the first answer that no order explains, in the order of calling: the shortest prefix of the history
    /// without an order.
    public let calls: [Call<Operation, Answer>]
    /// The index in `calls` of the call whose answer is not explained.
    public let unexplained: Int

    /// A drawing of the last calls: a line for each, from its call to its return, with the answer.
    public var description: String {
        // Enough to see the calls that overlapped; the beginning of a long history was in order.
        let shown = Array(calls.indices.suffix(16))
        let times = shown.flatMap { [calls[$0].called, calls[$0].returned] }.sorted()
        let columns = Dictionary(times.enumerated().map { ($1, $0) }) { first, _ in first }
        let end = columns[calls[unexplained].returned] ?? times.count
        let lines = shown.map { place in
            let call = calls[place]
            let from = columns[call.called] ?? 0
            // A call that returned later had not ended when the unexplained one was answered.
            let to = min(columns[call.returned] ?? end, end)
            let line =
                String(repeating: " ", count: from) + "|"
                + String(repeating: "-", count: max(0, to - from - 1))
            let mark = place == unexplained ? "  <- no order gives this answer" : ""
            return line + (call.returned > calls[unexplained].returned ? ">" : "|")
                + " \(call.operation) = \(call.answer)\(mark)"
        }
        let left = calls.count - shown.count
        return ((left > 0 ? ["(\(left) calls before)"] : []) + lines).joined(separator: "\n")
    }
}

/// Whether there is an order of the calls, consistent with their times, that is a run of a sequential
/// specification.
///
/// - Parameters:
///   - history: any number of calls; at most 64 may overlap at a time.
///   - step: returns the state after an operation in a given state, if the operation can give the answer there; nil if it cannot.
/// - Complexity: about one step per call when few calls overlap at a time; at worst exponential in the number of overlapping
///   calls.
///
/// Source: Wing and Gong, Testing and Verifying Concurrent Objects (1993), with the memoisation of Lowe, Testing for
/// Linearizability (2017). This is Lowe's just-in-time linearization: a call is linearized only when the answer of another call
/// needs it.
public func isLinearizable<State: Hashable, Operation, Answer>(
    _ history: [Call<Operation, Answer>], from initial: State, step: (State, Operation, Answer) -> State?
) -> Bool {
    Linearization(history).firstUnexplained(from: initial, step: step) == nil
}

/// Whether there is an order of the calls for each independent part of an object, such as the keys of a dictionary: then there is
/// an order of all calls.
///
/// - Parameters:
///   - key: the part that an operation acts on.
///   - initial: the state in which each part begins.
///
/// Otherwise as ``isLinearizable(_:from:step:)``.
///
/// Source: Herlihy and Wing, Linearizability: A Correctness Condition for Concurrent Objects (1990): linearizability is local.
public func isLinearizable<State: Hashable, Operation, Answer, Key: Hashable>(
    _ history: [Call<Operation, Answer>], partitionedBy key: (Operation) -> Key, from initial: State,
    step: (State, Operation, Answer) -> State?
) -> Bool {
    Dictionary(grouping: history) { key($0.operation) }.values.allSatisfy {
        isLinearizable($0, from: initial, step: step)
    }
}

/// The failure, if there is no order of the calls; nil if there is one.
///
/// Parameters and complexity are those of ``isLinearizable(_:from:step:)``.
public func linearizabilityFailure<State: Hashable, Operation, Answer>(
    of history: [Call<Operation, Answer>], from initial: State, step: (State, Operation, Answer) -> State?
) -> LinearizabilityFailure<Operation, Answer>? {
    let linearization = Linearization(history)
    guard let call = linearization.firstUnexplained(from: initial, step: step) else { return nil }
    let before = history.indices.filter { history[$0].called <= history[call].returned }
        .sorted { (history[$0].called, $0) < (history[$1].called, $1) }
    return LinearizabilityFailure(
        calls: before.map { history[$0] }, unexplained: before.firstIndex(of: call) ?? 0)
}

/// Searches for an order of calls, following their returns: each call is placed by its return, and calls that overlap with it may
/// be placed before it.
private struct Linearization<Operation: Sendable, Answer: Sendable> {
    /// A return of a call, and the calls that may have taken effect before the return and had not returned before it.
    private struct Return {
        let call: Int
        /// The numbers of calls that overlap, the call itself first.
        var open: [Int]
    }

    /// The search state at return `number`: the calls that are placed and have not returned, as bits, and the state that they led
    /// to.
    private struct Place<State: Hashable>: Hashable {
        let number: Int
        let placed: UInt64
        let state: State
    }

    private let history: [Call<Operation, Answer>]
    private var returns: [Return] = []
    /// The bit of each call; overlapping calls have different bits.
    private var bits: [UInt64]

    init(_ history: [Call<Operation, Answer>]) {
        self.history = history
        bits = Array(repeating: 0, count: history.count)
        // At equal times, calls come first: calls that touch count as overlapping.
        let events =
            history.indices.map { (time: history[$0].called, isReturn: false, call: $0) }
            + history.indices.map { (time: history[$0].returned, isReturn: true, call: $0) }
        var (open, free): ([Int], UInt64) = ([], .max)
        for event in events.sorted(by: {
            ($0.time, $0.isReturn ? 1 : 0, $0.call) < ($1.time, $1.isReturn ? 1 : 0, $1.call)
        }) {
            if event.isReturn {
                open.removeAll { $0 == event.call }
                returns.append(Return(call: event.call, open: [event.call] + open))
                free |= bits[event.call]
            } else {
                demand(free != 0, "isLinearizable: more than 64 calls overlap")
                bits[event.call] = free & (~free + 1)
                free &= ~bits[event.call]
                open.append(event.call)
            }
        }
    }

    /// Searches depth first, so a history with an order needs hardly more than one step per call. A place is not tried twice.
    ///
    /// - Returns: the call with the earliest answer that no order explains; nil if there is an order.
    func firstUnexplained<State: Hashable>(
        from initial: State, step: (State, Operation, Answer) -> State?
    ) -> Int? {
        var tried: Set<Place<State>> = []
        var stack = [Place(number: 0, placed: 0, state: initial)]
        var farthest = 0
        while let place = stack.popLast() {
            // A call that is placed may return.
            var (number, placed) = (place.number, place.placed)
            while number < returns.count, placed & bits[returns[number].call] != 0 {
                placed &= ~bits[returns[number].call]
                number += 1
            }
            if number == returns.count { return nil }
            farthest = max(farthest, number)
            guard tried.insert(Place(number: number, placed: placed, state: place.state)).inserted else {
                continue
            }
            // The one pushed last is tried first: the call itself.
            for index in returns[number].open.reversed() where placed & bits[index] == 0 {
                let call = history[index]
                if let next = step(place.state, call.operation, call.answer) {
                    stack.append(Place(number: number, placed: placed | bits[index], state: next))
                }
            }
        }
        return returns[farthest].call
    }
}
