// WaitLaws.swift - D: waits; P: suspensions; B: barriers; T: timers; A: loops; L: shutdown.

import Glibc
import PropertyTesting

extension Law {
    static let waits: [Law] = [
        Law(
            "D1", "A drain returns after all closures that were submitted before have ended.",
            needs: [.drain],
            saboteur: Saboteur("returns at once") { instance, acts in instance.drain = { acts.act() } }
        ) { trial in
            let (ended, count) = (Locked(0), Locked(0))
            // In every second case the first closure lasts until the drain has begun; in the others, the last
            // closure races the drain.
            let gate = Gate()
            if trial.load.mix % 2 == 1 { gate.open() }
            trial.fromAllThreads { number in
                trial.submit(number) {
                    if number == 0 { gate.wait() }
                    trial.load.spend(number + 1)
                    ended.withLock { $0 += 1 }
                }
            }
            start {
                usleep(300)
                gate.open()
            }
            try trial.call("drain") { [drain = trial.instance.drain!] in
                drain()
                count.withLock { $0 = ended.withLock { $0 } }
            }
            let atReturn = count.withLock { $0 }
            try trial.require(
                atReturn == trial.load.total,
                "\(atReturn) of \(trial.load.total) closures had ended at its return")
        },

        Law(
            "D2", "A drain returns, also where there is nothing to do.", needs: [.drain],
            isOfProgress: true,
            saboteur: Saboteur("never returns from every third drain") { instance, acts in
                let original = instance.drain!
                instance.drain = { if acts.every(3) { acts.hang() } else { original() } }
            }
        ) { trial in
            for round in 0..<4 {
                if round % 2 == 1 { trial.submit(round) }
                try trial.call("drain", trial.instance.drain!)
            }
        },

        Law(
            "D3", "Each of several drains at the same time returns.", needs: [.drain],
            isOfProgress: true,
            saboteur: Saboteur("forgets a caller that comes while another one waits") { instance, acts in
                let (waiting, original) = (Locked(0), instance.drain!)
                instance.drain = {
                    let isAlone = waiting.withLock { waiting in
                        waiting += 1
                        return waiting == 1
                    }
                    if !isAlone {
                        acts.hang()
                    }
                    original()
                    waiting.withLock { $0 -= 1 }
                }
            }
        ) { trial in
            let (gate, latch) = (Gate(), Latch(3))
            trial.submit(0) { gate.wait() }
            for _ in 0..<3 {
                start { [drain = trial.instance.drain!] in
                    drain()
                    latch.leave()
                }
            }
            usleep(500)
            gate.open()
            try trial.wait(for: latch, "three drains were to return")
        },
    ]

    // MARK: Suspension

