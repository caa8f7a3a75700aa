// Schedule.swift - one order of steps, as its departures from the default order.

/// An order in which the steps of tasks are run: the decisions at which it departs from the usual order.
///
/// A decision is made whenever more than one step could be next. Usually a task continues until it waits or yields, and
/// then the step that has been ready longest runs next; a departure takes another step.
public struct Schedule: Hashable, Sendable, CustomStringConvertible {
    /// A choice other than the usual one.
    public struct Departure: Hashable, Sendable {
        /// The number of the decision, counted from 0.
        public let decision: Int
        /// The index among the possible next steps, counted from the usual one; at least 1.
        public let choice: Int
    }

    /// The departures, in their order.
    public let departures: [Departure]

    init(choices: some Sequence<UInt16>) {
        departures = choices.enumerated().compactMap { decision, choice in
            choice == 0 ? nil : Departure(decision: decision, choice: Int(choice))
        }
    }

    /// Parses the format of ``description``; nil if `text` is not a schedule.
    public init?(_ text: String) {
        var departures: [Departure] = []
        for part in text == "." ? [] : text.split(separator: ".", omittingEmptySubsequences: false) {
            let numbers = part.split(separator: ":", omittingEmptySubsequences: false).map { part in
                part.utf8.allSatisfy { (48...57).contains($0) } ? Int(part) : nil
            }
            guard numbers.count == 2, let decision = numbers[0], let choice = numbers[1],
                decision > departures.last?.decision ?? -1, decision < 10_000_000,
                (1...Int(UInt16.max)).contains(choice)
            else { return nil }
            departures.append(Departure(decision: decision, choice: choice))
        }
        self.departures = departures
    }

    /// Each departure as its decision and its choice, as in `7:1.12:2`; a single dot if there are none.
    public var description: String {
        departures.isEmpty ? "." : departures.map { "\($0.decision):\($0.choice)" }.joined(separator: ".")
    }

    /// The choice at each decision up to the last departure.
    var choices: [UInt16] {
        var choices = [UInt16](repeating: 0, count: departures.last.map { $0.decision + 1 } ?? 0)
        for departure in departures { choices[departure.decision] = UInt16(departure.choice) }
        return choices
    }
}
