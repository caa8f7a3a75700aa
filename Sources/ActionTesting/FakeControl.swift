// FakeControl.swift - a control without a user interface.

public import Actions

/// Stands in for a control: what it was told can be read, and a test activates it.
@MainActor public final class FakeControl<Input: Sendable>: Binding {
    /// The calls that it received, in order, without those that repeat the last one.
    public enum Change: Hashable, Sendable {
        /// The control can be activated, or cannot.
        case enabled(Bool)
        /// The action runs, or does not.
        case executing(Bool)
        /// The control shows a failure, with this text.
        case failure(String)
    }

    /// The closure that the action has set.
    public var onTrigger: (@MainActor (Input) -> Void)?
    /// nil: it was not told.
    public private(set) var isEnabled: Bool?
    /// nil: it was not told.
    public private(set) var isExecuting: Bool?
    /// All that it was told.
    public private(set) var changes: [Change] = []

    /// Creates one that is tied to nothing.
    public init() {}

    /// For the action.
    public func setEnabled(_ isEnabled: Bool) {
        if isEnabled != self.isEnabled { changes.append(.enabled(isEnabled)) }
        self.isEnabled = isEnabled
    }

    /// For the action.
    public func setExecuting(_ isExecuting: Bool) {
        if isExecuting != self.isExecuting { changes.append(.executing(isExecuting)) }
        self.isExecuting = isExecuting
    }

    /// For the action.
    public func present(_ failure: ActionFailure) { changes.append(.failure(failure.message)) }

    /// A user activates it; nothing happens while it is not enabled.
    public func press(_ input: Input) { if isEnabled == true { onTrigger?(input) } }

    /// An event that arrives although it may be disabled.
    public func force(_ input: Input) { onTrigger?(input) }
}
