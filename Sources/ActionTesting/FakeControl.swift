// FakeControl.swift - a control without a user interface.

public import Actions

/// Stands in for a control: a test activates it, and reads the calls that it received.
@MainActor public final class FakeControl<Input: Sendable>: Binding {
    /// A call that the control received, except one that repeats the last value.
    public enum Change: Hashable, Sendable {
        /// Whether the control can be activated.
        case enabled(Bool)
        /// Whether the action is running.
        case executing(Bool)
        /// The control shows a failure, with this text.
        case failure(String)
    }

    /// The closure set by the action.
    public var onTrigger: (@MainActor (Input) -> Void)?
    /// nil if never set.
    public private(set) var isEnabled: Bool?
    /// nil if never set.
    public private(set) var isExecuting: Bool?
    /// The calls received, in order.
    public private(set) var changes: [Change] = []

    /// Creates a control that is not bound.
    public init() {}

    /// Called by the action.
    public func setEnabled(_ isEnabled: Bool) {
        if isEnabled != self.isEnabled { changes.append(.enabled(isEnabled)) }
        self.isEnabled = isEnabled
    }

    /// Called by the action.
    public func setExecuting(_ isExecuting: Bool) {
        if isExecuting != self.isExecuting { changes.append(.executing(isExecuting)) }
        self.isExecuting = isExecuting
    }

    /// Called by the action.
    public func present(_ failure: ActionFailure) { changes.append(.failure(failure.message)) }

    /// Simulates activation by a user; nothing happens unless the control is enabled.
    public func press(_ input: Input) { if isEnabled == true { onTrigger?(input) } }

    /// Simulates an event that arrives even if the control is disabled.
    public func force(_ input: Input) { onTrigger?(input) }
}
