// ClosureLaws.swift - X: closures; W: how many run at a time; F: their order.

import Glibc
import PropertyTesting
import Synchronization

extension Law {
    static let closures: [Law] = [
        Law(
            "X1", "Each closure that is submitted runs.",
            isOfProgress: true,
            saboteur: .ofSubmit("drops every third closure") { acts, submit, body in
                if !acts.every(3) { submit(body) }
            }
        ) { trial in try trial.flood() },

        Law(
            "X2", "No closure runs twice.",
            saboteur: .ofSubmit("submits every third closure twice") { acts, submit, body in
                submit(body)
                if acts.every(3) { submit(body) }
            }
        ) { trial in
            let runs = try trial.flood()
            try trial.settle()
            let most = runs.withLock { $0.max() ?? 0 }
            try trial.require(most <= 1, "a closure ran \(most) times")
        },

        Law(
            "X3", "A closure that a closure submits runs.",
            isOfProgress: true,
            saboteur: Saboteur("drops every second closure that is submitted inside of another") {
                instance, acts in
                let (inside, original) = (Inside(), instance.submit)
                instance.submit = { body in
                    if inside.isHere, acts.every(2) { return }
                    original { inside.run(body) }
                }
            }
        ) { trial in
            let latch = Latch(trial.load.total)
            trial.fromAllThreads { number in
                trial.submit(number) { trial.submit(number + trial.load.total) { latch.leave() } }
            }
            try trial.wait(for: latch, "closures that closures had submitted were to run")
        },

        Law(
            "X4", "A closure does not run inside of `submit`.", needs: [.claim(.asynchronous)],
            saboteur: .ofSubmit("runs every third closure at once") { acts, submit, body in
                if acts.every(3) { body() } else { submit(body) }
            }
        ) { trial in
            let (submitting, inline, latch) = (Inside(), Locked(0), Latch(trial.load.total))
            trial.fromAllThreads { number in
                submitting.run {
                    trial.submit(number) {
                        if submitting.isHere { inline.withLock { $0 += 1 } }
                        latch.leave()
                    }
                }
            }
            try trial.wait(for: latch, "closures that were to run")
            let count = inline.withLock { $0 }
            try trial.require(count == 0, "\(count) closures ran inside of submit")
        },

        Law(
            "X5", "Threads that submit at the same time lose nothing.",
            isOfProgress: true,
            saboteur: Saboteur("drops a closure that is submitted while another one is") { instance, acts in
                let (busy, original) = (Locked(0), instance.submit)
                instance.submit = { body in
                    let isAlone = busy.withLock { busy in
                        busy += 1
                        return busy == 1
                    }
                    if isAlone { original(body) } else { acts.act() }
                    busy.withLock { $0 -= 1 }
                }
            }
        ) { trial in
            let (count, latch) = (64, Latch(4 * 64))
            _ = concurrently(4) { _ in
                for _ in 0..<count { trial.instance.submit { latch.leave() } }
            }
            try trial.wait(for: latch, "closures of four threads were to run")
        },

        Law(
            "X6", "A closure that has run is released.",
            isOfProgress: true,
            saboteur: Saboteur("keeps every third closure") { instance, acts in
                let (kept, original) = (Locked<[Instance.Body]>([]), instance.submit)
                instance.submit = { body in
                    if acts.every(3) { kept.withLock { $0.append(body) } }
                    original(body)
                }
                // The kept closures are released when the case ends.
                let end = instance.end
                instance.end = {
                    end()
                    kept.withLock { $0 = [] }
                }
            }
        ) { trial in
            let latch = Latch(trial.load.total)
            trial.fromAllThreads { number in
                let token = Token { latch.leave() }
                trial.submit(number) { withExtendedLifetime(token) {} }
            }
            try trial.wait(for: latch, "closures that were to be released")
        },

        Law(
            "X7", "A scheduler that was idle runs closures again.",
            isOfProgress: true,
            saboteur: Saboteur("drops every third closure that finds it idle") { instance, acts in
                let (pending, original) = (Locked(0), instance.submit)
                instance.submit = { body in
                    let wasIdle = pending.withLock { pending in
                        pending += 1
                        return pending == 1
                    }
                    if wasIdle, acts.every(3) {
                        pending.withLock { $0 -= 1 }
                        return
                    }
                    original {
                        pending.withLock { $0 -= 1 }
                        body()
                    }
                }
            }
        ) { trial in
            for round in 0..<trial.load.each {
                let latch = Latch(1)
                trial.submit(round) { latch.leave() }
                try trial.wait(for: latch, "after it was idle for a while, a closure was to run")
                usleep(UInt32(trial.load.draw(round, below: 3) * 300))
            }
        },

        Law(
            "X8", "A closure that takes long does not keep others from running.",
            needs: [.width(2...Int.max)],
            isOfProgress: true,
            saboteur: .ofBody("runs one closure at a time") { _, acts in
                let places = Places(1, acts)
                return { body in
                    acts.act()
                    places.within(body)
                }
            }
        ) { trial in
            let (gate, began, latch) = (Gate(), Latch(1), Latch(trial.load.total))
            defer { gate.open() }
            trial.instance.submit {
                began.leave()
                gate.wait()
            }
            try trial.wait(for: began, "the closure that takes long was to begin")
            trial.fromAllThreads { number in trial.submit(number) { latch.leave() } }
            try trial.wait(for: latch, "beside one that takes long, closures were to run")
        },

        Law(
            "X9", "Closures that block do not keep others from running, however many there are.",
            needs: [.claim(.outlastsBlocking)],
            isOfProgress: true,
            saboteur: .ofBody("runs eight closures at a time") { _, acts in
                let places = Places(8, acts)
                return { body in
                    acts.act()
                    places.within(body)
                }
            }
        ) { trial in
            let (gate, blocked, latch) = (Gate(), trial.load.total, Latch(1))
            defer { gate.open() }
            for _ in 0..<blocked { trial.instance.submit { gate.wait() } }
            trial.submit(0) { latch.leave() }
            try trial.wait(for: latch, "beside \(blocked) that block, a closure was to run")
        },

        Law(
            "X10", "A closure that submits itself again and again lets others have their turn.",
            needs: [.claim(.fair)],
            isOfProgress: true,
            saboteur: Saboteur("holds back what comes from outside, once a closure has submitted another") {
                instance, acts in
                let (inside, original, hasChain) = (Inside(), instance.submit, Locked(false))
                instance.submit = { body in
                    if inside.isHere {
                        hasChain.withLock { $0 = true }
                    } else if hasChain.withLock({ $0 }) {
                        return acts.act()
                    }
                    original { inside.run(body) }
                }
            }
        ) { trial in
            let chains = trial.instance.width ?? 4
            let (isOver, began, latch, ended) = (Locked(false), Latch(1), Latch(1), Latch(chains))
            defer { isOver.withLock { $0 = true } }
            trial.atEnd { _ = ended.wait(timeout: trial.limit) }
            @Sendable func goOn() {
                if isOver.withLock({ $0 }) { return ended.leave() }
                trial.instance.submit(goOn)
                began.leave()
            }
            for _ in 0..<chains { trial.instance.submit(goOn) }
            try trial.wait(for: began, "the closures that submit themselves were to begin")
            trial.submit(0) { latch.leave() }
            try trial.wait(for: latch, "beside closures that submit themselves, another one was to run")
        },
    ]

