// ValidatedValue.swift - a live value that accepts only valid proposals.

import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// The verdict of a validation on a proposal.
public enum Verdict<Value: Sendable>: Sendable {
    /// The proposal is accepted unchanged.
    case valid
    /// This value is accepted in its place.
    case coerced(Value)
    /// The proposal is refused, for this reason; the value does not change.
    case invalid(String)

    /// Whether a value was accepted.
    public var isValid: Bool { if case .invalid = self { false } else { true } }
}

/// A live value that accepts valid proposals, replaces coerced ones, and refuses invalid ones.
public final class ValidatedValue<Value: Sendable>: Sendable {
    /// The last value that was accepted.
    public let value: LiveValue<Value>
    /// The verdict on the last proposal.
    public let verdict: LiveValue<Verdict<Value>>

    private let validate: @Sendable (_ proposed: Value, _ current: Value) -> Verdict<Value>
    private let last: Guarded<(number: Int, proposal: Value)>
    private let subscription: Guarded<Subscription?> = Guarded(nil)
    private let instance = Instance(.validatedValues)

    /// Creates a value that is validated on its own.
    ///
    /// - Parameters:
    ///   - initial: accepted unchanged.
    ///   - validate: validates a proposal. Runs on the proposing thread, under no lock. May be called again if another proposal
    ///     overtakes this one.
    public init(
        _ initial: Value,
        validate: @escaping @Sendable (_ proposed: Value, _ current: Value) -> Verdict<Value>
    ) {
        value = LiveValue(initial)
        verdict = LiveValue(.valid)
        last = Guarded((0, initial))
        self.validate = validate
    }

    /// Creates a value that is validated together with another one: when that changes, the last proposal is validated again, even if
    /// it was refused.
    public convenience init<Other: Sendable>(
        _ initial: Value, dependingOn other: LiveValue<Other>,
        validate: @escaping @Sendable (_ proposed: Value, _ current: Value, Other) -> Verdict<Value>
    ) {
        self.init(initial) { proposed, current in validate(proposed, current, other.value) }
        // The first call reports the current value; it validates the initial value as the proposal.
        let again = other.observe { [weak self] _ in self?.judgeAgain() }
        subscription.withLock { $0 = again }
    }

    /// Proposes a value. When this returns, the result is in ``value`` and ``verdict``, unless another thread proposes at the same
    /// time: then the last proposal wins.
    public func propose(_ value: Value) {
        let before = last.withLock { last in
            let before = last.proposal
            last = (last.number + 1, value)
            return before
        }
        withExtendedLifetime(before) { judge() }
    }

    /// Validates the last proposal again, as a new one, after the dependency has changed: a running validation may have read the
    /// dependency's former value.
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
            // Another thread may have validated an older proposal after a newer one, or against another value of the dependency.
            if last.withLock({ $0.number }) == number { return }
        }
    }
}
