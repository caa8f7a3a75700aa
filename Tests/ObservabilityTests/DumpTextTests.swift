// DumpTextTests - dumps as text and as JSON, built from given values; and the sizes of dumps, each in its own process.

import CompositeOperations
import CompositeOperationsTestSupport
import Foundation
@testable import Observability
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

private let worker = """
    {"index":0,"thread":7,"activity":"blocks","isReplaced":true,"executed":3,"stolen":0,"parked":0,"waiting":2,
     "body":{"function":"load()","age":0.5},"stack":{"functions":["inner()","outer()"]}}
    """

/// The items of each kind, and the numbers of items left out.
private let text = """
    {"limit":1,"isOn":true,"omittedWaits":1200,
     "problems":[{"kind":"forgottenFinish","text":"a problem","ids":["#1"]}],
     "trees":{"nodes":[
      {"depth":0,"kind":"cascade","name":"top","id":"#1","state":"executing","age":1.5,"notes":["a note"],
       "waitsFor":[],"omitted":2},
      {"depth":1,"kind":"operation","id":"#2","state":"ready","notes":[],"waitsFor":[{"why":"needs","id":"#3"}],
       "omitted":0},
      {"depth":0,"kind":"queue","id":"queue 4","state":"open","notes":[],"waitsFor":[],"omitted":0}
     ],"omitted":1234567},
     "queues":{"nodes":[],"omitted":0},"invokers":{"nodes":[],"omitted":0},
     "transactions":{"nodes":[],"omitted":0},"actions":{"nodes":[],"omitted":0},
     "gates":{"nodes":[],"omitted":0},
     "waits":[{"waiter":"#1","thread":5,"id":"#2","hasLimit":true,"age":0.5},{"id":"#3","hasLimit":false,"age":1}],
     "schedulers":[{"id":1,"name":"texts","isSuspended":true,"isClosing":true,"timersDueIn":1.5,
      "queues":[{"priority":"high","waiting":1,"submitted":1}],"workers":[\(worker)]}]}
    """

private func decoded() throws -> Dump { try JSONDecoder().decode(Dump.self, from: Data(text.utf8)) }

