// Binding.swift - a control, menu entry, key or command line that triggers an action and shows its state.

import CompositeOperationsBasics
internal import Runs

/// A control that an action can be bound to.
@MainActor public protocol Binding: AnyObject, Sendable {
    /// The input that it gives when it is activated.
    associatedtype Input: Sendable
    /// To be called when it is activated.
    var onTrigger: (@MainActor (Input) -> Void)? { get set }
    /// Whether it can be activated now.
    func setEnabled(_ isEnabled: Bool)
    /// Whether the action runs. The default does nothing.
    func setExecuting(_ isExecuting: Bool)
    /// Shows a failure: where ``BindingOptions/presentsFailures`` says so. The default does nothing.
    func present(_ failure: ActionFailure)
}

extension Binding {
    /// Does nothing.
    public func setExecuting(_ isExecuting: Bool) {}
    /// Does nothing.
    public func present(_ failure: ActionFailure) {}
}

/// How a control is tied to an action.
public struct BindingOptions: Sendable {
    /// Whether the control is told of failures.
    public var presentsFailures = false
    /// Whether executions that this control has triggered are cancelled with the binding.
    public var cancelsOnUnbind = false
    /// Whether the control is enabled after the binding; nil: as it was, and so it stays when it gets another `onTrigger`.
    public var enabledAfterUnbind: Bool?

    /// Creates the defaults.
    public init() {}
}

/// A control that is tied to an action, until this is released or told to unbind.
@MainActor public final class ActionBinding {
    /// The bindings of all controls, weakly: a control has one at a time. Entries go with their bindings.
    private static var current: [ObjectIdentifier: WeakBinding] = [:]

    private struct WeakBinding {
        weak var binding: ActionBinding?
        /// Says which it is, also while that is on its way to the main actor to be deinitialized.
        /// A number, no reference or `ObjectIdentifier`: an optional struct of a weak reference and one of those is laid out
        /// wrongly by Swift 6.3.1, and reading it is a segmentation fault.
        let number: Int
    }

    private static var last = 0
    private let number: Int

    private let control: ObjectIdentifier
    private var subscriptions: [Subscription] = []
    private var triggers: [Trigger] = []
    /// Takes the control out; nil: it was.
    private var release: (@MainActor () -> Void)?
    private let instance = Instance(.bindings)

    init<Control: Binding, Input: Sendable>(
        _ control: Control, _ inlet: Inlet<Input>, _ options: BindingOptions,
        _ input: @escaping @MainActor (Control.Input) -> Input
    ) {
        self.control = ObjectIdentifier(control)
        Self.last += 1
        number = Self.last
        // That of a control which was here before and is gone holds nothing of this one.
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
            // Code that was told of the trigger may have ended the binding.
            if let self, self.release != nil { self.keep(trigger) } else { trigger.cancel() }
        }
        // At once, also where the first notification has to wait for others.
        let core = inlet.core
        let snapshot = core.snapshot
        control.setEnabled(snapshot.isEnabled)
        control.setExecuting(snapshot.isExecuting)
        guard release != nil else { return }  // the control has another one already
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

    /// Ends the binding: the control triggers nothing, and is told nothing any more. Once; later it does nothing.
    public func unbind() { end(leavingControl: false) }

    /// - Parameter leavesControl: it is going, or somebody else has given it what to call: nothing of it is touched.
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

/// The control's hold on its binding: when the control goes, or gets another closure to call, this goes, too.
@MainActor private final class Tether {
    private weak let binding: ActionBinding?
    init(_ binding: ActionBinding) { self.binding = binding }
    isolated deinit { binding?.end(leavingControl: true) }
}
