// OperationLaws.swift - O: operations; C: their cancellation; E: dependencies between them.

import Glibc
import PropertyTesting

private struct Fault: Error {}

extension Trial {
    fileprivate func operation(
        _ number: Int, after: [TestedOperation] = [],
        _ body: @escaping @Sendable (_ isCancelled: @Sendable () -> Bool) throws -> Void = { _ in }
    ) -> TestedOperation {
        tracer.note("operation \(number)")
        return instance.operation!(after) { [tracer, load] isCancelled in
            tracer.note("\(number) begins")
            load.spend(number)
            defer { tracer.note("\(number) ends") }
            try body(isCancelled)
        }
    }
}

/// The reported ends of operations, by number.
private final class Told: Sendable {
    private let ends: Locked<[[TestedOperation.End]]>
    let latch: Latch

    init(_ count: Int) {
        ends = Locked(Array(repeating: [], count: count))
        latch = Latch(count)
    }

    func tell(_ number: Int, _ end: TestedOperation.End) {
        let isFirst = ends.withLock { ends in
            ends[number].append(end)
            return ends[number].count == 1
        }
        if isFirst { latch.leave() }
    }

    var all: [[TestedOperation.End]] { ends.withLock { $0 } }
}

extension Law {
    static let operations: [Law] = [
        Law(
            "O1", "An operation whose body returns has finished.", needs: [.operations],
            saboteur: .ofOperation("reports every third operation as cancelled") {
                acts, make, after, body in
                var operation = make(after, body)
                if acts.every(3) {
                    operation.whenEnded = { [whenEnded = operation.whenEnded] handler in
                        whenEnded { _ in handler(.cancelled) }
                    }
                }
                return operation
            }
        ) { trial in
            let told = Told(trial.load.total)
            trial.fromAllThreads { number in
                trial.operation(number).whenEnded { told.tell(number, $0) }
            }
            try trial.wait(for: told.latch, "operations that were to end")
            let other = told.all.first { $0.first != .finished }
            try trial.require(
                other == nil, "an operation was reported as \(other?.first?.rawValue ?? "")")
        },

        Law(
            "O2", "An operation whose body throws has failed.", needs: [.operations, .claim(.failures)],
            saboteur: .ofOperation("swallows every third error") { acts, make, after, body in
                make(after) { isCancelled in
                    do { try body(isCancelled) } catch { if !acts.every(3) { throw error } }
                }
            }
        ) { trial in
            let told = Told(trial.load.total)
            trial.fromAllThreads { number in
                trial.operation(number) { _ in throw Fault() }.whenEnded { told.tell(number, $0) }
            }
            try trial.wait(for: told.latch, "operations that were to end")
            let other = told.all.first { $0.first != .failed }
            try trial.require(
                other == nil, "an operation was reported as \(other?.first?.rawValue ?? "")")
        },

        Law(
            "O3", "The end of an operation is reported to a handler once.", needs: [.operations],
            saboteur: .ofOperation("reports every third end twice") { acts, make, after, body in
                var operation = make(after, body)
                if acts.every(3) {
                    operation.whenEnded = { [whenEnded = operation.whenEnded] handler in
                        whenEnded {
                            handler($0)
                            handler($0)
                        }
                    }
                }
                return operation
            }
        ) { trial in
            let told = Told(trial.load.total)
            trial.fromAllThreads { number in
                trial.operation(number).whenEnded { told.tell(number, $0) }
            }
            try trial.wait(for: told.latch, "operations that were to end")
            try trial.settle()
            let most = told.all.map(\.count).max() ?? 0
            try trial.require(most == 1, "an end was reported \(most) times")
        },

        Law(
            "O4", "An end is reported after the body has returned.", needs: [.operations],
            saboteur: .ofOperation("reports each third end when the body begins") { acts, make, after, body in
                guard acts.every(3) else { return make(after, body) }
                let handlers = EndHandlers()
                var operation = make(after) { isCancelled in
                    handlers.tell(.finished)
                    try body(isCancelled)
                }
                operation.whenEnded = handlers.add
                return operation
            }
        ) { trial in
            let (told, over) = (Told(trial.load.total), Locked(Set<Int>()))
            let early = Locked(0)
            trial.fromAllThreads { number in
                let gate = Gate()
                let operation = trial.operation(number) { _ in
                    gate.wait()
                    over.withLock { _ = $0.insert(number) }
                }
                operation.whenEnded { end in
                    if !over.withLock({ $0.contains(number) }) { early.withLock { $0 += 1 } }
                    told.tell(number, end)
                }
                gate.open()
            }
            try trial.wait(for: told.latch, "operations that were to end")
            let count = early.withLock { $0 }
            try trial.require(count == 0, "\(count) ends were reported before the body had returned")
        },

        Law(
            "O5", "A handler that is added after the end is called.",
            needs: [.operations, .claim(.lateHandlers)],
            isOfProgress: true,
            saboteur: .ofOperation("forgets handlers that come after the end") { acts, make, after, body in
                var operation = make(after, body)
                let hasEnded = Locked(false)
                let original = operation.whenEnded
                original { _ in hasEnded.withLock { $0 = true } }
                operation.whenEnded = { handler in
                    if hasEnded.withLock({ $0 }) { acts.act() } else { original(handler) }
                }
                return operation
            }
        ) { trial in
            let (early, late) = (Told(1), Told(1))
            let operation = trial.operation(0)
            operation.whenEnded { early.tell(0, $0) }
            try trial.wait(for: early.latch, "an operation that was to end")
            operation.whenEnded { late.tell(0, $0) }
            try trial.wait(for: late.latch, "a handler that came after the end was to be called")
            try trial.require(early.all == late.all, "the late handler got another end")
        },

        Law(
            "O6", "An operation that fails does not keep others from running.",
            needs: [.operations, .claim(.failures)],
            isOfProgress: true,
            saboteur: Saboteur("stops at the first failure") { instance, acts in
                let (hasFailed, original) = (Locked(false), instance.operation!)
                instance.operation = { after, body in
                    original(after) { isCancelled in
                        if hasFailed.withLock({ $0 }) { acts.hang() }
                        do { try body(isCancelled) } catch {
                            hasFailed.withLock { $0 = true }
                            throw error
                        }
                    }
                }
            }
        ) { trial in
            let told = Told(trial.load.total)
            trial.fromAllThreads { number in
                trial.operation(number) { _ in if number % 3 == 0 { throw Fault() } }
                    .whenEnded { told.tell(number, $0) }
            }
            try trial.wait(for: told.latch, "beside those that fail, operations were to end")
        },
    ]

