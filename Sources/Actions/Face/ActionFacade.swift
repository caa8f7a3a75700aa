// ActionFacade.swift - the view's side of an action: whether it may be triggered, whether it runs, what went wrong.

public import Runs

/// The view's side of an action: it is told on the main actor, unless it says where, while the owner's side is told in place.
/// It gives no results, and changes neither policy nor limit; what it cancels, when it unbinds
/// and is asked to, is what it has triggered itself.
public struct ActionFacade<Input: Sendable>: Sendable {
    let inlet: Inlet<Input>
    private var core: ActionCore { inlet.core }

    /// The state now.
    public var snapshot: ActionSnapshot { core.snapshot }
    /// Whether a trigger would be let in now.
    public var isEnabled: Bool { snapshot.isEnabled }
    /// Whether anything runs now.
    public var isExecuting: Bool { snapshot.isExecuting }

    /// Runs the action, if it may.
    public func trigger(_ input: Input) { _ = inlet.fire(input) }

    /// Calls `body` on the main actor with the snapshot now, and then with each later one, in order; at once, when the calling
    /// code is there.
    public func observeSnapshots(_ body: @escaping @MainActor (ActionSnapshot) -> Void) -> Subscription {
        observeSnapshots(on: .main, Self.onMain(body))
    }

    /// Calls `body` with the snapshot now, and then with each later one, in order.
    public func observeSnapshots(
        on delivery: Delivery, _ body: @escaping @Sendable (ActionSnapshot) -> Void
    ) -> Subscription {
        core.observeSnapshots(on: delivery, body)
    }

    /// Calls `body` on the main actor with each failure of an execution from now on.
    public func observeFailures(_ body: @escaping @MainActor (ActionFailure) -> Void) -> Subscription {
        observeFailures(on: .main, Self.onMain(body))
    }

    /// Calls `body` with each failure of an execution from now on.
    public func observeFailures(
        on delivery: Delivery, _ body: @escaping @Sendable (ActionFailure) -> Void
    ) -> Subscription {
        core.observeFailures(on: delivery, body)
    }

    /// Calls `body` on the main actor for each trigger from now on that was not let in, or lost its place in the line: no failure.
    public func observeRejections(_ body: @escaping @MainActor (DisabledReason) -> Void) -> Subscription {
        observeRejections(on: .main, Self.onMain(body))
    }

    /// Calls `body` for each trigger from now on that was not let in, or lost its place in the line: no failure.
    public func observeRejections(
        on delivery: Delivery, _ body: @escaping @Sendable (DisabledReason) -> Void
    ) -> Subscription {
        core.observeRejections(on: delivery, body)
    }

    /// For a delivery on the main actor.
    private static func onMain<Value: Sendable>(_ body: @escaping @MainActor (Value) -> Void)
        -> @Sendable (Value) -> Void
    {
        { value in MainActor.assumeIsolated { body(value) } }
    }

    /// Ties a control to the action: it triggers it, and is enabled while it may.
    ///
    /// A binding that the control has is ended. The control is held weakly.
    ///
    /// - Parameter input: what the action is given for what the control gives.
    /// - Returns: ends the binding, when it is unbound or released, or when the control goes, or gets another `onTrigger`.
    @MainActor public func bind<Control: Binding>(
        to control: Control, options: BindingOptions = .init(),
        input: @escaping @MainActor (Control.Input) -> Input
    ) -> ActionBinding {
        ActionBinding(control, inlet, options, input)
    }

    /// Ties a control to the action: see ``bind(to:options:input:)``.
    @MainActor public func bind<Control: Binding>(to control: Control, options: BindingOptions = .init())
        -> ActionBinding where Control.Input == Input
    {
        ActionBinding(control, inlet, options) { $0 }
    }
}

extension ActionFacade where Input == Void {
    /// Runs the action, if it may.
    public func trigger() { trigger(()) }
}