    static let suspensions: [Law] = [
        Law(
            "P1", "Nothing starts between a suspend and its resume.", needs: [.suspension],
            saboteur: Saboteur("does not suspend") { instance, acts in
                instance.suspension = Suspension(suspend: { acts.act() }, resume: {})
            }
        ) { trial in
            let (begun, latch) = (Locked(0), Latch(trial.load.total))
            trial.instance.suspension!.suspend()
            trial.fromAllThreads { number in
                trial.submit(number, isAtOnce: true) {
                    begun.withLock { $0 += 1 }
                    latch.leave()
                }
            }
            usleep(2_000)
            let early = begun.withLock { $0 }
            trial.tracer.note("resume()")
            trial.instance.suspension!.resume()
            try trial.wait(for: latch, "closures that were to run")
            try trial.require(early == 0, "\(early) closures started while it was suspended")
        },

        Law(
            "P2", "Closures that are submitted during a suspension run after it.", needs: [.suspension],
            isOfProgress: true,
            saboteur: Saboteur("drops every third closure that is submitted while it is suspended") {
                instance, acts in
                let (isSuspended, original, submit) = (Locked(false), instance.suspension!, instance.submit)
                instance.suspension = Suspension {
                    isSuspended.withLock { $0 = true }
                    original.suspend()
                } resume: {
                    isSuspended.withLock { $0 = false }
                    original.resume()
                }
                instance.submit = { body in
                    if isSuspended.withLock({ $0 }), acts.every(3) { return }
                    submit(body)
                }
            }
        ) { trial in
            for round in 0..<2 {
                let latch = Latch(trial.load.total)
                trial.instance.suspension!.suspend()
                trial.fromAllThreads { number in
                    trial.submit(number + round * trial.load.total) { latch.leave() }
                }
                trial.instance.suspension!.resume()
                try trial.wait(for: latch, "closures that were submitted while it was suspended were to run")
            }
        },

        Law(
            "P3", "After two suspends nothing starts before the second resume.",
            needs: [.suspension, .claim(.nestedSuspension)],
            saboteur: Saboteur("resumes at the first resume") { instance, acts in
                let (depth, original) = (Locked(0), instance.suspension!)
                instance.suspension = Suspension {
                    let isFirst = depth.withLock { depth in
                        depth += 1
                        return depth == 1
                    }
                    if isFirst { original.suspend() } else { acts.act() }
                } resume: {
                    let isFirst = depth.withLock { depth in
                        defer { depth = 0 }
                        return depth > 0
                    }
                    if isFirst { original.resume() }
                }
            }
        ) { trial in
            let (begun, latch) = (Locked(0), Latch(1))
            for _ in 0..<2 { trial.instance.suspension!.suspend() }
            trial.submit(0, isAtOnce: true) {
                begun.withLock { $0 += 1 }
                latch.leave()
            }
            trial.instance.suspension!.resume()
            usleep(2_000)
            let early = begun.withLock { $0 }
            trial.instance.suspension!.resume()
            try trial.wait(for: latch, "the closure was to run after the second resume")
            try trial.require(early == 0, "it started after the first resume")
        },

        Law(
            "P4", "Suspends and resumes while others submit lose nothing.",
            needs: [.suspension],
            isOfProgress: true,
            saboteur: Saboteur("loses what is submitted while it resumes") { instance, acts in
                let (isResuming, original, submit) = (Locked(false), instance.suspension!, instance.submit)
                instance.suspension = Suspension(suspend: original.suspend) {
                    isResuming.withLock { $0 = true }
                    usleep(50)
                    original.resume()
                    isResuming.withLock { $0 = false }
                }
                instance.submit = { body in
                    if isResuming.withLock({ $0 }) { acts.act() } else { submit(body) }
                }
            }
        ) { trial in
            let (isOver, toggled) = (Locked(false), Latch(1))
            start { [suspension = trial.instance.suspension!] in
                repeat {
                    suspension.suspend()
                    suspension.resume()
                } while !isOver.withLock { $0 }
                toggled.leave()
            }
            let result = Result { try trial.flood() }
            isOver.withLock { $0 = true }
            try trial.wait(for: toggled, "suspend and resume were to return")
            _ = try result.get()
        },
    ]

    // MARK: Barriers

