// DumpTests - what a dump says about each kind of live object, within its limits; while inspection is off, nothing is
// tracked.

import Actions
import Commands
import CompositeOperations
import CompositeOperationsBasics
import CompositeOperationsTestSupport
import Foundation
import Observability
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing
import Transactions

func named(_ name: String, width: Int? = nil) -> OperationOptions {
    var options = OperationOptions()
    options.name = name
    options.width = width
    return options
}

extension Dump.Section {
    func node(_ name: String) -> Dump.Node? { nodes.first { $0.name == name } }
    func node(id: String?) -> Dump.Node? { nodes.first { $0.id == id } }
}

/// Starts an operation, and returns its attempt, which a test ends.
func begun(_ name: String, on target: (any ExecutionTarget)? = nil) async -> COOperation<Void>.Attempt {
    let begun = Mail<COOperation<Void>.Attempt>()
    operation(on: target, options: named(name)) { begun.send($0) }
    return await begun.next()
}

private final class Account: Transactable, TransactableDefaults {
    private(set) var context: TransactionContext?
    var transactionContext: TransactionContext { context! }
    init() { context = TransactionContext.createRoot(owner: self) }
}

private struct Waiting: Command {
    let begun: Mail<Void>
    let end: Mail<Void>
    func execute(_ context: CommandContext) async throws {
        begun.send(())
        await end.next()
    }
}

