// LiveValueTests.swift - live values, derived and validated ones, and preconditions.

import Actions
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct LiveValueTests {
    @Test func `an observer gets the value now, and then each change in order, until it is cancelled`() {
        let value = LiveValue(1), log = Log()
        let subscription = value.observe { log.add("\($0)") }
        value.set(2)
        #expect(value.swap(3) == 2)
        #expect(
            value.modify { value in
                value += 1
                return "answer"
            } == "answer")
        subscription.cancel()
        value.set(9)
        #expect(log.take() == ["1", "2", "3", "4"])
        #expect(value.value == 9)
    }

    @Test func `a released subscription ends`() {
        let value = LiveValue(1), log = Log()
        _ = value.observe { log.add("\($0)") }
        value.set(2)
        #expect(log.take() == ["1"])
    }

    @Test func `a change that throws changes and reports nothing`() {
        let value = LiveValue(1), log = Log()
        let subscription = value.observe { log.add("\($0)") }
        #expect(throws: TestError.self) {
            try value.modify { value in
                value = 5
                throw TestError()
            }
        }
        #expect(value.value == 1)
        #expect(log.take() == ["1"])
        withExtendedLifetime(subscription) {}
    }

    @Test func `an observer may change its subject, and is notified of that next`() {
        let value = LiveValue(0), log = Log()
        let subscription = value.observe { [value] now in
            log.add("\(now)")
            if now < 3 { value.set(now + 1) }
            log.add("after \(now)")
        }
        #expect(log.take() == ["0", "after 0", "1", "after 1", "2", "after 2", "3", "after 3"])
        subscription.cancel()
    }

    @Test func `from many threads: each change is reported once, in order`() async {
        let value = LiveValue(0), seen = Locked<[Int]>([])
        let subscription = value.observe { now in seen.withLock { $0.append(now) } }
        _ = await offThread { concurrently(4) { _ in for _ in 0..<500 { value.modify { $0 += 1 } } } }
        // The thread that delivers last has returned, so every value was delivered.
        #expect(seen.withLock { $0 } == Array(0...2_000))
        withExtendedLifetime(subscription) {}
    }

    @Test func `a derived value matches its source at every read, and reports changes`() {
        let value = LiveValue(1), log = Log()
        let text = value.map { "\($0 * 2)" }.map { "<\($0)>" }
        let subscription = text.observe { log.add($0) }
        for number in 2...4 {
            value.set(number)
            #expect(text.value == "<\(number * 2)>")
        }
        #expect(log.take() == ["<2>", "<4>", "<6>", "<8>"])
        withExtendedLifetime(subscription) {}
    }

    @Test func `values are the current one and the changes, and end with the value`() async {
        var value: LiveValue<Int>? = LiveValue(1)
        let stream = value?.values
        value?.set(2)
        value?.set(3)
        value = nil
        var seen: [Int] = []
        if let stream { for await number in stream { seen.append(number) } }
        #expect(seen == [1, 2, 3])
    }

    @Test func `setting a derived value stops the process`() async {
        await #expect(processExitsWith: .failure) { LiveValue(1).map { $0 }.set(2) }
    }

    @Test(arguments: ["value", "set", "observe"])
    func `a change that uses the value it changes stops the process`(
        use: String
    ) async {
        await #expect(processExitsWith: .failure) { [use] in
            let value = LiveValue(1)
            value.modify { _ in
                switch use {
                case "value": _ = value.value
                case "set": value.set(2)
                default: _ = value.observe { _ in }
                }
            }
        }
    }

    @Test func `leftovers of a change that throws are released under no lock`() {
        let value = LiveValue<Leaver?>(nil)
        #expect(throws: TestError.self) {
            try value.modify { current in
                current = Leaver { _ = value.value }
                throw TestError()
            }
        }
        #expect(value.value == nil)
    }

    @Test func `valid proposals are accepted, coerced replaced, invalid refused`() {
        let volume = ValidatedValue(5) { proposed, current in
            if proposed < 0 { return .invalid("below 0, and it is \(current)") }
            return proposed > 10 ? .coerced(10) : .valid
        }
        let log = Log()
        let subscription = volume.value.observe { log.add("\($0)") }
        volume.propose(7)
        #expect(volume.verdict.value.isValid)
        volume.propose(99)
        #expect(volume.value.value == 10)
        volume.propose(-1)
        guard case .invalid(let text) = volume.verdict.value else {
            Issue.record("\(volume.verdict.value)")
            return
        }
        #expect(text == "below 0, and it is 10")
        #expect(volume.value.value == 10)
        #expect(log.take() == ["5", "7", "10"])
        withExtendedLifetime(subscription) {}
    }

    @Test func `a changed dependency revalidates the last proposal, even a refused one`() {
        let most = LiveValue(10)
        let volume = ValidatedValue(5, dependingOn: most) { proposed, _, most in
            proposed <= most ? .valid : .invalid("too much")
        }
        volume.propose(20)
        #expect(volume.value.value == 5)
        #expect(!volume.verdict.value.isValid)
        most.set(30)
        #expect(volume.value.value == 20)
        #expect(volume.verdict.value.isValid)
        most.set(1)
        #expect(volume.value.value == 20)
        #expect(!volume.verdict.value.isValid)
    }

    @Test func `a dependency that changes during validation repeats the validation`() {
        let most = LiveValue(5), isFirst = Locked(true)
        let volume = ValidatedValue(0, dependingOn: most) { proposed, _, most in
            let raises = isFirst.withLock { isFirst in
                defer { if proposed == 7 { isFirst = false } }
                return isFirst && proposed == 7
            }
            if raises { _ = concurrently(1) { _ in raise() } }
            return proposed <= most ? .valid : .invalid("too much")
        }
        @Sendable func raise() { most.set(10) }
        volume.propose(7)
        #expect(volume.verdict.value.isValid)
        #expect(volume.value.value == 7)
    }

    @Test(.promises("A1")) func `A1: preconditions combine`() {
        let flag = LiveValue(true), number = LiveValue(3), text = LiveValue<String?>("a")
        let large = Precondition(number, where: { $0 > 2 })
        let both = large.and(Precondition(unwrapping: text))
        #expect(both.current?.0 == 3 && both.current?.1 == "a")
        text.set(nil)
        #expect(both.current == nil)
        #expect(large.flag.current != nil)
        #expect(Precondition(flag).current != nil && (!Precondition(flag)).current == nil)
        #expect(Precondition.always.current != nil)
        #expect(Precondition.all([]).current != nil && Precondition.any([]).current == nil)
        let members = [Precondition(flag), large.flag]
        number.set(0)
        #expect(Precondition.all(members).current == nil && Precondition.any(members).current != nil)
        flag.set(false)
        #expect(Precondition.any(members).current == nil)
        #expect(Precondition(number, resolve: { $0 == 0 ? "none" : nil }).current == "none")
    }

    @Test(.promises("A5")) func `A5: each source of a combined precondition is followed`() {
        let flag = LiveValue(false), number = LiveValue(0)
        let valid = ValidatedValue(0) { proposed, _ in proposed < 0 ? .invalid("below 0") : .valid }
        let action = Action<Void, Void>(
            "work",
            when: Precondition.all([
                Precondition(flag), !Precondition(number, where: { $0 > 5 }).flag, Precondition(valid).flag,
                .any([Precondition(flag), .always]),
            ]), inline: { _, _ in })
        #expect(!action.snapshot.isEnabled)
        flag.set(true)
        #expect(action.snapshot.isEnabled)
        number.set(6)
        #expect(!action.snapshot.isEnabled)
        number.set(5)
        #expect(action.snapshot.isEnabled)
        valid.propose(-1)
        #expect(!action.snapshot.isEnabled)
        valid.propose(1)
        #expect(action.snapshot.isEnabled)
    }
}

/// Calls a closure when deallocated.
private final class Leaver: Sendable {
    private let leave: @Sendable () -> Void
    init(_ leave: @escaping @Sendable () -> Void) { self.leave = leave }
    deinit { leave() }
}
