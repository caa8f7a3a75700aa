// The examples of the articles in CompositeOperations.docc, each as a test: so that it compiles, and does what the
// article says. Scripts/documentation looks for every block of Swift in an article here; what stands between the name
// of the article and `end of the example` is that block. To change one is to change the other.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

// MARK: What the examples use

/// Stands for an interface with a callback.
private func fetch(_ name: String, then done: @escaping @Sendable (Result<String, any Error>) -> Void) {
    elsewhere.async { done(.success("text of \(name)")) }
}

/// Stands for an interface that is asynchronous.
private func load(_ name: String) async throws -> String {
    try Task.checkCancellation()
    return "text of \(name)"
}

/// Stands for something that can be stopped.
private final class Request: Sendable {
    let name: String
    let stopped = Count()
    init(_ name: String) { self.name = name }
    func stop() { stopped.add() }
}

/// Stands for something that fails some times, and then does not.
private final class Server: Sendable {
    private let failures: Int
    let calls = Count()
    init(failures: Int) { self.failures = failures }
    func send() throws { if calls.add() <= failures { throw Unreachable() } }
}

private struct Unreachable: Error {}

// MARK: The examples

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DocumentationExamples {
    let log = Log<String>()

    @Test func `overview`() async throws {
        // CompositeOperations.md
        let report = cascadeOperation { cascade in
            let parts = cascade.transactionalOperation { group in
                .values(of: ["names", "sums"].map { name in group.operation { try await load(name) } })
            }
            let page = cascade.operation(using: parts) { parts in parts.joined(separator: ", ") }
            return .value(of: page)
        }
        let text = try await report.value
        // end of the example
        #expect(text == "text of names, text of sums")
    }

    // MARK: Operations.md

    @Test func `a block that returns`() async throws {
        // Operations.md
        let sum = operation { (1...100).reduce(0, +) }
        let page = operation { try await load("page") }
        log.add("\(try await sum.value), \(try await page.value)")
        // end of the example
        #expect(log.entries == ["5050, text of page"])
    }

    @Test func `a block that ends by a call`() async throws {
        // Operations.md
        let page = operation(returning: String.self) { attempt in
            fetch("page") { result in
                switch result {
                case .success(let text): attempt.finish(text)
                case .failure(let error): attempt.fail(error)
                }
            }
        }
        // end of the example
        // Operations.md
        switch await page.outcome {
        case .finished(let text): log.add("finished: \(text)")
        case .failed(let error): log.add("failed: \(error)")
        case .cancelled(let reason): log.add("\(reason)")
        }
        // end of the example
        #expect(log.entries == ["finished: text of page"])
    }

    @Test func `prepared, then started`() async {
        // Operations.md
        let greeting = COOperation<String>()
        greeting.operation = { attempt in attempt.finish("hello") }
        greeting.onOutcome { outcome in log.add("\(outcome)") }
        greeting.start()
        // end of the example
        let isTold = await eventually { log.entries == ["finished(\"hello\")"] }
        #expect(isTold)
    }

    @Test func `closures for each end`() async {
        // Operations.md
        let greeting = COOperation<Void>()
        greeting.run { attempt in
            attempt.finish()
        } completion: {
            log.add("finished")
        } cancellation: {
            log.add("cancelled")
        } failure: { error in
            log.add("failed: \(error)")
        }
        // end of the example
        let isTold = await eventually { log.entries == ["finished"] }
        #expect(isTold)
    }

    @Test func `where blocks run`() {
        // Operations.md
        let lane = serialQueue()
        let files = DispatchQueue(label: "files")
        let first = operation(on: lane) { "on a lane" }
        let second = operation(on: files) { "on a dispatch queue" }
        let third = COQueues.withDefaultQueue(files) { operation { files.isCurrent } }
        // end of the example
        #expect((try? first.wait()?.get()) == "on a lane")
        #expect((try? second.wait()?.get()) == "on a dispatch queue")
        #expect((try? third.wait()?.get()) == true)
    }

    @Test func `a cancel reaches started work`() async {
        let request = Request("page")
        // Operations.md
        let page = operation { attempt in
            attempt.onCancel { _ in request.stop() }
            fetch(request.name) { _ in log.add("too late: \(!attempt.finish())") }
        }
        page.cancel()
        // end of the example
        let outcome = await page.outcome
        #expect(outcome.isCancelled || outcome.isFinished)
        let isStopped = await eventually {
            // One that was cancelled before its turn has begun nothing.
            outcome.isFinished || page.numberOfRuns == 0 || request.stopped.value == 1
        }
        #expect(isStopped)
    }

    @Test func `a cancel reaches a task`() async {
        // Operations.md
        let slow = operation { try await Task.sleep(for: .seconds(3600)) }
        slow.cancel()
        // end of the example
        let outcome = await slow.outcome
        #expect(outcome.reason?.kind == .requested)
    }

    @Test func `a time limit`() async {
        // Operations.md
        let options = OperationOptions(name: "forgetful", timeout: .milliseconds(20))
        let forgetful = operation(options: options) { _ in }
        // end of the example
        let outcome = await forgetful.outcome
        #expect(outcome.reason?.kind == .timedOut)
        #expect(forgetful.name == "forgetful")
    }

    @Test func priorities() async throws {
        // Operations.md
        let answer = operation(options: OperationOptions(priority: .high)) { "soon" }
        let index = operation(options: OperationOptions(priority: .background)) { log.add("indexed") }
        // end of the example
        #expect(answer.priority == .high && index.priority == .background)
        #expect(try await answer.value == "soon")
        try await index.value
        #expect(log.entries == ["indexed"])
    }

    @Test func `an operation that depends on another one`() async throws {
        // Operations.md
        let first = COOperation<Void> { attempt in
            log.add("first")
            attempt.finish()
        }
        let second = COOperation<Void> { attempt in
            log.add("second")
            attempt.finish()
        }
        second.addDependency(first)
        second.start()
        first.start()
        // end of the example
        try await second.value
        #expect(log.entries == ["first", "second"])
    }

    @Test func `its states`() async {
        // Operations.md
        let page = operation { try await load("page") }
        for await transition in page.transitions { log.add("\(transition.to)") }
        // end of the example
        #expect(log.entries.last == "finished")
    }

    // MARK: SyncOperations.md

    @Test func `the caller waits`() {
        // SyncOperations.md
        let page = syncOperation(returning: String.self) { sync in
            fetch("page") { result in
                switch result {
                case .success(let text): sync.finish(text)
                case .failure(let error): sync.fail(error)
                }
            }
        }
        log.add("\(page.isFinished)")
        // end of the example
        #expect(log.entries == ["true"])
        #expect((try? page.result?.get()) == "text of page")
    }

    @Test func `the block need not be Sendable`() {
        // SyncOperations.md
        var tries = 0
        syncOperation { sync in
            tries += 1
            if tries < 3 { sync.rerun() } else { sync.finish() }
        }
        // end of the example
        #expect(tries == 3)
    }

    @Test func `the caller waits no longer than that`() {
        // SyncOperations.md
        let outcome = COSyncOperation<Void>().run(timeout: .milliseconds(20)) { _ in }
        // end of the example
        #expect(outcome?.reason?.kind == .timedOut)
    }

    @Test func `a wait for another operation`() {
        // SyncOperations.md
        let page = operation { try await load("page") }
        let outcome = page.wait(timeout: .seconds(60))
        // end of the example
        #expect((try? outcome?.get()) == "text of page")
    }

    // MARK: Cascades.md

    @Test func `a cascade`() async throws {
        // Cascades.md
        let disk = DispatchQueue(label: "disk")
        let cascade = cascadeOperation { cascade in
            cascade.operation { step in
                fetch("page") { _ in
                    log.add("fetched")
                    step.finish()
                }
            }
            cascade.operation(on: disk) { log.add("stored") }
        } completion: {
            log.add("completed")
        }
        // end of the example
        try await cascade.value
        let isTold = await eventually { log.entries == ["fetched", "stored", "completed"] }
        #expect(isTold)
    }

    @Test func `values from step to step`() async throws {
        // Cascades.md
        let length = cascadeOperation { cascade in
            let text = cascade.operation { try await load("page") }
            let words = cascade.operation(using: text) { text in text.split(separator: " ").map(String.init) }
            let longest = cascade.operation(using: words) { words in words.map(\.count).max() ?? 0 }
            return .value(of: longest)
        }
        let longest = try await length.value
        // end of the example
        #expect(longest == 4)
    }

    @Test func `a value that steps share`() async throws {
        // Cascades.md
        let collected = cascadeOperation { cascade in
            let names = cascade.shared([String]())
            for name in ["first", "second"] {
                cascade.operation { names.withLock { $0.append(name) } }
            }
            return .value(of: cascade.operation { names.withLock { $0 } })
        }
        let names = try await collected.value
        // end of the example
        #expect(names == ["first", "second"])
    }

    @Test func `steps that come later`() async throws {
        // Cascades.md
        let cascade = cascadeOperation { cascade in
            cascade.operation {
                for part in 1...3 { cascade.operation { log.add("part \(part)") } }
            }
            cascade.operation { log.add("second step") }
        }
        // end of the example
        try await cascade.value
        #expect(log.entries == ["second step", "part 1", "part 2", "part 3"])
    }

    @Test func `as many as a value says`() async throws {
        // Cascades.md
        let pages = cascadeOperation { cascade in
            let names = cascade.operation { try await load("index").split(separator: " ").map(String.init) }
            let texts = cascade.operation(using: names) { names in
                let group = COTransactionalOperation<[String]> { group in
                    .values(of: names.map { name in group.operation { try await load(name) } })
                }
                return try await group.run()
            }
            return .value(of: texts)
        }
        let texts = try await pages.value
        // end of the example
        #expect(texts == ["text of text", "text of of", "text of index"])
    }

    // MARK: TransactionalOperations.md

    @Test func `a group`() async throws {
        // TransactionalOperations.md
        let group = transactionalOperation { group in
            for name in ["a", "b", "c"] {
                group.operation { child in
                    fetch(name) { _ in child.finish() }
                }
            }
        } completion: {
            log.add("all are there")
        } cancellation: { group in
            log.add("not all: \(group.causes)")
        }
        // end of the example
        try await group.value
        let isTold = await eventually { log.entries == ["all are there"] }
        #expect(isTold)
    }

    @Test func `values of a group`() async throws {
        // TransactionalOperations.md
        let squares = transactionalOperation { group in
            .values(of: (1...4).map { number in group.operation { number * number } })
        }
        let person = transactionalOperation { group in
            let name = group.operation { try await load("name") }
            let age = group.operation { 42 }
            return .values(of: name, age)
        }
        let (name, age) = try await person.value
        // end of the example
        #expect(name == "text of name")
        #expect(age == 42)
        #expect(try await squares.value == [1, 4, 9, 16])
    }

    @Test func `two at a time`() async throws {
        // TransactionalOperations.md
        let pages = transactionalOperation(options: OperationOptions(width: 2)) { group in
            .values(of: (1...10).map { page in group.operation { try await load("page \(page)") } })
        }
        // end of the example
        #expect(try await pages.value.count == 10)
    }

    @Test func `one block for many children`() async throws {
        // TransactionalOperations.md
        let parts = transactionalOperation { group in
            group.operations(0..<4) { index in log.add("part \(index)") }
        } completion: {
            log.add("all parts")
        }
        // end of the example
        try await parts.value
        #expect(await eventually { log.entries.count == 5 })
        #expect(
            log.entries.dropLast().sorted() == (0..<4).map { "part \($0)" } && log.entries.last == "all parts"
        )
    }

    @Test func `undone by its user`() async {
        let server = Server(failures: 1)
        // TransactionalOperations.md
        let transfer = transactionalOperation { group in
            group.operation { log.add("reserved") }
            group.operation { try server.send() }
        }
        transfer.onOutcome { outcome in
            if case .finished = outcome { return }
            log.add("given back")  // nothing of the transfer runs any more
        }
        // end of the example
        let outcome = await transfer.outcome
        #expect(outcome.error is Unreachable)
        let isUndone = await eventually { log.entries.last == "given back" }
        #expect(isUndone)
    }

    @Test func `cascades in a group`() async throws {
        // TransactionalOperations.md
        let albums = transactionalOperation { group in
            for album in ["a", "b"] {
                group.cascadeOperation { cascade in
                    cascade.operation { log.add("load \(album)") }
                    cascade.operation { log.add("show \(album)") }
                }
            }
        }
        // end of the example
        try await albums.value
        #expect(log.entries.filter { $0.hasSuffix("a") } == ["load a", "show a"])
        #expect(log.entries.filter { $0.hasSuffix("b") } == ["load b", "show b"])
    }

    // MARK: Queues.md

    @Test func `two slots`() async throws {
        // Queues.md
        let downloads = COOperationQueue(runningLimit: 2)
        let pages = ["a", "b", "c"].map { name in operation(on: downloads) { try await load(name) } }
        for page in pages { log.add(try await page.value) }
        await downloads.idle()
        // end of the example
        #expect(log.entries == ["text of a", "text of b", "text of c"])
        #expect(downloads.operationCount == 0)
    }

    @Test func `the newest first`() async throws {
        // Queues.md
        let previews = COOperationQueue(.aggressiveLIFO, runningLimit: 1, pendingLimit: 1)
        previews.suspend()
        let old = operation(on: previews) { "old" }
        let new = operation(on: previews) { "new" }
        previews.resume()
        // end of the example
        let outcome = await old.outcome
        #expect(outcome.reason?.kind == .displaced)
        #expect(try await new.value == "new")
    }

    @Test func `a composite in a queue`() async throws {
        // Queues.md
        let queue = COOperationQueue(runningLimit: 1)
        let cascade = COCascadeOperation<Void> { cascade in
            cascade.operation { log.add("first") }
            cascade.operation { log.add("second") }
        }
        queue.add(cascade)
        // end of the example
        try await cascade.value
        #expect(log.entries == ["first", "second"])
    }

    @Test func `taken out of a queue`() async throws {
        // Queues.md
        let queue = COOperationQueue()
        queue.suspend()
        let first = operation(on: queue) { "never" }
        let removed = queue.removeAllPending()
        let second = operation(on: queue) { "never, too" }
        queue.cancelAll()
        queue.resume()
        // end of the example
        #expect(removed == 1)
        #expect(await first.outcome.reason?.kind == .removed)
        #expect(await second.outcome.reason?.kind == .requested)
        await queue.idle()
    }

    @Test func `a queue as the default`() {
        // Queues.md
        let queue = COOperationQueue(.lifo, runningLimit: 4)
        let inQueue = COQueues.withDefaultQueue(queue) {
            transactionalOperation { group in
                for number in 1...3 { group.operation { log.add("\(number)") } }
            }
        }
        // end of the example
        #expect(inQueue.wait()?.isFinished == true)
        #expect(Set(log.entries) == ["1", "2", "3"])
    }

    // MARK: Decisions.md

    @Test func `a handler that decides`() async throws {
        let server = Server(failures: 2)
        // Decisions.md
        let upload = cascadeOperation { cascade in
            cascade.operation { log.add("compress") }
            cascade.operation { try server.send() }
        } cancellation: { upload in
            for cause in upload.causes { log.add("\(cause)") }
            if upload.attempt < 3 { upload.awake() }
        }
        // end of the example
        try await upload.value
        #expect(upload.attempt == 3)
        #expect(
            log.entries == ["compress", "child 1 failed: Unreachable()", "child 1 failed: Unreachable()"])
    }

    @Test func `a decision that is made later`() async throws {
        let server = Server(failures: 1)
        // Decisions.md
        let upload = transactionalOperation { group in
            group.operation { try server.send() }
        } cancellation: { upload in
            let hold = upload.deferDecision()
            fetch("advice") { _ in
                upload.rerun()
                withExtendedLifetime(hold) {}
            }
        }
        // end of the example
        try await upload.value
        #expect(upload.attempt == 2)
    }

    @Test func `a resolver`() async throws {
        let server = Server(failures: 3)
        // Decisions.md
        let patience = COOperationResolver(
            maxAttempts: 5,
            backoff: .exponential(first: .milliseconds(1), factor: 2, limit: .seconds(1), jitter: 0.5),
            retryIf: { cause in
                if case .failed(let error) = cause.outcome { error is Unreachable } else { false }
            },
            fallback: { operation in operation.cancel() })
        let upload = operation(options: OperationOptions(resolver: patience)) { try server.send() }
        // end of the example
        try await upload.value
        #expect(upload.attempt == 4)
        #expect(server.calls.value == 4)
    }

    @Test func `a resolver that a handler calls`() async throws {
        let server = Server(failures: 3)
        // Decisions.md
        let upload = cascadeOperation { cascade in
            cascade.operation { try server.send() }
        } cancellation: { upload in
            upload.resolve(using: COOperationResolver(maxAttempts: 3, redo: .rerun))
        }
        // end of the example
        let outcome = await upload.outcome
        #expect(outcome.error is Unreachable)
        #expect(upload.attempt == 3)
    }

    @Test func `a block that does itself again`() async throws {
        let server = Server(failures: 2)
        // Decisions.md
        let poll = operation { attempt in
            do {
                try server.send()
                attempt.finish()
            } catch {
                attempt.rerun(after: .milliseconds(1))
                log.add("too late: \(!attempt.finish())")  // the attempt is over
            }
        }
        // end of the example
        try await poll.value
        #expect(server.calls.value == 3)
        #expect(log.entries == ["too late: true", "too late: true"])
    }

    // MARK: Suspension.md

    @Test func `a gate that is closed`() async throws {
        // Suspension.md
        let work = COCascadeOperation<Void> { cascade in
            cascade.operation { log.add("first") }
            cascade.operation { log.add("second") }
        }
        work.suspend()
        work.start()
        log.add("nothing has begun")
        work.resume()
        // end of the example
        try await work.value
        #expect(log.entries == ["nothing has begun", "first", "second"])
    }

    @Test func `a block that stops for a while`() async throws {
        // Suspension.md
        let copy = operation(returning: Int.self) { attempt in
            attempt.suspend()
            Task {
                for part in 1...3 {
                    try await attempt.resumed()  // throws when it is cancelled
                    log.add("part \(part)")
                }
                attempt.finish(3)
            }
        }
        // end of the example
        #expect(await eventually { copy.isSuspended })
        #expect(log.entries.isEmpty)
        #expect(copy.resume())
        #expect(try await copy.value == 3)
        #expect(log.entries == ["part 1", "part 2", "part 3"])
    }

    @Test func `a block that is done again`() async throws {
        // Suspension.md
        let listener = operation { attempt in
            log.add("listens, attempt \(attempt.number)")
            if attempt.number == 2 { attempt.finish() }
        }
        // end of the example
        #expect(await eventually { log.entries.count == 1 })
        // Suspension.md
        listener.suspend()
        listener.resume(.restart)
        // end of the example
        try await listener.value
        #expect(log.entries == ["listens, attempt 1", "listens, attempt 2"])
    }

    // MARK: FromOperationQueue.md

    @Test func `the work of an operation queue`() async throws {
        @Sendable func work() { log.add("work") }
        // FromOperationQueue.md, the table
        let queue = COOperationQueue(runningLimit: 2)
        let first = operation(on: queue) { work() }
        let second = COOperation<Void> { attempt in attempt.finish() }
        second.addDependency(first)
        queue.add(second)
        second.onOutcome { outcome in log.add("\(outcome)") }
        queue.runningLimit = 1
        await queue.idle()
        // end of the table
        let isTold = await eventually { log.entries.count == 2 }
        #expect(isTold)
        #expect(log.entries.first == "work")
        // FromOperationQueue.md, the table
        queue.suspend()
        queue.cancelAll()
        queue.resume()
        first.cancel()
        let ended = second.isEnded
        let copy = second.copy()
        // end of the table
        #expect(ended)
        #expect(copy.attempt == 0)
    }

    @Test func `an operation of one's own`() async throws {
        // FromOperationQueue.md
        @Sendable func download(_ name: String) -> COOperation<String> {
            COOperation { attempt in
                fetch(name) { result in
                    switch result {
                    case .success(let text): attempt.finish(text)
                    case .failure(let error): attempt.fail(error)
                    }
                }
            }
        }
        let queue = COOperationQueue(runningLimit: 2)
        let page = download("page")
        queue.add(page)
        // end of the example
        #expect(try await page.value == "text of page")
    }

    @Test func `dependencies become a cascade`() async throws {
        // FromOperationQueue.md
        let published = cascadeOperation { cascade in
            let texts = cascade.transactionalOperation { group in
                .values(of: ["a", "b"].map { name in group.operation { try await load(name) } })
            }
            return .value(of: cascade.operation(using: texts) { texts in texts.joined(separator: "\n") })
        }
        // end of the example
        #expect(try await published.value == "text of a\ntext of b")
    }

    // MARK: FromDispatchGroups.md

    @Test func `the work of a dispatch group`() {
        @Sendable func work() { log.add("work") }
        let queue = DispatchQueue(label: "queue")
        // FromDispatchGroups.md, the table
        let both = transactionalOperation { group in
            group.operation(on: queue) { work() }
            group.operation { child in fetch("page") { _ in child.finish() } }
        }
        both.onOutcome(on: queue) { outcome in log.add("\(outcome)") }
        both.wait(timeout: .seconds(60))
        // end of the table
        #expect(both.isFinished)
        // FromDispatchGroups.md, the table
        let lane = serialQueue("lane")
        let limited = COOperationQueue(runningLimit: 3)
        let step = operation(on: limited) { work() }
        syncOperation { sync in fetch("page") { _ in sync.finish() } }
        let later = operation(options: OperationOptions(timeout: .seconds(60))) { work() }
        // end of the table
        #expect(operation(on: lane) { 1 }.wait()?.isFinished == true)
        #expect(step.wait()?.isFinished == true)
        #expect(later.wait()?.isFinished == true)
    }

    @Test func `a group with values`() async throws {
        // FromDispatchGroups.md
        let pages = transactionalOperation { group in
            .values(
                of: ["a", "b"].map { name in
                    group.operation(returning: String.self) { child in
                        fetch(name) { result in
                            switch result {
                            case .success(let text): child.finish(text)
                            case .failure(let error): child.fail(error)
                            }
                        }
                    }
                })
        }
        let texts = try await pages.value  // in the order of registration
        // end of the example
        #expect(texts == ["text of a", "text of b"])
    }

    @Test func `nested callbacks become steps`() async throws {
        let first = DispatchQueue(label: "first")
        let second = DispatchQueue(label: "second")
        // FromDispatchGroups.md
        let steps = cascadeOperation { cascade in
            cascade.operation(on: first) { log.add("first job") }
            cascade.operation(on: second) { log.add("second job") }
        }
        // end of the example
        try await steps.value
        #expect(log.entries == ["first job", "second job"])
    }
}