    // MARK: Width

    static let widths: [Law] = [
        Law(
            "W1", "No more closures run at a time than its width says.", needs: [.width(1...Int.max)],
            saboteur: .onThread
        ) { trial in
            let gauge = Gauge()
            // The closures let other threads run, but do not block: a scheduler may replace threads that
            // block.
            try trial.flood { _ in
                gauge.within {
                    let end = ContinuousClock.now + .microseconds(200)
                    repeat { sched_yield() } while ContinuousClock.now < end
                }
            }
            let (most, width) = (gauge.most, trial.instance.width ?? 0)
            try trial.require(most <= width, "\(most) closures ran at a time, where the width is \(width)")
        },

        Law(
            "W2", "As many closures run at a time as its width says.", needs: [.width(2...64)],
            isOfProgress: true,
            saboteur: .ofBody("runs one closure less at a time") { instance, acts in
                let places = Places((instance.width ?? 2) - 1, acts)
                return { body in
                    acts.act()
                    places.within(body)
                }
            }
        ) { trial in
            let width = trial.instance.width ?? 0
            let (together, limit) = (Latch(width), trial.limit)
            for number in 0..<width {
                trial.submit(number) {
                    together.leave()
                    _ = together.wait(timeout: limit)
                }
            }
            try trial.wait(for: together, "\(width) closures were to run at the same time")
        },

        Law(
            "W3", "Where one closure runs at a time, each sees what the one before it wrote.",
            needs: [.width(1...1)],
            saboteur: .onThread
        ) { trial in
            let plain = Plain()
            try trial.flood { _ in
                let value = plain.value
                for _ in 0..<5 { sched_yield() }
                plain.value = value + 1
            }
            let value = plain.value
            try trial.require(value == trial.load.total, "\(trial.load.total) additions came to \(value)")
        },
    ]

