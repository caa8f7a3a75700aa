// bound-search - one action, a button and a key that trigger it, and a connection that comes and goes.
//
// The controls are never enabled or disabled explicitly: they follow the action. Nothing is triggered twice at once. A
// trigger that arrives at the wrong moment is refused, not silently lost.

import Actions
import Commands

struct NoAnswer: Error {}

let online = LiveValue(false)
// The action answers on the main actor, and therefore only after this file has pressed both controls, so the output is always
// the same.
let search = Action<String, Int>("search", when: Precondition(online), describe: { _ in "no answer" }) {
    @MainActor query, _, _ in
    guard !query.isEmpty else { throw NoAnswer() }
    return query.count
}

let button = FakeControl("button")
let key = FakeControl("key")
var options = BindingOptions()
options.presentsFailures = true
let bindings = [search.facade.bind(to: button, options: options), search.facade.bind(to: key)]

let hits = search.observeEvents(on: .main) { event in
    if case .value(_, let count) = event { print("\(count) hits") }
}
let refused = search.facade.observeRejections { reason in print("refused: \(reason)") }

online.set(true)
button.press("swift")
key.force("actor")
await idle(search)
button.press("")
await idle(search)
online.set(false)
key.force("late")
withExtendedLifetime((bindings, hits, refused)) {}

/// Waits until nothing runs, and the main actor was notified of everything that happened before.
@MainActor func idle(_ action: Action<String, Int>) async {
    func wait(for condition: @escaping @Sendable (ActionSnapshot) -> Bool) async {
        let (snapshots, source) = AsyncStream.makeStream(of: ActionSnapshot.self)
        let subscription = action.observeSnapshots(on: .main) { source.yield($0) }
        for await snapshot in snapshots where condition(snapshot) { break }
        subscription.cancel()
    }
    await wait { !$0.isExecuting }
    // A new observer is notified of the current state, after all earlier notifications.
    await wait { _ in true }
}
