// ValidatedValue.swift - a live value that takes valid proposals only.

import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// The verdict of a validation on a proposal.
public enum Verdict<Value: Sendable>: Sendable {
    /// The proposal is taken as it is.
    case valid
    /// This is taken in its place.
    case coerced(Value)
    /// The proposal is refused, for this reason; the value stays.
    case invalid(String)

    /// Whether a value was taken.
    public var isValid: Bool { if case .invalid = self { false } else { true } }
}

/// A live value that takes valid proposals, replaces coerced ones, and refuses invalid ones.
public final class ValidatedValue<Value: Sendable>: Sendable {
    /// The last value that was taken.
    public let value: LiveValue<Value>
    /// The verdict on the last proposal.
    public let verdict: LiveValue<Verdict<Value>>

    private let validate: @Sendable (_ proposed: Value, _ current: Value) -> Verdict<Value>
    private let last: Guarded<(number: Int, proposal: Value)>
    private let subscription: Guarded<Subscription?> = Guarded(nil)
    private let instance = Instance(.validatedValues)

    /// Creates a value that is judged by itself.
    ///
    /// - Parameters:
    ///   - initial: taken as it is.
    ///   - validate: judges; runs on the thread that proposes, under no lock. When a proposal is overtaken by another one, it
    ///     may be called again.
    public init(
        _ initial: Value,
        validate: @escaping @Sendable (_ proposed: Value, _ current: Value) -> Verdict<Value>
    ) {
        value = LiveValue(initial)
        verdict = LiveValue(.valid)
        last = Guarded((0, initial))
        self.validate = validate
    }

    /// Creates a value that is judged together with another one: when that changes, the last proposal is judged again,
    /// also one that was refused.
    public convenience init<Other: Sendable>(
        _ initial: Value, dependingOn other: LiveValue<Other>,
        validate: @escaping @Sendable (_ proposed: Value, _ current: Value, Other) -> Verdict<Value>
    ) {
        self.init(initial) { proposed, current in validate(proposed, current, other.value) }
        // The first call tells the value as it is: of that the initial value is the proposal.
        let again = other.observe { [weak self] _ in self?.judgeAgain() }
        subscription.withLock { $0 = again }
    }

    /// Proposes a value; what becomes of it is in ``value`` and ``verdict`` when this returns, unless another thread
    /// proposes at the same time: the last one counts.
    public func propose(_ value: Value) {
        let before = last.withLock { last in
            let before = last.proposal
            last = (last.number + 1, value)
            return before
        }
        withExtendedLifetime(before) { judge() }
    }

    /// Judges the last proposal again as a new one, once the dependency has changed: a judge at work may have read its former value.
    private func judgeAgain() {
        last.withLock { $0.number += 1 }
        judge()
    }

    private func judge() {
        while true {
            let (number, proposal) = last.withLock { $0 }
            let verdict = validate(proposal, value.value)
            switch verdict {
            case .valid: value.set(proposal)
            case .coerced(let other): value.set(other)
            case .invalid: break
            }
            self.verdict.set(verdict)
            // Another thread may have judged an older proposal after a newer one, or by another dependency.
            if last.withLock({ $0.number }) == number { return }
        }
    }
}
