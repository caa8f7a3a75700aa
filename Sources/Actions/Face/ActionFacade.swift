// ActionFacade.swift - the view's side of an action: whether it may be triggered, whether it is running, and its failures.

public import Runs

/// The view's side of an action. Its observers are notified on the main actor unless a place is given; the owner's are notified
/// inline by default. The facade provides no results, and changes neither policy nor limit. The only executions that it can
/// cancel are those triggered through one of its bindings, on unbinding, if the options say so.
public struct ActionFacade<Input: Sendable>: Sendable {
    let inlet: Inlet<Input>
    private var core: ActionCore { inlet.core }

    /// The current state.
    public var snapshot: ActionSnapshot { core.snapshot }
    /// Whether a trigger would be admitted now.
    public var isEnabled: Bool { snapshot.isEnabled }
    /// Whether any execution is running now.
    public var isExecuting: Bool { snapshot.isExecuting }

    /// Runs the action if it may run.
    public func trigger(_ input: Input) { _ = inlet.fire(input) }

    /// Calls `body` on the main actor with the current snapshot, and then with each later one, in order; the first time at once,
    /// if the caller is on the main actor.
    public func observeSnapshots(_ body: @escaping @MainActor (ActionSnapshot) -> Void) -> Subscription {
        observeSnapshots(on: .main, Self.onMain(body))
    }

    /// Calls `body` with the current snapshot, and then with each later one, in order.
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

    /// Calls `body` on the main actor for each trigger from now on that is not admitted, or loses its place in the line. This is
    /// not a failure.
    public func observeRejections(_ body: @escaping @MainActor (DisabledReason) -> Void) -> Subscription {
        observeRejections(on: .main, Self.onMain(body))
    }

    /// Calls `body` for each trigger from now on that is not admitted, or loses its place in the line. This is not a failure.
    public func observeRejections(
        on delivery: Delivery, _ body: @escaping @Sendable (DisabledReason) -> Void
    ) -> Subscription {
        core.observeRejections(on: delivery, body)
    }

    /// Adapts `body` for delivery on the main actor.
    private static func onMain<Value: Sendable>(_ body: @escaping @MainActor (Value) -> Void)
        -> @Sendable (Value) -> Void
    {
        { value in MainActor.assumeIsolated { body(value) } }
    }

    /// Binds a control to the action: the control triggers the action, and is enabled while a trigger would be admitted.
    ///
    /// An existing binding of the control is ended. The control is held weakly.
    ///
    /// - Parameter input: converts the control's input to the action's.
    /// - Returns: the binding, which ends when it is unbound or released, or when the control is deallocated or gets another
    ///   `onTrigger`.
    @MainActor public func bind<Control: Binding>(
        to control: Control, options: BindingOptions = .init(),
        input: @escaping @MainActor (Control.Input) -> Input
    ) -> ActionBinding {
        ActionBinding(control, inlet, options, input)
    }

    /// Binds a control to the action: see ``bind(to:options:input:)``.
    @MainActor public func bind<Control: Binding>(to control: Control, options: BindingOptions = .init())
        -> ActionBinding where Control.Input == Input
    {
        ActionBinding(control, inlet, options) { $0 }
    }
}

extension ActionFacade where Input == Void {
    /// Runs the action if it may run.
    public func trigger() { trigger(()) }
}