    static let barriers: [Law] = [
        Law(
            "B1", "A barrier begins when all closures that were submitted before have ended.",
            needs: [.barrier, .parallel],
            saboteur: Saboteur("submits the barrier as any closure") { instance, acts in
                instance.barrier = { [submit = instance.submit] body in
                    acts.act()
                    submit(body)
                }
            }
        ) { trial in
            let (ended, before, latch) = (Locked(0), Locked(0), Latch(1))
            trial.fromAllThreads { number in
                trial.submit(number) {
                    trial.load.spend(number + 1)
                    ended.withLock { $0 += 1 }
                }
            }
            trial.tracer.note("barrier")
            trial.instance.barrier! {
                trial.tracer.note("the barrier begins")
                before.withLock { $0 = ended.withLock { $0 } }
                latch.leave()
            }
            try trial.wait(for: latch, "the barrier was to run")
            let count = before.withLock { $0 }
            try trial.require(
                count == trial.load.total, "\(count) of \(trial.load.total) closures had ended when it began")
        },

        Law(
            "B2", "A closure that is submitted after a barrier begins when the barrier has ended.",
            needs: [.barrier],
            saboteur: Saboteur("goes on when the barrier begins") { instance, acts in
                let original = instance.barrier!
                instance.barrier = { body in
                    original {
                        acts.act()
                        start(body)
                    }
                }
            }
        ) { trial in
            let (isOver, early, latch) = (Locked(false), Locked(0), Latch(trial.load.total))
            trial.instance.barrier! {
                trial.tracer.note("the barrier begins")
                usleep(200)
                isOver.withLock { $0 = true }
                trial.tracer.note("the barrier ends")
            }
            trial.fromAllThreads { number in
                trial.submit(number) {
                    if !isOver.withLock({ $0 }) { early.withLock { $0 += 1 } }
                    latch.leave()
                }
            }
            try trial.wait(for: latch, "closures that were to run")
            let count = early.withLock { $0 }
            try trial.require(count == 0, "\(count) closures began before the barrier had ended")
        },
    ]

    // MARK: Timers

    static let timers: [Law] = [
        Law(
            "T1", "A timer does not fire before its time.", needs: [.timers],
            saboteur: Saboteur("waits for half of the time") { instance, acts in
                let original = instance.submitAfter!
                instance.submitAfter = { time, body in
                    acts.act()
                    original(time / 2, body)
                }
            }
        ) { trial in
            let (early, latch, count) = (
                Locked<[Duration]>([]), Latch(min(8, trial.load.total)), min(8, trial.load.total)
            )
            for number in 0..<count {
                let (began, time) = (
                    ContinuousClock.now, Duration.microseconds(500 * (1 + trial.load.draw(number, below: 8)))
                )
                trial.instance.submitAfter!(time) {
                    let passed = ContinuousClock.now - began
                    if passed < time { early.withLock { $0.append(time - passed) } }
                    latch.leave()
                }
            }
            try trial.wait(for: latch, "closures that were to run later")
            let all = early.withLock { $0 }
            try trial.require(all.isEmpty, "\(all.count) ran too early, by up to \(all.max() ?? .zero)")
        },

        Law(
            "T2", "A timer fires once.", needs: [.timers],
            isOfProgress: true,
            saboteur: Saboteur("forgets every third") { instance, acts in
                let original = instance.submitAfter!
                instance.submitAfter = { if !acts.every(3) { original($0, $1) } }
            }
        ) { trial in
            let (runs, latch) = (
                Locked([Int](repeating: 0, count: trial.load.total)), Latch(trial.load.total)
            )
            trial.fromAllThreads { number in
                trial.instance.submitAfter!(.microseconds(trial.load.draw(number, below: 2_000))) {
                    let isFirst = runs.withLock { runs in
                        runs[number] += 1
                        return runs[number] == 1
                    }
                    if isFirst { latch.leave() }
                }
            }
            try trial.wait(for: latch, "closures that were to run later")
            try trial.settle()
            let most = runs.withLock { $0.max() ?? 0 }
            try trial.require(most == 1, "one ran \(most) times")
        },
    ]

    // MARK: Loops