    // MARK: Order

    private static let inOrder: [Need] = [.claim(.fifo), .width(1...1)]

    static let orders: [Law] = [
        Law(
            "F1", "The closures of a thread begin in the order in which they were submitted.", needs: inOrder,
            saboteur: .behind
        ) { trial in
            let (order, latch, total) = (Locked<[Int]>([]), Latch(trial.load.total), trial.load.total)
            for number in 0..<total {
                trial.submit(number) {
                    order.withLock { $0.append(number) }
                    latch.leave()
                }
            }
            try trial.wait(for: latch, "closures that were to run")
            let all = order.withLock { $0 }
            try trial.require(all == Array(0..<total), "they began in the order \(all)")
        },

        Law(
            "F2", "Where several threads submit, the closures of each begin in its order.", needs: inOrder,
            saboteur: .behind
        ) { trial in
            let order = Locked<[Int]>([])
            try trial.flood { number in order.withLock { $0.append(number) } }
            let all = order.withLock { $0 }
            for submitter in 0..<trial.load.submitters {
                let own = all.filter { trial.load.numbers(of: submitter).contains($0) }
                try trial.require(own == own.sorted(), "those of a thread began in the order \(own)")
            }
        },

        Law(
            "F3", "A closure that a closure submits begins after all that were submitted before.",
            needs: inOrder,
            saboteur: Saboteur("runs what is submitted inside of a closure at once") { instance, acts in
                let (inside, original) = (Inside(), instance.submit)
                instance.submit = { body in
                    if inside.isHere {
                        acts.act()
                        body()
                    } else {
                        original { inside.run(body) }
                    }
                }
            }
        ) { trial in
            let (gate, order, latch) = (Gate(), Locked<[String]>([]), Latch(3))
            let note: @Sendable (String) -> Void = { text in
                order.withLock { $0.append(text) }
                latch.leave()
            }
            trial.submit(0) {
                gate.wait()
                trial.submit(2) { note("inner") }
                note("outer")
            }
            trial.submit(1) { note("next") }
            gate.open()
            try trial.wait(for: latch, "closures that were to run")
            let all = order.withLock { $0 }
            try trial.require(all == ["outer", "next", "inner"], "they ran in the order \(all)")
        },
    ]
}

extension Saboteur {
    fileprivate static let onThread = Saboteur.ofSubmit("runs every third closure on a thread of its own") {
        acts, submit, body in
        if acts.every(3) { start(body) } else { submit(body) }
    }

    fileprivate static let behind = Saboteur("has every third closure submitted by a closure") {
        instance, acts in
        let original = instance.submit
        instance.submit = { body in
            if acts.every(3) { original { original(body) } } else { original(body) }
        }
    }
}

/// Calls a closure when the token is released.
final class Token: Sendable {
    private let tell: @Sendable () -> Void
    init(_ tell: @escaping @Sendable () -> Void) { self.tell = tell }
    deinit { tell() }
}

/// The number of threads inside `within`, and its maximum.
final class Gauge: Sendable {
    private let state = Locked((now: 0, most: 0))
    var most: Int { state.withLock { $0.most } }

    func within(_ body: () -> Void) {
        state.withLock { state in
            state.now += 1
            state.most = max(state.most, state.now)
        }
        body()
        state.withLock { $0.now -= 1 }
    }
}

/// A number that is read and written in two separate steps, not atomically.
private final class Plain: Sendable {
    // An atomic, not a variable: the saboteur must break the law without a data race that a sanitizer would
    // report.
    private let number = Atomic(0)
    var value: Int {
        get { number.load(ordering: .relaxed) }
        set { number.store(newValue, ordering: .relaxed) }
    }
}