@Suite(.serialized, .inTurn, .watched(testLimit), .leavesNothing) struct DumpTests {
    /// Turns inspection on while `body` runs.
    private func inspecting(_ body: () async throws -> Void) async rethrows {
        Inspection.start()
        defer { Inspection.stop() }
        try await body()
    }

    // MARK: Kinds

    @Test func `a tree has a node for each operation, with its state and what it awaits`() async throws {
        try await inspecting {
            let begun = Mail<COOperation<Void>.Attempt>()
            let cascade = cascadeOperation(options: named("tree of kinds")) { cascade in
                _ = cascade.operation(options: named("first step of kinds")) { begun.send($0) }
                _ = cascade.operation(options: named("second step of kinds")) { $0.finish() }
            }
            let attempt = await begun.next()
            let dump = Inspection.dump(limit: 100_000)
            let root = try #require(dump.trees.node("tree of kinds"))
            let first = try #require(dump.trees.node("first step of kinds"))
            let second = try #require(dump.trees.node("second step of kinds"))
            #expect(root.kind == "cascade")
            #expect(root.state == "executing")
            #expect(root.depth == 0)
            #expect(root.age != nil)
            #expect(root.notes.contains("2 of its children have not finished"))
            #expect(first.depth == 1)
            #expect(first.state == "executing")
            #expect(second.state == "ready")
            #expect(second.waitsFor.map { "\($0.why) \($0.id)" } == ["comes after \(first.id)"])
            #expect(dump.description.contains("    operation \"second step of kinds\" \(second.id): ready"))
            attempt.finish()
            #expect(await cascade.outcome.isFinished)
            #expect(Inspection.dump(limit: 100_000).trees.node("tree of kinds") == nil)
        }
    }

    @Test func `waits for a dependency, a slot or an open gate show so`() async throws {
        try await inspecting {
            let queue = COOperationQueue(runningLimit: 1)
            let holder = await begun("holder of the slot", on: queue)
            let inLine = operation(on: queue, options: named("in line for the slot")) { $0.finish() }
            let dependent = COOperation<Void>(options: named("dependent")) { $0.finish() }
            dependent.addDependency(inLine)
            dependent.start()
            let gated = COOperation<Void>(options: named("gated")) { $0.finish() }
            gated.suspend()
            gated.start()
            let dump = Inspection.dump(limit: 100_000)
            let waits = try #require(dump.trees.node("in line for the slot")?.waitsFor)
            #expect(waits.map(\.why) == ["needs a slot of"])
            let node = try #require(dump.queues.node(id: waits.first?.id))
            #expect(node.kind == "queue")
            #expect(node.notes.contains("1 of 1 slots are held"))
            #expect(node.waitsFor.map(\.id) == ["\(holder.operation.id)"])
            #expect(dump.queues.node(id: "ticket of \(inLine.id)")?.state == "in line")
            #expect(dump.queues.node(id: "ticket of \(holder.operation.id)")?.state == "holds a slot")
            let reasons = try #require(dump.trees.node("dependent")?.waitsFor)
            #expect(reasons.map { "\($0.why) \($0.id)" } == ["depends on \(inLine.id)"])
            #expect(dump.trees.node("gated")?.state == "suspended")
            #expect(dump.trees.node("gated")?.notes.contains("its gate is closed") == true)
            gated.resume()
            holder.finish()
            for one in [inLine, dependent, gated] { #expect(await one.outcome.isFinished) }
            await queue.idle()
        }
    }

    @Test func `invokers show their commands, by their types`() async throws {
        try await inspecting {
            let (begun, end) = (Mail<Void>(), Mail<Void>())
            let invoker = SerialInvoker()
            let first = invoker.submit(Waiting(begun: begun, end: end))
            let second = invoker.submit(Waiting(begun: begun, end: end))
            await begun.next()
            let dump = Inspection.dump(limit: 100_000)
            let place = try #require(
                dump.invokers.nodes.firstIndex {
                    $0.name == "SerialInvoker" && $0.notes.contains("1 wait")
                        && $0.notes.contains("1 of 1 slots are held")
                })
            let commands = dump.invokers.nodes[(place + 1)...].prefix { $0.depth == 1 }
            #expect(commands.map(\.name) == ["Waiting", "Waiting"])
            #expect(commands.map(\.state) == ["executing", "accepted"])
            end.send(())
            end.send(())
            _ = await (first.outcome, second.outcome)
        }
    }

    @Test func `a transaction is shown from its beginning to its end`() async throws {
        try await inspecting {
            let account = Account()
            let transaction = try account.beginTransaction()
            let node = try #require(Inspection.dump(limit: 100_000).transactions.node("Account"))
            #expect(node.state == "begun by hand")
            #expect(node.age != nil)
            try account.commitTransaction(transaction)
            #expect(Inspection.dump(limit: 100_000).transactions.node("Account") == nil)
        }
    }

    @Test func `an action shows what runs and what waits`() async throws {
        try await inspecting {
            let (begun, end) = (Mail<Void>(), Mail<Void>())
            let action = Action<Int, Void>("dumped action", policy: .queue(2)) { _ in
                begun.send(())
                await end.next()
            }
            let all = [action.trigger(1), action.trigger(2)]
            await begun.next()
            let dump = Inspection.dump(limit: 100_000)
            let node = try #require(dump.actions.node("dumped action"))
            #expect(node.state == "executing")
            #expect(node.notes == ["1 of 1 run", "1 wait"])
            #expect(dump.actions.node(id: "\(all[0].id)")?.state == "executing")
            #expect(dump.actions.node(id: "\(all[1].id)")?.state == "first in line")
            end.send(())
            end.send(())
            for one in all { _ = await one.outcome }
        }
    }

    // MARK: Problems

    /// An operation whose block starts a task. The task waits for another operation, and then finishes this one.
    private func waiting(
        _ name: String, on target: (any ExecutionTarget)? = nil,
        for other: Locked<COOperation<Void>?>
    ) -> COOperation<Void> {
        COOperation<Void>(on: target, options: named(name)) { attempt in
            Task {
                _ = await other.withLock { $0 }?.outcome
                attempt.finish()
            }
        }
    }

    @Test func `two trees awaiting each other are named as a cycle`() async throws {
        await inspecting {
            let (first, second) = (Locked<COOperation<Void>?>(nil), Locked<COOperation<Void>?>(nil))
            // The first operation waits for a root whose child waits for the first.
            let child = waiting("child in a cycle", for: first)
            let begun = Gate()
            second.withLock { $0 = child }
            let root = waiting("root in a cycle", for: second)
            first.withLock { $0 = root }
            let tree = cascadeOperation(options: named("tree in a cycle")) { cascade in
                do { _ = try cascade.add(child) } catch { Issue.record(error) }
                begun.open()
            }
            begun.wait()
            root.start()
            let isFound = await eventually {
                Inspection.dump(limit: 100_000).problems.contains { problem in
                    problem.kind == .cycle && problem.text.contains("\"child in a cycle\"")
                        && problem.text.contains("\"root in a cycle\"") && problem.ids.count == 2
                }
            }
            #expect(isFound)
            let dump = Inspection.dump(limit: 100_000)
            let cycles = dump.problems.filter { $0.kind == .cycle && $0.text.contains("in a cycle") }
            #expect(cycles.count == 1)
            #expect(dump.waits.contains { $0.waiter == "\(root.id)" && $0.id == "\(child.id)" })
            root.cancel()
            #expect(await root.outcome.isCancelled)
            #expect(await tree.outcome.isFinished)
        }
    }

    @Test func `a slot holder that waits for an operation in its line is a cycle`() async throws {
        await inspecting {
            let queue = COOperationQueue(runningLimit: 1)
            let other = Locked<COOperation<Void>?>(nil)
            let begun = Gate()
            let holder = COOperation<Void>(on: queue, options: named("holder in a cycle")) { attempt in
                Task {
                    begun.wait()
                    _ = await other.withLock { $0 }?.outcome
                    attempt.finish()
                }
            }
            holder.start()
            let inLine = operation(on: queue, options: named("in line in a cycle")) { $0.finish() }
            other.withLock { $0 = inLine }
            begun.open()
            let isFound = await eventually {
                Inspection.dump(limit: 100_000).problems.contains { problem in
                    problem.kind == .cycle && problem.text.contains("\"holder in a cycle\"")
                        && problem.text.contains("\"in line in a cycle\"") && problem.text.contains("queue ")
                }
            }
            #expect(isFound)
            inLine.cancel()
            #expect(await holder.outcome.isFinished)
            other.withLock { $0 = nil }
        }
    }

    @Test func `a forgotten finish is named until it has come`() async throws {
        await inspecting {
            let attempt = await begun("forgets to finish")
            func problems() -> [Dump.Problem] {
                Inspection.dump(limit: 100_000).problems.filter { $0.text.contains("forgets to finish") }
            }
            #expect(await eventually { problems().map(\.kind) == [.forgottenFinish] })
            #expect(problems().first?.ids == ["\(attempt.operation.id)"])
            attempt.finish()
            #expect(problems().isEmpty)
        }
    }

    /// In its own process: threads that wait for each other do so for ever.
    @Test func `threads in blocks of two trees that wait for each other are named`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            COQueues.disregardValuesHere()  // so that the first block belongs to a plain child
            Inspection.start()
            let (first, second) = (Locked<COCascade<Void>?>(nil), Locked<COCascade<Void>?>(nil))
            let (areThere, firstBegan, secondBegan) = (Gate(), Gate(), Gate())
            let one = cascadeOperation(options: named("first tree")) { cascade in
                cascade.operation {
                    firstBegan.open()
                    areThere.wait()
                    second.withLock { $0 }?.wait()
                }
            }
            first.withLock { $0 = one }
            let other = cascadeOperation(options: named("second tree")) { cascade in
                _ = cascade.operation { (attempt: COOperation<Void>.Attempt) in
                    secondBegan.open()
                    areThere.wait()
                    first.withLock { $0 }?.wait()
                    attempt.finish()
                }
            }
            second.withLock { $0 = other }
            firstBegan.wait()
            secondBegan.wait()
            areThere.open()
            while true {
                let problems = Inspection.dump().problems
                let cycles = problems.filter { $0.kind == .cycle }
                let blocked = problems.filter { $0.kind == .blockedThread }
                let named = (cycles + blocked).filter {
                    $0.text.contains("\"first tree\"") && $0.text.contains("\"second tree\"")
                }
                if cycles.count == 1, blocked.count == 2, named.count == 3,
                    Set(["\(one.id)", "\(other.id)"]).isSubset(of: cycles[0].ids)
                {
                    exit(7)
                }
                sched_yield()
            }
        }
    }

    // MARK: Limits

    @Test(arguments: [1, 10, 40])
    func `a dump keeps to its limit, and reports omissions`(limit: Int) async throws {
        await inspecting {
            let attempts = Mail<COOperation<Void>.Attempt>()
            let tree = transactionalOperation(options: named("larger than the limit")) { scope in
                for _ in 0..<100 { _ = scope.operation { attempts.send($0) } }
            }
            var all: [COOperation<Void>.Attempt] = []
            for _ in 0..<100 { all.append(await attempts.next()) }
            let dump = Inspection.dump(limit: limit)
            #expect(dump.limit == limit)
            #expect(dump.trees.nodes.count <= limit)
            let omitted = dump.trees.nodes.reduce(dump.trees.omitted) { $0 + $1.omitted }
            #expect(omitted >= 100 - limit)
            #expect(dump.description.contains(" more"))
            for attempt in all { attempt.finish() }
            #expect(await tree.outcome.isFinished)
        }
    }

    @Test func `ended children are counted, and only the other half have nodes`() async throws {
        await inspecting {
            let attempts = Mail<COOperation<Void>.Attempt>()
            let tree = transactionalOperation(options: named("half is over")) { scope in
                for _ in 0..<200 { _ = scope.operation(options: named("of a half")) { attempts.send($0) } }
            }
            var all: [COOperation<Void>.Attempt] = []
            for _ in 0..<200 { all.append(await attempts.next()) }
            for attempt in all.prefix(100) { attempt.finish() }
            // A finished operation counts as ended only once its block has returned as well.
            #expect(
                await eventually {
                    Inspection.dump(limit: 100_000).trees.nodes.count { $0.name == "of a half" } == 100
                })
            #expect(Inspection.dump(limit: 100_000).trees.node("half is over")?.omitted == 0)
            for attempt in all { attempt.finish() }
            #expect(await tree.outcome.isFinished)
        }
    }

    @Test func `a deep tree is walked without recursion`() async throws {
        await inspecting {
            let begun = Mail<COOperation<Void>.Attempt>()
            @Sendable func nest(_ scope: CascadeScope, _ depth: Int) {
                if depth == 0 {
                    _ = scope.operation(options: named("deepest")) { begun.send($0) }
                } else {
                    _ = scope.cascadeOperation { nest($0, depth - 1) }
                }
            }
            let tree = cascadeOperation(options: named("deep")) { nest($0, 500) }
            let attempt = await begun.next()
            let dump = Inspection.dump(limit: 100_000)
            #expect(dump.trees.node("deepest")?.depth == 501)
            #expect(dump.description.contains("(level 502) operation \"deepest\""))
            attempt.finish()
            #expect(await tree.outcome.isFinished)
        }
    }

    // MARK: The switch

    @Test func `nothing is kept without start, and after stop`() async throws {
        let before = await begun("begun before the start")
        #expect(!Inspection.isOn)
        Inspection.start()
        let during = await begun("begun during the inspection")
        let names = Inspection.dump(limit: 100_000).trees.nodes.compactMap(\.name)
        #expect(names.contains("begun during the inspection"))
        #expect(!names.contains("begun before the start"))
        Inspection.stop()
        #expect(Inspectables.count == 0)
        let dump = Inspection.dump()
        #expect(!dump.isOn)
        #expect(dump.trees.nodes.isEmpty && dump.trees.omitted == 0)
        before.finish()
        during.finish()
    }

    @Test func `ended operations are swept, so memory does not grow`() async throws {
        await inspecting {
            for _ in 0..<scaled(50_000) { _ = await operation { 1 }.outcome }
            #expect(await eventually { Inspectables.count < 20_000 })
        }
    }

    @Test func `names with quotes, lines and signs are kept in JSON`() async throws {
        try await inspecting {
            let name = "a \"name\"\\ with\n\u{1}\t é 🦑"
            let attempt = await begun(name)
            let dump = Inspection.dump(limit: 100_000)
            let decoded = try JSONDecoder().decode(Dump.self, from: Data(dump.json.utf8))
            #expect(decoded == dump)
            #expect(decoded.trees.node(name) != nil)
            attempt.finish()
        }
    }

    /// In its own process, because the handler stays.
    @Test func `a signal has a dump made, outside of its handler`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            let dumps = Mail<Dump>()
            let thread = pthread_self()
            let isInstalled = Inspection.dumpOnSignal(SIGUSR2) { dump in
                if pthread_equal(pthread_self(), thread) == 0 { dumps.send(dump) }
            }
            guard isInstalled, !Inspection.dumpOnSignal(SIGUSR1), Inspection.isOn else { exit(1) }
            let attempt = await begun("begun before the signal")
            for _ in 0..<3 {
                kill(getpid(), SIGUSR2)  // threads of libdispatch block it
                let dump = await dumps.next()
                guard dump.trees.node("begun before the signal") != nil else { exit(2) }
            }
            attempt.finish()
            exit(7)
        }
    }

    @Test func `an unavailable signal leaves another one free`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            guard !Inspection.dumpOnSignal(SIGKILL) else { exit(1) }
            let dumps = Mail<Dump>()
            guard Inspection.dumpOnSignal(SIGUSR2, stacks: true, { dumps.send($0) }) else { exit(2) }
            kill(getpid(), SIGUSR2)
            _ = await dumps.next()
            exit(7)
        }
    }

    @Test func `a dump is written in full to a non-blocking descriptor`() async {
        await #expect(processExitsWith: .success) {
            var ends: [Int32] = [0, 0]
            precondition(pipe(&ends) == 0)
            precondition(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0)
            precondition(Inspection.dumpOnSignal(SIGUSR2, to: ends[1]))
            var attempts: [COOperation<Void>.Attempt] = []
            for number in 0..<2_000 { attempts.append(await begun("operation number \(number)")) }
            kill(getpid(), SIGUSR2)
            // A pipe has room for 65,536 bytes. The schedulers come last in a dump.
            var text = ""
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while !text.contains("\nschedulers:\n") {
                let count = read(ends[0], &buffer, buffer.count)
                precondition(count > 0)
                text += String(decoding: buffer[..<count], as: UTF8.self)
            }
            precondition(text.utf8.count > 100_000)
            for attempt in attempts { attempt.finish() }
        }
    }

    @Test func `a name cannot look like a line of a dump, and no limit is too large`() async throws {
        try await inspecting {
            let attempt = await begun("odd\n  name\u{0}")
            let dump = Inspection.dump(limit: .max)
            #expect(dump.trees.node("odd\n  name\u{0}") != nil)
            #expect(dump.description.contains("odd\\u{a}  name\\u{0}"))
            let again = try JSONDecoder().decode(Dump.self, from: Data(dump.json.utf8))
            #expect(again == dump)
            attempt.finish()
        }
    }

    @Test func `limits that show nothing stop with a sentence`() async {
        await #expect(processExitsWith: .failure) { _ = Inspection.dump(limit: 0) }
        await #expect(processExitsWith: .failure) { Inspection.dumpOnSignal(limit: 0) }
    }
}