    // MARK: Cancellation

    private static let canCancel: [Need] = [.operations, .claim(.cancellation)]

    static let cancellations: [Law] = [
        Law(
            "C1", "An operation that is cancelled before it begins never runs.",
            needs: canCancel + [.suspension],
            saboteur: .ofOperation("ignores every third cancel") { acts, make, after, body in
                var operation = make(after, body)
                if acts.every(3) { operation.cancel = {} }
                return operation
            }
        ) { trial in
            let (runs, told) = (Locked(0), Told(trial.load.total))
            trial.instance.suspension!.suspend()
            trial.fromAllThreads { number in
                let operation = trial.operation(number) { _ in runs.withLock { $0 += 1 } }
                operation.whenEnded { told.tell(number, $0) }
                operation.cancel()
            }
            trial.instance.suspension!.resume()
            try trial.wait(for: told.latch, "operations that were cancelled were to end")
            let count = runs.withLock { $0 }
            try trial.require(count == 0, "\(count) ran though they had been cancelled")
        },

        Law(
            "C2", "An operation that is cancelled before it begins ends as cancelled.",
            needs: canCancel + [.suspension],
            saboteur: .ofOperation("reports cancelled operations as finished") {
                acts, make, after, body in
                var operation = make(after, body)
                operation.whenEnded = { [whenEnded = operation.whenEnded] handler in
                    whenEnded { end in
                        if end == .cancelled { acts.act() }
                        handler(.finished)
                    }
                }
                return operation
            }
        ) { trial in
            let told = Told(trial.load.total)
            trial.instance.suspension!.suspend()
            trial.fromAllThreads { number in
                let operation = trial.operation(number)
                operation.whenEnded { told.tell(number, $0) }
                operation.cancel()
            }
            trial.instance.suspension!.resume()
            try trial.wait(for: told.latch, "operations that were cancelled were to end")
            let other = told.all.first { $0.first != .cancelled }
            try trial.require(
                other == nil, "an operation that was cancelled had \(other?.first?.rawValue ?? "")")
        },

        Law(
            "C3", "A cancel after the end changes nothing.", needs: canCancel,
            saboteur: .ofOperation("reports every cancel") { acts, make, after, body in
                var operation = make(after, body)
                let (handlers, cancel) = (EndHandlers(), operation.cancel)
                operation.whenEnded(handlers.tell)
                operation.whenEnded = handlers.add
                operation.cancel = {
                    cancel()
                    acts.act()
                    handlers.tell(.cancelled)
                }
                return operation
            }
        ) { trial in
            let told = Told(1)
            let operation = trial.operation(0)
            operation.whenEnded { told.tell(0, $0) }
            try trial.wait(for: told.latch, "an operation that was to end")
            trial.tracer.note("cancel 0")
            operation.cancel()
            try trial.settle()
            try trial.require(told.all == [[.finished]], "the handler got \(told.all[0].map(\.rawValue))")
        },

        Law(
            "C4", "A body that runs can see that it was cancelled.", needs: canCancel,
            isOfProgress: true,
            saboteur: .ofOperation("hides the cancel from the body") { acts, make, after, body in
                make(after) { _ in
                    try body {
                        acts.act()
                        return false
                    }
                }
            }
        ) { trial in
            let (began, saw, isOver) = (Latch(1), Latch(1), Locked(false))
            defer { isOver.withLock { $0 = true } }
            let operation = trial.operation(0) { isCancelled in
                began.leave()
                while !isOver.withLock({ $0 }) {
                    if isCancelled() { return saw.leave() }
                    usleep(100)
                }
            }
            try trial.wait(for: began, "an operation was to begin")
            trial.tracer.note("cancel 0")
            operation.cancel()
            try trial.wait(for: saw, "the body was to see that it was cancelled")
        },

        Law(
            "C5",
            "Of a racing cancel and end, one is reported; an operation that never ran has not finished.",
            needs: canCancel,
            saboteur: .ofOperation(
                "reports every third operation as cancelled when it is asked to end"
            ) {
                acts, make, after, body in
                var operation = make(after, body)
                guard acts.every(3) else { return operation }
                let (handlers, cancel) = (EndHandlers(), operation.cancel)
                operation.whenEnded(handlers.tell)
                operation.whenEnded = handlers.add
                operation.cancel = {
                    handlers.tell(.cancelled)
                    cancel()
                }
                return operation
            }
        ) { trial in
            let (told, ran) = (Told(trial.load.total), Locked(Set<Int>()))
            trial.fromAllThreads { number in
                let operation = trial.operation(number) { _ in ran.withLock { _ = $0.insert(number) } }
                operation.whenEnded { told.tell(number, $0) }
                trial.load.spend(number + 7)
                trial.tracer.note("cancel \(number)")
                operation.cancel()
            }
            try trial.wait(for: told.latch, "operations that were cancelled were to end")
            try trial.settle()
            let all = told.all
            for (number, ends) in all.enumerated() {
                try trial.require(ends.count == 1, "one operation was reported as \(ends.map(\.rawValue))")
                try trial.require(
                    ends != [.finished] || ran.withLock { $0.contains(number) },
                    "one had finished, and never ran")
            }
        },

        Law(
            "C6", "A cancel ends no other operation.", needs: canCancel + [.suspension],
            saboteur: Saboteur("cancels the operation before it as well") { instance, acts in
                let (last, original) = (Locked<Instance.Body?>(nil), instance.operation!)
                instance.operation = { after, body in
                    var operation = original(after, body)
                    let before = last.withLock { $0 }
                    last.withLock { [cancel = operation.cancel] in $0 = cancel }
                    operation.cancel = { [cancel = operation.cancel] in
                        acts.act()
                        before?()
                        cancel()
                    }
                    return operation
                }
            }
        ) { trial in
            let told = Told(2)
            trial.instance.suspension!.suspend()
            let operations = (0..<2).map { number in
                let operation = trial.operation(number)
                operation.whenEnded { told.tell(number, $0) }
                return operation
            }
            operations[1].cancel()
            trial.instance.suspension!.resume()
            try trial.wait(for: told.latch, "two operations were to end")
            try trial.require(
                told.all[0] == [.finished], "the other one was reported as \(told.all[0].map(\.rawValue))")
        },
    ]

