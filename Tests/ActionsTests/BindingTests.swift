// BindingTests.swift - controls that trigger actions and show their state (A4 ... A6, A9, A10, R8).

import Actions
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@MainActor private final class Control: Binding {
    var onTrigger: (@MainActor (Int) -> Void)?
    private(set) var isEnabled: Bool?
    private(set) var isExecuting: Bool?
    private(set) var failures: [String] = []
    func setEnabled(_ isEnabled: Bool) { self.isEnabled = isEnabled }
    func setExecuting(_ isExecuting: Bool) { self.isExecuting = isExecuting }
    func present(_ failure: ActionFailure) { failures.append(failure.message) }
    func press(_ input: Int) { if isEnabled == true { onTrigger?(input) } }
}

/// A control that only triggers.
@MainActor private final class Key: Binding {
    var onTrigger: (@MainActor (String) -> Void)?
    func setEnabled(_ isEnabled: Bool) {}
}

/// A control that unbinds as soon as it is notified of an execution.
@MainActor private final class Quitter: Binding {
    var onTrigger: (@MainActor (Int) -> Void)?
    var binding: ActionBinding?
    func setEnabled(_ isEnabled: Bool) {}
    func setExecuting(_ isExecuting: Bool) { if isExecuting { binding?.unbind() } }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) @MainActor struct BindingTests {
    @Test(.promises("A5")) func `A5: a control is enabled while its action is, and shows that it runs`() async
    {
        let works = Works(), online = LiveValue(false)
        let action = Action<Int, Int>(
            "work", when: Precondition(online), work: { input, _, _ in try await works.run(input) })
        let control = Control()
        let binding = action.facade.bind(to: control)
        #expect(control.isEnabled == false && control.isExecuting == false)
        online.set(true)
        #expect(control.isEnabled == true)
        control.press(1)
        #expect(control.isEnabled == false && control.isExecuting == true)
        await works.begun(1)
        works.end(1, .success(1))
        #expect(await eventually { control.isEnabled == true && control.isExecuting == false })
        withExtendedLifetime(binding) {}
    }

    @Test(.promises("A6", "A10", "Z3")) func `A10: many controls, keys and callers share a guard`() async {
        let works = Works(), log = Log()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        let rejections = action.facade.observeRejections { log.add("\($0)") }
        let controls = (0..<3).map { _ in Control() }, key = Key()
        let bindings =
            controls.map { action.facade.bind(to: $0) } + [action.facade.bind(to: key) { $0.count }]
        key.onTrigger?("four")
        #expect(controls.allSatisfy { $0.isEnabled == false })
        // A stale event: it arrives although the control is disabled (A6).
        controls[0].onTrigger?(9)
        action.facade.trigger(8)
        #expect(log.take() == ["busy", "busy"])
        await works.begun(1)
        works.end(4, .success(4))
        #expect(await eventually { controls.allSatisfy { $0.isEnabled == true } })
        withExtendedLifetime((bindings, rejections)) {}
    }

    @Test(.promises("A13")) func `A13: only a binding that presents failures does`() async {
        let action = Action<Int, Int>(
            "work", describe: { _ in "no answer" }, work: { throw TestError(number: $0) })
        let loud = Control(), silent = Control()
        var options = BindingOptions()
        options.presentsFailures = true
        let bindings = [action.facade.bind(to: loud, options: options), action.facade.bind(to: silent)]
        silent.press(1)
        #expect(await eventually { loud.failures == ["no answer"] && silent.isEnabled == true })
        #expect(silent.failures.isEmpty)
        withExtendedLifetime(bindings) {}
    }

    @Test(.promises("A4"))
    func `A4: unbound, by call or release, a control triggers nothing and gets no notice`() async {
        let flag = LiveValue(true), log = Log()
        let action = Action<Int, Int>(
            "work", when: Precondition(flag),
            inline: { input, _ in
                log.add("\(input)")
                return input
            })
        let control = Control()
        var options = BindingOptions()
        options.enabledAfterUnbind = true
        var binding: ActionBinding? = action.facade.bind(to: control, options: options)
        control.press(1)
        flag.set(false)
        #expect(control.isEnabled == false)
        binding?.unbind()
        #expect(control.isEnabled == true && control.onTrigger == nil)
        binding?.unbind()
        binding = action.facade.bind(to: control)
        #expect(control.isEnabled == false)
        binding = nil
        #expect(control.onTrigger == nil)
        flag.set(true)
        #expect(control.isEnabled == false)
        #expect(log.take() == ["1"])
    }

    @Test(.promises("R8", "Z2"))
    func `R8: a second binding ends the first, and the old action never touches the control`() async {
        let log = Log(), flag = LiveValue(false)
        let old = Action<Int, Int>(
            "old", when: Precondition(flag),
            inline: { input, _ in
                log.add("old")
                return input
            })
        let new = Action<Int, Int>(
            "new", when: .always,
            inline: { input, _ in
                log.add("new")
                return input
            })
        let control = Control()
        let first = old.facade.bind(to: control)
        let second = new.facade.bind(to: control)
        #expect(control.isEnabled == true)
        control.press(1)
        flag.set(true)
        flag.set(false)
        #expect(control.isEnabled == true)
        first.unbind()
        control.press(2)
        #expect(log.take() == ["new", "new"])
        withExtendedLifetime((first, second)) {}
    }

    /// A control that retains every closure it was ever given.
    private final class Hoarder: Binding {
        private(set) var all: [@MainActor (Int) -> Void] = []
        private(set) var isEnabled: Bool?
        var onTrigger: (@MainActor (Int) -> Void)? { didSet { all += [oldValue].compactMap(\.self) } }
        func setEnabled(_ isEnabled: Bool) { self.isEnabled = isEnabled }
    }

    @Test func `R8: a second binding ends the first, even if the control keeps its closures`() async {
        let flag = LiveValue(false)
        let old = Action<Int, Int>("old", when: Precondition(flag), inline: { input, _ in input })
        let new = Action<Int, Int>("new", when: .always, inline: { input, _ in input })
        let control = Hoarder()
        let bindings = [old.facade.bind(to: control), new.facade.bind(to: control)]
        #expect(control.all.count == 1 && control.isEnabled == true)
        flag.set(true)
        flag.set(false)
        #expect(control.isEnabled == true)
        withExtendedLifetime(bindings) {}
    }

    @Test(.promises("R8")) func `R8: after a binding ends neither side refers to the other`() async {
        weak var weakControl: Control?
        weak var weakAction: Action<Int, Int>?
        do {
            let control = Control()
            let action = Action<Int, Int>("work") { $0 }
            (weakControl, weakAction) = (control, action)
            let binding = action.facade.bind(to: control)
            control.press(1)
            binding.unbind()
        }
        #expect(await eventually { weakControl == nil && weakAction == nil })
    }

    @Test(.promises("R8")) func `R8: nothing retains a control, and its binding ends with it`() async {
        let flag = LiveValue(false)
        let action = Action<Int, Int>("work", when: Precondition(flag), inline: { input, _ in input })
        weak var weakControl: Control?
        var binding: ActionBinding?
        do {
            let control = Control()
            weakControl = control
            binding = action.facade.bind(to: control)
        }
        #expect(weakControl == nil)
        flag.set(true)
        // A new control may be allocated at the freed control's address.
        let next = Control()
        let second = action.facade.bind(to: next)
        #expect(next.isEnabled == true)
        binding = nil
        next.press(1)
        #expect(next.onTrigger != nil)
        withExtendedLifetime((binding, second)) {}
    }

    @Test(.promises("R8"))
    func `R8: a control given another target ends its binding, and keeps the target`()
        async
    {
        let log = Log(), flag = LiveValue(true)
        let action = Action<Int, Int>(
            "work", when: Precondition(flag),
            inline: { input, _ in
                log.add("\(input)")
                return input
            })
        let control = Control()
        var options = BindingOptions()
        options.enabledAfterUnbind = false
        for isKept in [true, false] {
            var binding: ActionBinding? = action.facade.bind(to: control, options: options)
            control.press(1)
            let mine: @MainActor (Int) -> Void = { log.add("mine \($0)") }
            control.onTrigger = isKept ? mine : nil
            #expect((control.onTrigger != nil) == isKept)
            control.press(2)
            #expect(log.take() == (isKept ? ["1", "mine 2"] : ["1"]))
            // The binding has ended: the action no longer drives the control.
            flag.set(false)
            #expect(control.isEnabled == true)
            flag.set(true)
            binding?.unbind()
            binding = nil
            #expect((control.onTrigger != nil) == isKept && control.isEnabled == true)
        }
    }

    @Test(.promises("R8")) func `R8: a released control ends its binding at once, though its token is kept`()
        async
    {
        let works = Works()
        var action: Action<Int, Int>? = Action("work") { try await works.run($0) }
        let events = action?.events
        var options = BindingOptions()
        options.cancelsOnUnbind = true
        var control: Control? = Control()
        let binding = control.flatMap { action?.facade.bind(to: $0, options: options) }
        let execution = Locked<ExecutionID?>(nil)
        let started = action?.observeEvents { event in
            if case .started(let id) = event { execution.withLock { $0 = id } }
        }
        control?.press(1)
        await works.begun(1)
        control = nil
        // The execution was asked to cancel. The token retains neither the execution nor anything that the execution
        // retains.
        works.end(1, .failure(CancellationError()))
        action = nil
        var seen: [String] = []
        if let events { for await event in events { seen.append(event.text) } }
        #expect(seen == ["started", "cancelled"] && execution.withLock { $0 } != nil)
        withExtendedLifetime((binding, started)) {}
    }

    @Test func `a released control cancels its executions, where its binding says so`() async {
        let wasCancelled = Mail<Bool>(), begun = Mail<Void>()
        let action = Action<Int, Void>("work") { _ in
            begun.send(())
            try? await Task.sleep(for: .seconds(3600))
            wasCancelled.send(Task.isCancelled)
        }
        var options = BindingOptions()
        options.cancelsOnUnbind = true
        var control: Control? = Control()
        let binding = control.map { action.facade.bind(to: $0, options: options) }
        control?.press(1)
        await begun.next()
        control = nil
        #expect(await wasCancelled.next())
        withExtendedLifetime(binding) {}
    }

    @Test func `a binding set to do so cancels its control's executions at its end`() async {
        let works = Works()
        let action = Action<Int, Int>("work", policy: .queue(3)) { try await works.run($0) }
        let control = Control()
        var options = BindingOptions()
        options.cancelsOnUnbind = true
        let binding = action.facade.bind(to: control, options: options)
        let other = action.trigger(1)
        control.press(2)
        control.press(3)
        await works.begun(1)
        binding.unbind()
        #expect(action.snapshot.text == "on busy 1 0")
        works.end(1, .success(1))
        #expect(await other.outcome.text == "finished 1")
        #expect(works.count == 1)
    }

    @Test(.promises("A5"))
    func `a control shows the state when bound, even with notifications in flight to main`() {
        let flag = LiveValue(true)
        let action = Action<Int, Int>("work", when: Precondition(flag), inline: { input, _ in input })
        let watching = action.facade.observeSnapshots { _ in }
        _ = concurrently(1) { _ in flag.set(false) }
        let control = Control()
        let binding = action.facade.bind(to: control)
        #expect(control.isEnabled == false && control.isExecuting == false)
        withExtendedLifetime((watching, binding)) {}
    }

    @Test(.promises("R8"))
    func `R8: a binding released elsewhere leaves its successor alone`() async {
        let action = Action<Int, Int>("work", when: .always, inline: { input, _ in input })
        let control = Control()
        let first = Locked<ActionBinding?>(action.facade.bind(to: control))
        _ = concurrently(1) { _ in first.withLock { $0 = nil } }
        let second = action.facade.bind(to: control)
        // Runs after any work already enqueued on the main actor.
        await Task { @MainActor in }.value
        #expect(control.onTrigger != nil)
        withExtendedLifetime(second) {}
    }

    @Test func `an execution whose control unbinds during its notice is cancelled, too`() async {
        let works = Works()
        let action = Action<Int, Bool>(
            "work", when: .always,
            work: { input, _, context in
                _ = try await works.run(input)
                return context.isCancelled
            })
        var events = action.events.makeAsyncIterator()
        let control = Quitter()
        var options = BindingOptions()
        options.cancelsOnUnbind = true
        control.binding = action.facade.bind(to: control, options: options)
        control.onTrigger?(1)
        await works.begun(1)
        works.end(1, .success(1))
        while let event = await events.next() {
            guard case .value(_, let isCancelled) = event else { continue }
            #expect(isCancelled)
            break
        }
    }
}