    static let loops: [Law] = [
        Law(
            "A1", "A loop calls its closure once with each number.", needs: [.loops],
            saboteur: Saboteur("leaves the last of three or more numbers out") { instance, acts in
                let original = instance.forEach!
                instance.forEach = { count, body in
                    if count > 2 { acts.act() }
                    original(count > 2 ? count - 1 : count, body)
                }
            }
        ) { trial in
            let (calls, total) = (Locked([Int](repeating: 0, count: trial.load.total)), trial.load.total)
            try trial.call("forEach") { [forEach = trial.instance.forEach!] in
                forEach(total) { number in
                    trial.load.spend(number)
                    calls.withLock { $0[number] += 1 }
                }
            }
            let wrong = calls.withLock { $0.enumerated().filter { $0.element != 1 } }
            try trial.require(
                wrong.isEmpty,
                "of its calls, \(wrong.first?.element ?? 0) were with the number \(wrong.first?.offset ?? 0)"
            )
        },

        Law(
            "A2", "A loop returns after all calls have.", needs: [.loops],
            saboteur: Saboteur("does not wait for the last call") { instance, acts in
                let original = instance.forEach!
                instance.forEach = { count, body in
                    original(count) { number in
                        guard number == count - 1 else { return body(number) }
                        acts.act()
                        start {
                            usleep(500)
                            body(number)
                        }
                    }
                }
            }
        ) { trial in
            let (returned, atReturn, total) = (Locked(0), Locked(0), trial.load.total)
            try trial.call("forEach") { [forEach = trial.instance.forEach!] in
                forEach(total) { number in
                    trial.load.spend(number)
                    returned.withLock { $0 += 1 }
                }
                atReturn.withLock { $0 = returned.withLock { $0 } }
            }
            let count = atReturn.withLock { $0 }
            try trial.require(count == total, "\(count) of \(total) calls had returned")
        },

        Law(
            "A3", "A loop inside of a loop ends.", needs: [.loops, .claim(.nestedLoops)],
            isOfProgress: true,
            saboteur: Saboteur("lets one loop run at a time") { instance, acts in
                let (places, original) = (Places(1, acts), instance.forEach!)
                instance.forEach = { count, body in
                    acts.act()
                    places.within { original(count, body) }
                }
            }
        ) { trial in
            let calls = Locked(0)
            try trial.call("forEach") { [forEach = trial.instance.forEach!] in
                forEach(3) { _ in forEach(3) { _ in calls.withLock { $0 += 1 } } }
            }
            let count = calls.withLock { $0 }
            try trial.require(count == 9, "the inner loops called \(count) times, not 9")
        },
    ]

    // MARK: End

    static let lifetimes: [Law] = [
        Law(
            "L1", "Nothing runs after a shutdown has returned.", needs: [.shutdown],
            saboteur: Saboteur("ends in the background") { instance, acts in
                let original = instance.shutDown!
                instance.shutDown = {
                    acts.act()
                    let ended = Latch(1)
                    acts.atEnd { ended.wait() }
                    start {
                        usleep(200)
                        original()
                        ended.leave()
                    }
                }
            }
        ) { trial in
            let (isOver, late) = (Locked(false), Locked(0))
            trial.fromAllThreads { number in
                trial.submit(number) {
                    usleep(50)
                    if isOver.withLock({ $0 }) { late.withLock { $0 += 1 } }
                }
            }
            try trial.call("shutDown") { [shutDown = trial.instance.shutDown!] in
                shutDown()
                isOver.withLock { $0 = true }
            }
            usleep(1_000)
            let count = late.withLock { $0 }
            try trial.require(count == 0, "\(count) closures were running after it had ended")
        },

        Law(
            "L2", "Closures that were submitted before a shutdown have run at its return.",
            needs: [.shutdown, .claim(.runsAllAtShutdown)],
            saboteur: Saboteur("drops what has not begun at its end") { instance, acts in
                let (isEnding, submit, original) = (Locked(false), instance.submit, instance.shutDown!)
                instance.submit = { body in
                    submit { if isEnding.withLock({ $0 }) { acts.act() } else { body() } }
                }
                instance.shutDown = {
                    isEnding.withLock { $0 = true }
                    original()
                }
            }
        ) { trial in
            let runs = Locked(0)
            trial.fromAllThreads { number in
                trial.submit(number) {
                    // Delays the closures, so not all have run before the shutdown.
                    usleep(50)
                    runs.withLock { $0 += 1 }
                }
            }
            try trial.call("shutDown", trial.instance.shutDown!)
            let count = runs.withLock { $0 }
            try trial.require(
                count == trial.load.total, "\(count) of \(trial.load.total) closures had run at its end")
        },
    ]
}
