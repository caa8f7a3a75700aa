// Binding.swift - a control, menu entry, key or command line that triggers an action and shows its state.

import CompositeOperationsBasics
internal import Runs

/// A control that an action can be bound to.
@MainActor public protocol Binding: AnyObject, Sendable {
    /// The input that the control provides when it is activated.
    associatedtype Input: Sendable
    /// Called by the control when it is activated.
    var onTrigger: (@MainActor (Input) -> Void)? { get set }
    /// Called to show whether the control can be activated.
    func setEnabled(_ isEnabled: Bool)
    /// Called to show whether the action is running. The default does nothing.
    func setExecuting(_ isExecuting: Bool)
    /// Shows a failure; called if ``BindingOptions/presentsFailures`` is set. The default does nothing.
    func present(_ failure: ActionFailure)
}

extension Binding {
    /// Does nothing.
    public func setExecuting(_ isExecuting: Bool) {}
    /// Does nothing.
    public func present(_ failure: ActionFailure) {}
}

/// How a control is bound to an action.
public struct BindingOptions: Sendable {
    /// Whether the control is notified of failures.
    public var presentsFailures = false
    /// Whether executions triggered by this control are cancelled when the binding ends.
    public var cancelsOnUnbind = false
    /// Whether the control is enabled after the binding ends; nil leaves it unchanged, and so does assigning another
    /// `onTrigger` to the control.
    public var enabledAfterUnbind: Bool?

    /// Creates the default options.
    public init() {}
}

/// The binding of a control to an action, until it is released or unbound.
@MainActor public final class ActionBinding {
    /// The bindings of all controls, held weakly: a control has one at a time. An entry is removed when its binding ends.
    private static var current: [ObjectIdentifier: WeakBinding] = [:]

    private struct WeakBinding {
        weak var binding: ActionBinding?
        /// Identifies the binding, even while it is waiting to be deinitialized on the main actor. A number, not a reference
        /// or an `ObjectIdentifier`: Swift 6.3.1 lays out an optional struct of a weak reference and either of these
        /// incorrectly, so that reading it crashes.
        let number: Int
    }

    private static var last = 0
    private let number: Int

    private let control: ObjectIdentifier
    private var subscriptions: [Subscription] = []
    private var triggers: [Trigger] = []
    /// Releases the control; nil if that was already done.
    private var release: (@MainActor () -> Void)?
    private let instance = Instance(.bindings)

    init<Control: Binding, Input: Sendable>(
        _ control: Control, _ inlet: Inlet<Input>, _ options: BindingOptions,
        _ input: @escaping @MainActor (Control.Input) -> Input
    ) {
        self.control = ObjectIdentifier(control)
        Self.last += 1
        number = Self.last
        // A stale entry of a deallocated control with the same identifier does not affect this one.
        Self.current[self.control]?.binding?.unbind()
        Self.current[self.control] = WeakBinding(binding: self, number: number)
        release = { [weak control] in
            control?.onTrigger = nil
            if let isEnabled = options.enabledAfterUnbind { control?.setEnabled(isEnabled) }
        }
        let tether = Tether(self)
        control.onTrigger = { [weak self] given in
            withExtendedLifetime(tether) {}
            let trigger = inlet.fire(input(given))
            guard options.cancelsOnUnbind else { return }
            // An observer of the trigger may have ended the binding.
            if let self, self.release != nil { self.keep(trigger) } else { trigger.cancel() }
        }
        // Set at once, even if the first notification has to wait behind others.
        let core = inlet.core
        let snapshot = core.snapshot
        control.setEnabled(snapshot.isEnabled)
        control.setExecuting(snapshot.isExecuting)
        guard release != nil else { return }  // the control already has another binding
        subscriptions.append(
            core.observeSnapshots(on: .main) { [weak self, weak control] snapshot in
                MainActor.assumeIsolated {
                    guard let control else { return self?.unbind() ?? () }
                    guard self?.release != nil else { return }
                    control.setEnabled(snapshot.isEnabled)
                    control.setExecuting(snapshot.isExecuting)
                }
            })
        if options.presentsFailures {
            subscriptions.append(
                core.observeFailures(on: .main) { [weak self, weak control] failure in
                    MainActor.assumeIsolated { if self?.release != nil { control?.present(failure) } }
                })
        }
    }

    isolated deinit { unbind() }

    private func keep(_ trigger: Trigger) {
        triggers.removeAll { $0.isOver }
        triggers.append(trigger)
    }

    /// Ends the binding: the control no longer triggers the action or receives notifications. Further calls have no effect.
    public func unbind() { end(leavingControl: false) }

    /// - Parameter leavesControl: whether the control is left unchanged, because it is being deallocated or has been given
    ///   another closure.
    fileprivate func end(leavingControl leavesControl: Bool) {
        guard let release else { return }
        self.release = nil
        for subscription in subscriptions { subscription.cancel() }
        subscriptions = []
        if Self.current[control]?.number == number {
            Self.current[control] = nil
            if !leavesControl { release() }
        }
        let triggers = triggers
        self.triggers = []
        for trigger in triggers { trigger.cancel() }
    }
}

/// The control's link to its binding: released when the control is deallocated or gets another closure.
@MainActor private final class Tether {
    private weak let binding: ActionBinding?
    init(_ binding: ActionBinding) { self.binding = binding }
    isolated deinit { binding?.end(leavingControl: true) }
}
