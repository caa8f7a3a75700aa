// FakeControl.swift - a substitute for a button or a key: it prints what a user would see.

import Actions

@MainActor final class FakeControl: Binding {
    let name: String
    var onTrigger: (@MainActor (String) -> Void)?
    private var isEnabled: Bool?

    init(_ name: String) { self.name = name }

    func setEnabled(_ isEnabled: Bool) {
        if isEnabled != self.isEnabled { print("\(name) \(isEnabled ? "on" : "off")") }
        self.isEnabled = isEnabled
    }

    func present(_ failure: ActionFailure) { print("\(name) shows: \(failure.message)") }

    /// Simulates a user who activates the control.
    func press(_ text: String) { if isEnabled == true { onTrigger?(text) } }

    /// Simulates a stale event, which arrives although the control is disabled.
    func force(_ text: String) { onTrigger?(text) }
}