    // MARK: Dependencies

    static let dependencies: [Law] = [
        Law(
            "E1", "An operation begins after its dependencies have ended.",
            needs: [.operations, .parallel, .claim(.dependencies)],
            saboteur: .ofOperation("forgets the dependencies of every third operation") {
                acts, make, after, body in
                make(acts.every(3) ? [] : after, body)
            }
        ) { trial in
            let (ended, early, told) = (Locked(Set<Int>()), Locked(0), Told(trial.load.total))
            var operations: [TestedOperation] = []
            for number in 0..<trial.load.total {
                let before = (0..<trial.load.draw(number, below: 4)).map {
                    trial.load.draw($0 + 31 * number, below: max(1, number))
                }
                .filter { $0 < number }
                let operation = trial.operation(number, after: Set(before).sorted().map { operations[$0] }) {
                    _ in
                    if !ended.withLock({ $0.isSuperset(of: before) }) { early.withLock { $0 += 1 } }
                    trial.load.spend(number + 3)
                    ended.withLock { _ = $0.insert(number) }
                }
                operation.whenEnded { told.tell(number, $0) }
                operations.append(operation)
            }
            try trial.wait(for: told.latch, "operations that come after others were to end")
            let count = early.withLock { $0 }
            try trial.require(count == 0, "\(count) began before their dependencies had ended")
        },

        Law(
            "E2", "An operation with several dependencies runs once.",
            needs: [.operations, .claim(.dependencies)],
            isOfProgress: true,
            saboteur: .ofOperation("never runs an operation with several dependencies") {
                acts, make, after, body in
                make(after) { isCancelled in
                    if after.count > 1 { acts.hang() }
                    try body(isCancelled)
                }
            }
        ) { trial in
            let (runs, told) = (Locked(0), Told(1))
            let first = (0..<trial.load.total).map { trial.operation($0) }
            let last = trial.operation(trial.load.total, after: first) { _ in runs.withLock { $0 += 1 } }
            last.whenEnded { told.tell(0, $0) }
            try trial.wait(for: told.latch, "an operation that comes after \(first.count) was to end")
            let count = runs.withLock { $0 }
            try trial.require(count == 1, "it ran \(count) times")
        },
    ]
}