@Suite(.inTurn, .serialized) struct DumpTextTests {
    @Test func `the text of a dump has all that the dump has`() throws {
        #expect(
            try "\(decoded())" == """
                dump of what is alive
                problems:
                  a problem
                trees:
                  cascade "top" #1: executing, a note, for 1.5 s
                    operation #2: ready, needs #3
                    … 2 more
                  queue 4: open
                  … 1,234,567 more
                waits:
                  thread 5 of the block of #1 waits for #2, for 0.5 s, with a limit
                  a task waits for #3, for 1.0 s
                  … 1,200 more
                schedulers:
                  scheduler 'texts': 1 of high priority wait, suspended, shutting down, its timers are due in 1.5 s
                    worker 0, thread 7: blocks, and another worker has its place, 3 executed, 2 in its queues, \
                load(), for 0.5 s
                      inner()
                      outer()
                """)
        let plain = text.replacingOccurrences(of: "\"isOn\":true", with: "\"isOn\":false")
        let off = try JSONDecoder().decode(Dump.self, from: Data(plain.utf8))
        #expect("\(off)".hasPrefix("dump: no objects are kept; call Inspection.start()\n"))
    }

    @Test func `the keys of a dump as JSON are in alphabetical order`() throws {
        let json = try decoded().json
        #expect(json.hasPrefix("{\"actions\":{\"nodes\":[],\"omitted\":0},\"gates\":{"))
        #expect(
            json.contains("\"isOn\":true,\"limit\":1,\"omittedWaits\":1200,\"problems\":[{\"ids\":[\"#1\"],"))
    }

    @Test
    func `roots and waits are shown up to the limit, oldest first, and the others are counted`()
        async
    {
        await #expect(processExitsWith: .exitCode(7)) {
            Inspection.start()
            var attempts: [COOperation<Void>.Attempt] = []
            for number in 0..<5 { attempts.append(await begun("root \(number)")) }
            let operations = attempts.map(\.operation)
            let tasks = operations.map { operation in Task { _ = await operation.outcome } }
            guard await eventually({ Inspection.dump().waits.count == 5 }) else { exit(1) }
            let dump = Inspection.dump(limit: 2)
            guard dump.waits.count == 2, dump.omittedWaits == 3 else { exit(2) }
            guard dump.trees.nodes.map(\.name) == ["root 0", "root 1"], dump.trees.omitted == 3 else {
                exit(3)
            }
            guard dump.trees.nodes.allSatisfy({ $0.age != nil }) else { exit(4) }
            Inspection.stop()
            guard Inspection.dump().waits.isEmpty, Inspection.dump().trees.nodes.isEmpty else { exit(5) }
            Inspection.start()
            for attempt in attempts { attempt.finish() }
            for task in tasks { await task.value }
            guard Inspection.dump().waits.isEmpty else { exit(6) }
            exit(7)
        }
    }

    @Test func `a large tree leaves room for later roots`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            Inspection.start()
            let attempts = Mail<COOperation<Void>.Attempt>()
            let tree = transactionalOperation(options: named("large")) { scope in
                for _ in 0..<50 { _ = scope.operation { attempts.send($0) } }
            }
            var all: [COOperation<Void>.Attempt] = []
            for _ in 0..<50 { all.append(await attempts.next()) }
            for number in 0..<3 { all.append(await begun("small \(number)")) }
            let nodes = Inspection.dump(limit: 10).trees.nodes
            guard nodes.filter({ $0.depth == 0 }).map(\.name) == ["large", "small 0", "small 1", "small 2"],
                nodes.count == 10
            else { exit(1) }
            for attempt in all { attempt.finish() }
            exit(await tree.outcome.isFinished ? 7 : 2)
        }
    }

    @Test func `sleeping workers are no problem, and their stacks are not read`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            await exit {
                let scheduler = try! Scheduler(.init(workers: 2, name: "texts-a", spareWorkers: 0))
                let (began, leave) = (Gate(), Gate())
                try! scheduler.submit {
                    Scheduler.blocking {
                        began.open()
                        leave.wait()
                    }
                }
                began.wait()
                func state(_ stacks: Bool) -> (workers: [SchedulerState.Worker], problems: Int) {
                    let dump = Inspection.dump(stacks: stacks)
                    return (
                        dump.schedulers.first { $0.name == "texts-a" }?.workers ?? [],
                        dump.problems.count { $0.kind == .blockedWorker }
                    )
                }
                guard await eventually({ state(false).workers.contains { $0.activity == .sleeps } }),
                    state(false).problems == 1, state(false).workers.allSatisfy({ $0.stack == nil }),
                    state(true).workers.allSatisfy({ ($0.stack != nil) == ($0.activity == .blocks) })
                else { return 1 }
                leave.open()
                return 7
            }
        }
    }

    @Test func `a body declared blocking counts so, even while its thread runs`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            await exit {
                let scheduler = try! Scheduler(.init(workers: 1, name: "texts-b", spareWorkers: 0))
                let (began, isOver) = (Gate(), Locked(false))
                try! scheduler.submit {
                    Scheduler.blocking {
                        began.open()
                        while !isOver.withLock({ $0 }) {}
                    }
                }
                began.wait()
                func worker() -> SchedulerState.Worker? {
                    SchedulerState.all().first { $0.name == "texts-b" }?.workers.first
                }
                for _ in 0..<100 { guard worker()?.activity == .blocks else { return 1 } }
                isOver.withLock { $0 = true }
                return await eventually { worker()?.executed == 1 } ? 7 : 2
            }
        }
    }

    @Test func `a worker's current body is the innermost running one, never an ended one`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            await exit {
                Recorder.start()
                let scheduler = try! Scheduler(.init(workers: 1, name: "texts-c", spareWorkers: 0))
                let (began, leave) = (Gate(), Gate())
                func body() -> SchedulerState.Body? {
                    Inspection.dump().schedulers.first { $0.name == "texts-c" }?.workers.first?.body
                }
                submitOuter(to: scheduler, began, leave)
                began.wait()
                guard body()?.function?.contains("submitOuter") == true else { return 1 }
                leave.open()
                let last = try! CompletionCounter()
                try! scheduler.submit(in: last) {}
                try! await last.completed()
                guard await eventually({ body() == nil }) else { return 2 }
                return 7
            }
        }
    }

    @Test func `operations at a worker are counted in all queues`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            await exit {
                let scheduler = try! Scheduler(.init(workers: 1, name: "texts-d", spareWorkers: 0))
                let (began, leave) = (Gate(), Gate())
                try! scheduler.submit {
                    for priority in [Scheduler.Priority.high, .default, .background] {
                        try! scheduler.submit(priority: priority) {}
                    }
                    began.open()
                    leave.wait()
                }
                began.wait()
                let worker = SchedulerState.all().first { $0.name == "texts-d" }?.workers.first
                guard worker?.waiting == 3 else { return 1 }
                leave.open()
                return 7
            }
        }
    }
}

private func submitOuter(to scheduler: Scheduler, _ began: Gate, _ leave: Gate) {
    try! scheduler.submit {
        let inner = try! CompletionCounter()
        try! scheduler.submit(in: inner) {}
        inner.wait()
        began.open()
        leave.wait()
    }
}
