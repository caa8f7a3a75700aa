// PlainChildrenTests - children without objects: they cannot be distinguished from operations, and become operations as
// soon as one is asked for.

@testable import CompositeOperations
import CompositeOperationsBasics
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

private struct Wide: Sendable, Equatable {
    var words: (UInt64, UInt64, UInt64) = (1, 2, 3)
    var text = "wide"
    static func == (left: Wide, right: Wide) -> Bool { left.words == right.words && left.text == right.text }
}

/// The kinds of composites.
private enum Form: CaseIterable, Sendable { case cascade, group }

extension Form {
    /// Starts a composite of this kind with a block that registers plain children.
    func start(
        _ block: @escaping @Sendable (any CompositeScope) throws -> Void,
        completion: (@Sendable () -> Void)? = nil,
        decision: (@Sendable (CompositeOperation<Void>) -> Void)? = nil
    ) -> CompositeOperation<Void> {
        switch self {
        case .cascade: cascadeOperation({ try block($0) }, completion: completion, cancellation: decision)
        case .group: transactionalOperation({ try block($0) }, completion: completion, cancellation: decision)
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct PlainChildrenTests {
    // MARK: No objects

    @Test(arguments: Form.allCases)
    private func `a child has no object unless its operation is asked for`(
        form: Form
    ) async throws {
        let children = Locked<[Child<Int>]>([])
        let ran = Count()
        let composite = form.start { scope in
            for number in 0..<100 {
                let child = scope.operation {
                    ran.add()
                    return number
                }
                children.withLock { $0.append(child) }
            }
        }
        try await composite.value
        let all = children.withLock { $0 }
        #expect(ran.value == 100 && all.count == 100)
        #expect(all.allSatisfy { !$0.hasObject })
        for (number, child) in all.enumerated() {
            #expect(child.isFinished)
            #expect(try await child.value == number)
            #expect(await child.outcome.isFinished)
        }
        #expect(all.allSatisfy { !$0.hasObject })
        let operation = all[7].operation
        #expect(operation.isEnded && operation.state == .finished && operation.attempt == 1)
        #expect(operation.numberOfRuns == 1 && operation === all[7].operation)
        #expect(try await operation.value == 7)
        #expect(all.count { $0.hasObject } == 1)
        #expect(composite.children.isEmpty)
    }

    @Test func `steps that take values have no objects, nor has the one whose value is the composite's`()
        async throws
    {
        let last = Mail<Child<Int>>()
        let sum = cascadeOperation { cascade in
            var step = cascade.operation { 0 }
            for _ in 0..<100 { step = cascade.operation(using: step) { $0 + 1 } }
            last.send(step)
            return .value(of: step)
        }
        #expect(try await sum.value == 100)
        #expect(await !last.next().hasObject)
    }

    @Test func `calls on a child, or observation of it, make it and its siblings operations`() async {
        for form in Form.allCases {
            let children = Locked<[Child<Int>]>([])
            let isOpen = Gate()
            let letter = Mail<Void>()
            let composite = form.start { scope in
                for number in 0..<3 {
                    let child = scope.operation {
                        isOpen.wait()
                        return number
                    }
                    children.withLock { $0.append(child) }
                }
                letter.send(())
            }
            await letter.next()
            let all = children.withLock { $0 }
            #expect(all.allSatisfy { !$0.hasObject })
            #expect(!all[1].isFinished && all.allSatisfy { !$0.hasObject })
            #expect(!all[1].isCancelled)
            #expect(all.allSatisfy { $0.hasObject })
            isOpen.open()
            #expect(await composite.outcome.isFinished)
        }
    }

    @Test func `a composition's record of plain children is noncopyable`() {
        // A copy would retain objects that the thread that settles the composite releases without a lock: a crash in
        // about one of a hundred runs of this suite.
        #expect(!isCopyable(PlainPart.self) && isCopyable(Int.self))
    }

    @Test
    func `a child is an operation from its beginning where it has a target, options, or is wanted as one`()
        async throws
    {
        let made = Log<AnyOperation>()
        try await transactionalOperation { group in
            let one: COOperation<Int> = group.operation { 1 }
            made.add(one)
            made.add(group.operation(on: elsewhere) { 2 })
            made.add(group.operation(options: OperationOptions(name: "three")) { 3 })
        }.value
        #expect(made.entries.allSatisfy { $0.isFinished })
    }

    // MARK: Becoming operations

    /// An action that is possible on children, and on their composite, at any moment.
    private enum Deed: CaseIterable, Sendable {
        case look, children, tree, suspended, dependency, outcome, copy, raised, late
    }

    private static func `do`(_ deed: Deed, _ composite: CompositeOperation<Void>, _ child: Child<Int>) async {
        switch deed {
        case .look: _ = child.operation.state
        case .children: _ = composite.children
        case .tree: _ = composite.tree
        case .suspended:
            if composite.suspend() { composite.resume() }
            if child.suspend() { child.resume() }
        case .dependency:
            let other = COOperation<Int> { 1 }
            other.addDependency(child.operation)
            other.start()
            _ = await other.outcome
        case .outcome: _ = await child.outcome
        case .copy: _ = try? await child.copy().run()
        case .raised: try? Scheduler.shared.submit(priority: .high) { _ = child.wait(timeout: .zero) }
        case .late: break
        }
    }

    @Test(arguments: Form.allCases)
    private func `children may become operations at any moment, and end as they would have`(
        form: Form
    ) async throws {
        for deed in Deed.allCases {
            for count in [1, 2, 13, 80] {
                for _ in 0..<scaled(30) {
                    let ran = (0..<count).map { _ in Count() }
                    let letter = Mail<Child<Int>>()
                    let completions = Count()
                    let composite = form.start { scope in
                        for number in 0..<count {
                            let child = scope.operation {
                                ran[number].add()
                                return number
                            }
                            if number == count / 2 { letter.send(child) }
                        }
                    } completion: {
                        completions.add()
                    }
                    let child = await letter.next()
                    await Self.do(deed, composite, child)
                    try await composite.value
                    #expect(ran.allSatisfy { $0.value == 1 || deed == .copy && $0.value == 2 }, "\(deed)")
                    #expect(await eventually { completions.value == 1 })
                    #expect(try await child.value == count / 2)
                }
            }
        }
    }

    @Test(arguments: Form.allCases)
    private func `a cancellation at any moment is atomic: nothing begins after it`(form: Form) async {
        for round in 0..<scaled(2_000) {
            let count = [1, 2, 13, 70][round % 4]
            let begun = Count()
            let isCancelled = Locked(false)
            let late = Count()
            let letter = Mail<Void>()
            let composite = form.start { scope in
                for number in 0..<count {
                    scope.operation {
                        // A block that began before `cancel` returned may continue.
                        if isCancelled.withLock({ $0 }) { late.add() }
                        begun.add()
                    }
                    if number == count / 2 { letter.send(()) }
                }
            }
            if round % 3 != 0 { await letter.next() }
            let before = begun.value
            if composite.cancel() {
                isCancelled.withLock { $0 = true }
                #expect(composite.isCancelled)
                #expect(await composite.outcome.isCancelled)
                #expect(late.value <= Scheduler.shared.workers, "\(late.value) of \(count), \(before) before")
            } else {
                #expect(begun.value == count)
            }
            #expect(begun.value <= count)
        }
    }

    @Test(arguments: Form.allCases)
    private func `with a closed gate no child begins, and each once when it opens`(form: Form) async throws {
        for round in 0..<scaled(500) {
            let count = [2, 13, 70][round % 3]
            let begun = (0..<count).map { _ in Count() }
            let letter = Mail<Void>()
            let composite = form.start { scope in
                for number in 0..<count {
                    scope.operation { _ = begun[number].add() }
                    if number == count / 2 { letter.send(()) }
                }
            }
            await letter.next()
            if composite.suspend() {
                let states = composite.children.map(\.state)
                #expect(
                    states.allSatisfy { $0 == .suspended || $0 == .finished || $0 == .ending }, "\(states)")
                composite.resume()
            }
            try await composite.value
            #expect(begun.allSatisfy { $0.value == 1 })
        }
    }

    @Test(arguments: Form.allCases)
    private func `a child that throws fails its composite; awake and rerun redo the rest`(
        form: Form
    ) async throws {
        for isAwake in [true, false] {
            for failing in [0, 4, 12, 20] {
                let runs = (0..<21).map { _ in Count() }
                let composite = form.start { scope in
                    for number in 0..<21 {
                        scope.operation { () throws -> Void in
                            if runs[number].add() == 1, number == failing { throw TestError(number: number) }
                        }
                    }
                } decision: { composite in
                    #expect(composite.causes.first?.outcome.error as? TestError == TestError(number: failing))
                    _ = isAwake ? composite.awake() : composite.rerun()
                }
                try await composite.value
                #expect(composite.attempt == 2)
                for (number, count) in runs.enumerated() {
                    if number == failing {
                        #expect(count.value == 2)
                    } else if form == .cascade, number > failing {
                        #expect(count.value == 1)
                    } else if form == .cascade {
                        #expect(count.value == (isAwake ? 1 : 2))
                    } else {
                        #expect(count.value >= 1 && count.value <= 2)
                    }
                }
            }
        }
    }

    @Test func `children that had finished are the same operations, wherever they are asked for`()
        async throws
    {
        for form in Form.allCases {
            let handles = Locked<[Child<Int>]>([])
            let seen = Log<Bool>()
            let composite = form.start { scope in
                for number in 0..<30 {
                    let child = scope.operation { () throws -> Int in
                        if number == 29, scope.control.attempt == 1 { throw TestError() }
                        return number
                    }
                    handles.withLock { $0.append(child) }
                }
            } decision: { composite in
                let all = handles.withLock { $0 }
                let early = all[3].operation
                let children = composite.children
                seen.add(children.count == 30 && children[3] === early && children[11] === all[11].operation)
                seen.add(zip(children, all).allSatisfy { $0 === $1.operation })
                seen.add(composite.tree.split(separator: "\n").count == 31)
                composite.awake()
            }
            try await composite.value
            #expect(seen.entries == [true, true, true])
            for (number, child) in handles.withLock({ $0 }).enumerated() {
                #expect(try await child.value == number)
            }
        }
    }

    @Test func `plain children and others mix, in order, however they end`() async throws {
        for form in Form.allCases {
            for way in 0..<6 {
                for _ in 0..<scaled(100) {
                    let log = Log<Int>()
                    let composite = form.start { scope in
                        for number in 0..<5 { scope.operation { log.add(number) } }
                        scope.operation { attempt in
                            log.add(5)
                            if way == 1 { #expect(!scope.control.tree.isEmpty) }
                            let isAgain = way == 2 && attempt.number == 1
                            _ = isAgain ? attempt.rerun() : attempt.finish()
                        }
                        for number in 6..<8 { scope.operation { log.add(number) } }
                        let last = scope.cascadeOperation { $0.operation { log.add(8) } }
                        if way == 3 { elsewhere.async { _ = last.suspend() && last.resume() } }
                        if way == 4 { elsewhere.async { _ = scope.control.tree } }
                        scope.operation { () throws -> Void in
                            log.add(9)
                            if way == 5, scope.control.attempt == 1 { throw TestError() }
                        }
                    } decision: {
                        $0.awake()
                    }
                    try await composite.value
                    var expected = Array(0..<10)
                    if way == 2 { expected.insert(5, at: 6) }
                    if way == 5 { expected.append(9) }
                    if form == .cascade {
                        #expect(log.entries == expected)
                    } else if way != 5 {
                        #expect(log.entries.sorted() == expected)
                    } else {
                        #expect(Set(log.entries) == Set(expected))
                    }
                }
            }
        }
    }

    @Test func `a failure without a decision is the composite's, at any place`() async {
        for form in Form.allCases {
            for failing in [0, 1, 11, 12] {
                let composite = form.start { scope in
                    for number in 0..<13 {
                        scope.operation { () throws -> Void in
                            if number == failing { throw TestError(number: number) }
                        }
                    }
                }
                #expect(await composite.outcome.error as? TestError == TestError(number: failing))
            }
        }
    }

    @Test func `a block may end a child by hand, or its composite, while the child runs`() async throws {
        for form in Form.allCases {
            for way in 0..<4 {
                let letter = Mail<Child<Int>>()
                let left = Gate()
                let composite = form.start { scope in
                    letter.send(
                        scope.operation {
                            left.wait()
                            return 1
                        })
                    scope.operation {}
                }
                let child = await letter.next()
                #expect(await eventually { child.numberOfRuns == 1 })
                switch way {
                case 0: #expect(child.finish(2))
                case 1: #expect(child.fail(TestError()))
                case 2: #expect(child.cancel())
                default: #expect(composite.cancel())
                }
                #expect(!child.finish(3))
                left.open()
                let outcome = await composite.outcome
                switch way {
                case 0:
                    #expect(outcome.isFinished)
                    #expect(try await child.value == 2)
                case 1: #expect(outcome.isFailed)
                default: #expect(outcome.isCancelled)
                }
            }
        }
    }

    // MARK: Values and memory

    private func travels<Value: Sendable & Equatable>(_ value: Value) async throws {
        let kept = Mail<Child<Value>>()
        let cascade = cascadeOperation { cascade -> Results<Value> in
            let first = cascade.operation { value }
            kept.send(first)
            let second = cascade.operation(using: first) { $0 }
            let third = cascade.operation(using: second) { [($0, 1)][0].0 }
            return .value(of: third)
        }
        #expect(try await cascade.value == value)
        let first = await kept.next()
        #expect(try await first.value == value)
        #expect(first.operation.result.flatMap { try? $0.get() } == value)
        let group = transactionalOperation { group in
            let children = (0..<20).map { _ in group.operation { value } }
            return .values(of: children)
        }
        #expect(try await group.value == Array(repeating: value, count: 20))
        let both = transactionalOperation { group in
            .values(of: group.operation { value }, group.operation(returning: Int.self) { $0.finish(5) })
        }
        let (one, two) = try await both.value
        #expect(one == value && two == 5)
    }

    @Test func `values of all kinds arrive`() async throws {
        try await travels(7)
        try await travels(2.5)
        try await travels(UInt8(3))
        try await travels("a string that does not fit into two words")
        try await travels([1, 2, 3])
        try await travels(nil as String?)
        try await travels(Wide())
        try await travels([Wide(), Wide()])
        try await travels(true)
        try await travels((0..<5))
        try await travels(Int128.max)
    }

    @Test func `values and block captures are released once, however the children end`() async {
        for form in Form.allCases {
            for way in 0..<4 {
                let (values, captured) = (Count(), Count())
                let count = 30
                do {
                    let (isOpen, letter) = (Gate(), Mail<Void>())
                    let composite = form.start { scope in
                        defer { letter.send(()) }
                        for number in 0..<count {
                            let token = Token(captured)
                            scope.operation { [token] () throws -> Token in
                                if number == 10, way == 1 { throw TestError() }
                                if number == 10, way == 2 { isOpen.wait() }
                                return withExtendedLifetime(token) { Token(values) }
                            }
                        }
                    }
                    await letter.next()
                    if way == 2 {
                        _ = composite.cancel()
                        isOpen.open()
                    }
                    if way == 3 { _ = composite.children }
                    _ = await composite.outcome
                }
                #expect(await eventually { captured.value == count }, "\(form) \(way)")
                if way == 0 || way == 3 { #expect(await eventually { values.value == count }) }
            }
        }
    }

    @Test func `a block's captures are released at its end, even if the handle is kept`() async throws {
        for form in Form.allCases {
            let released = Count()
            let kept = Locked<[Child<Int>]>([])
            let composite = form.start { scope in
                for number in 0..<20 {
                    let token = Token(released)
                    let child = scope.operation { [token] in withExtendedLifetime(token) { number } }
                    kept.withLock { $0.append(child) }
                }
            }
            try await composite.value
            #expect(await eventually { released.value == 20 })
            #expect(try await kept.withLock { $0[19] }.value == 19)
        }
    }

    @Test func `a child with a value that does not fit is as any other`() async throws {
        let released = Count()
        struct Holder: Sendable {
            var token: Token
            var words = (1, 2, 3)
        }
        let number = try await cascadeOperation { cascade in
            let first = cascade.operation { Holder(token: Token(released)) }
            let second = cascade.operation(using: first) {
                Holder(token: $0.token, words: (4, 5, $0.words.2))
            }
            return .value(of: cascade.operation(using: second) { $0.words.0 + $0.words.2 })
        }.value
        #expect(number == 7)
        #expect(await eventually { released.value == 1 })
        let failed = cascadeOperation { cascade in
            cascade.operation { () throws -> Holder in throw TestError(number: 4) }
        }
        #expect(await failed.outcome.error as? TestError == TestError(number: 4))
    }

    // MARK: Releases that wait

    /// Runs a closure when it is released.
    private final class Farewell: Sendable {
        private let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        deinit { body() }
    }

    @Test func `a step's capture may wait, on its release, for the next step`() async throws {
        for way in 0..<3 {
            let begun = Gate()
            let isOver = Gate()
            let cascade = cascadeOperation { cascade in
                let next = Locked<Child<Int>?>(nil)
                let farewell = Farewell {
                    switch way {
                    case 0: begun.wait()  // the scheduler is notified of this wait
                    case 1: _ = DispatchSemaphore(value: 0).wait(timeout: .now())
                    default: _ = next.withLock { $0 }?.wait()
                    }
                    if way == 1 { while !begun.wait(timeout: .milliseconds(1)) {} }
                    next.withLock { $0 = nil }
                    isOver.open()
                }
                cascade.operation { [farewell] in withExtendedLifetime(farewell) {} }
                let second = cascade.operation {
                    begun.open()
                    return 2
                }
                next.withLock { $0 = second }
                return .value(of: second)
            }
            #expect(try await cascade.value == 2)
            await elsewhere.waits(for: isOver)
        }
    }

    @Test func `a step's capture cancels the cascade on its release: the next step does not run`()
        async
    {
        for isSuspended in [false, true] {
            for _ in 0..<scaled(500) {
                let ran = Count()
                let itself = Locked<COCascade<Void>?>(nil)
                let (isThere, isOver) = (Gate(), Gate())
                let cascade = cascadeOperation { cascade in
                    let farewell = Farewell {
                        isThere.wait()
                        let cascade = itself.withLock { $0 }
                        _ = isSuspended ? cascade?.suspend() : cascade?.cancel()
                        isOver.open()
                    }
                    cascade.operation { [farewell] in withExtendedLifetime(farewell) {} }
                    cascade.operation { _ = ran.add() }
                }
                itself.withLock { $0 = cascade }
                isThere.open()
                await elsewhere.waits(for: isOver)
                itself.withLock { $0 = nil }
                // If the release took long, another worker may have taken the next step meanwhile.
                let states = cascade.children.map(\.state)
                if !isSuspended {
                    #expect(await cascade.outcome.isCancelled || ran.value == 1)
                } else {
                    #expect(ran.value == 0 || states.last != .suspended)
                    cascade.resume()
                    #expect(await cascade.outcome.isFinished)
                }
            }
        }
    }

    @Test func `a range's captures are released at its end, even if another child's handle is kept`()
        async throws
    {
        for isLookedAt in [false, true] {
            let released = Count()
            let kept = Mail<Child<Int>>()
            do {
                let token = Token(released)
                let group = transactionalOperation { group in
                    kept.send(group.operation { 5 })
                    group.operations(0..<50) { [token] _ in withExtendedLifetime(token) {} }
                }
                if isLookedAt { _ = group.children }
                try await group.value
            }
            let child = await kept.next()
            #expect(await eventually { released.value == 1 })
            #expect(try await child.value == 5)
        }
    }

    @Test func `a value with references makes an operation: it may hold a handle of a sibling`() async throws
    {
        let released = Count()
        do {
            let group = transactionalOperation { group in
                let token = Token(released)
                let first = group.operation { 1 }
                let second = group.operation { [token] in (first, token) }
                return .value(of: second)
            }
            let value = try await group.value
            #expect(try await value.0.value == 1)
        }
        #expect(await eventually { released.value == 1 })
    }

    // MARK: Waits

    /// Nested composites. At each level, a block waits for the composite that holds the next level.
    @Sendable private static func nest(_ depth: Int, _ way: Int, _ threads: Locked<Set<UInt>>) {
        threads.withLock { _ = $0.insert(UInt(pthread_self())) }
        if depth == 0 { return }
        switch way {
        case 0:
            transactionalOperation { group in
                let child = group.operation { nest(depth - 1, way, threads) }
                _ = child.wait()
            }.wait()
        case 1:
            transactionalOperation { $0.operations(0..<2) { if $0 == 0 { nest(depth - 1, way, threads) } } }
                .wait()
        case 2: cascadeOperation { $0.operation { nest(depth - 1, way, threads) } }.wait()
        default:
            transactionalOperation { group in
                group.operation { nest(depth - 1, way, threads) }
                group.operation {}
            }.wait()
        }
    }

    @Test(arguments: 0..<4)
    func `waits within waits run what they wait for, and take no thread each`(way: Int) async {
        // In a separate process with one worker: if another worker stole the child, the waiter would sleep, and take up
        // a thread.
        await #expect(processExitsWith: .success) { [way] in
            setenv("CSCHED_WORKERS", "1", 1)
            try #require(Scheduler.shared.workers == 1)
            let done = Gate()
            let threads = Locked<Set<UInt>>([])
            Scheduler.submit {
                Self.nest(100, way, threads)
                done.open()
            }
            await elsewhere.waits(for: done)
            let count = threads.withLock { $0.count }
            try #require(count < 5)
        }
    }

    @Test func `children of a range may wait for each other`() async throws {
        let count = 40
        let gates = (0...count).map { _ in Gate() }
        let group = transactionalOperation { group in
            group.operations(0..<count) { index in
                gates[index + 1].wait()
                gates[index].open()
            }
        }
        gates[count].open()
        try await group.value
    }

    @Test func `a wait on a worker runs the children that it waits for, also where there is one worker`()
        async
    {
        for form in Form.allCases {
            let done = Gate()
            Scheduler.submit {
                let composite = form.start { scope in for _ in 0..<20 { scope.operation {} } }
                _ = composite.wait()
                done.open()
            }
            await elsewhere.waits(for: done)
        }
    }

    @Test func `a block that waits sees what its child has done`() async throws {
        let sum = Locked(0)
        let composite = transactionalOperation { group in
            let first = group.operation { 5 }
            let value = first.wait()
            sum.withLock { $0 = (try? value?.get()) ?? 0 }
            group.operation { sum.withLock { $0 += 1 } }
        }
        try await composite.value
        #expect(sum.withLock { $0 } == 6)
    }

    // MARK: Registration

    @Test func `children that other threads register are operations, and count like any other`() async throws
    {
        for _ in 0..<scaled(200) {
            let ran = Count()
            let group = transactionalOperation { group in
                for _ in 0..<5 { group.operation { _ = ran.add() } }
                _ = concurrently(3) { _ in group.operation { _ = ran.add() } }
                for _ in 0..<5 { group.operation { _ = ran.add() } }
            }
            try await group.value
            #expect(ran.value == 13)
        }
    }

    @Test func `a step of another composite or an earlier run is not one of this run`() async throws {
        let letter = Mail<Child<Int>>()
        let other = cascadeOperation { cascade in letter.send(cascade.operation { 1 }) }
        let stranger = await letter.next()
        try await other.value
        let refusal = Mail<Child<Int>>()
        cascadeOperation { cascade in refusal.send(cascade.operation(using: stranger) { $0 }) }
        #expect(await refusal.next().outcome.error as? RegistrationError == .notAnEarlierStep)
        let former = Locked<Child<Int>?>(nil)
        let refused = Log<Bool>()
        let again = cascadeOperation { cascade in
            let first = cascade.operation { 1 }
            if let former = former.withLock({ $0 }) {
                refused.add(cascade.operation(using: former) { $0 }.isFailed)
            }
            former.withLock { $0 = first }
            cascade.operation { () throws -> Void in throw TestError() }
        } cancellation: { cascade in
            if cascade.attempt == 1 { cascade.rerun() }
        }
        _ = await again.outcome
        #expect(refused.entries == [true])
    }

    @Test func `a step that is registered late takes the value of any step that has finished`() async throws {
        for isLookedAt in [false, true] {
            let value = Locked<Child<Int>?>(nil)
            try await cascadeOperation { cascade in
                cascade.operation { 1 }
                cascade.operation { 2 }
                let third = cascade.operation { 3 }
                cascade.operation {
                    if isLookedAt { #expect(!cascade.control.tree.isEmpty) }
                    value.withLock { $0 = cascade.operation(using: third) { $0 + 1 } }
                }
            }.value
            #expect(try await value.withLock { $0 }?.value == 4)
        }
    }

    @Test func `a child that is registered behind a closed gate, or in a queue, waits like any other`()
        async throws
    {
        for form in Form.allCases {
            let ran = Count()
            let letter = Mail<Void>()
            let composite = form.start { scope in
                scope.suspend()
                for _ in 0..<20 { scope.operation { _ = ran.add() } }
                letter.send(())
            }
            await letter.next()
            #expect(composite.state == .suspended && ran.value == 0)
            composite.resume()
            try await composite.value
            #expect(ran.value == 20)
        }
        let queue = COOperationQueue(runningLimit: 1)
        let running = Count()
        try await transactionalOperation(on: queue) { group in
            for _ in 0..<20 {
                group.operation {
                    #expect(running.add() == 1)
                    running.add(-1)
                }
            }
        }.value
        let high = transactionalOperation(options: OperationOptions(priority: .high)) { group in
            #expect(group.operation {}.operation.priority == .high)
        }
        try await high.value
    }

    @Test func `a query while the last child ends does not stop completion`() async throws {
        for form in Form.allCases {
            for round in 0..<scaled(3_000) {
                let letter = Mail<Void>()
                let composite = form.start { scope in
                    for _ in 0..<(1 + round % 3) { scope.operation {} }
                    letter.send(())
                }
                await letter.next()
                for _ in 0..<round % 50 { _ = composite.state }
                _ = composite.children
                try await composite.value
            }
        }
    }

    @Test func `children of a run abandoned during registration do not count`() async throws {
        for _ in 0..<scaled(300) {
            let runs = Count()
            let ran = Count()
            let group = transactionalOperation { group in
                let isFirst = runs.add() == 1
                for number in 0..<20 {
                    if isFirst, number == 10 { elsewhere.async { group.control.rerun() } }
                    let child = group.operation { _ = ran.add() }
                    if isFirst, number == 19 { withExtendedLifetime(child) {} }
                }
            }
            _ = await group.outcome
            #expect(ran.value <= 40 && ran.value >= 20)
            #expect(group.isFinished)
        }
    }

    @Test func `a registration block that throws has begun children, and ends after them`() async {
        for _ in 0..<scaled(300) {
            let (begun, left) = (Count(), Count())
            let group = transactionalOperation { (group: TransactionScope) throws -> Void in
                for _ in 0..<20 {
                    group.operation {
                        begun.add()
                        left.add()
                    }
                }
                throw TestError()
            }
            #expect(await group.outcome.isFailed)
            #expect(begun.value == left.value)
        }
    }

    // MARK: Ranges

    @Test func `a range of children is run once for each index, with one completion`() async throws {
        for count in [0, 1, 2, 11, 12, 100, 5_000] {
            let ran = (0..<count).map { _ in Count() }
            let (before, after) = (Count(), Count())
            let completions = Count()
            let group = transactionalOperation { group in
                group.operation { _ = before.add() }
                group.operations(7..<(7 + count)) { ran[$0 - 7].add() }
                group.operation { _ = after.add() }
            } completion: {
                completions.add()
            }
            try await group.value
            #expect(ran.allSatisfy { $0.value == 1 })
            #expect(before.value == 1 && after.value == 1)
            #expect(await eventually { completions.value == 1 })
        }
    }

    @Test func `a range can fail, be cancelled, observed and redone`() async throws {
        let runs = (0..<50).map { _ in Count() }
        let group = transactionalOperation { group in
            group.operations(0..<50) { index in
                if runs[index].add() == 1, index == 20 { throw TestError(number: 20) }
            }
        } cancellation: { group in
            group.awake()
        }
        try await group.value
        #expect(runs[20].value == 2 && runs.allSatisfy { $0.value >= 1 })
        for _ in 0..<scaled(300) {
            let released = Count()
            do {
                let token = Token(released)
                let other = transactionalOperation { group in
                    group.operations(0..<100) { [token] _ in withExtendedLifetime(token) {} }
                }
                other.cancel()
                _ = await other.outcome
            }
            #expect(await eventually { released.value == 1 })
        }
        let one = transactionalOperation { group in
            group.operations(0..<100) { _ in }
            #expect((group.control as? COTransaction<Void>)?.children.count == 100)
        }
        try await one.value
        let limited = transactionalOperation(options: OperationOptions(width: 3)) { group in
            group.operations(0..<100) { _ in }
        }
        try await limited.value
    }

    // MARK: Surroundings

    private enum Local { @TaskLocal static var number = 0 }

    @Test func `a child sees the task-local values of its registration, and none of the waiters below`()
        async throws
    {
        let seen = Log<Int>()
        try await cascadeOperation { cascade in
            Local.$number.withValue(4) { cascade.operation { seen.add(Local.number) } }
            cascade.operation { seen.add(Local.number) }
        }.value
        #expect(seen.entries == [4, 0])
        let done = Gate()
        Scheduler.submit {
            Local.$number.withValue(5) {
                let group = COTransaction<Void>()
                COQueues.context = .inherited
                group.run { group in group.operation { seen.add(Local.number) } }
                _ = group.wait()
            }
            done.open()
        }
        await elsewhere.waits(for: done)
    }

    @Test func `a child registered under another default queue runs there`() async throws {
        let queue = COOperationQueue(runningLimit: 1)
        let running = Count()
        try await transactionalOperation { group in
            group.operation {}
            COQueues.withDefaultQueue(queue) {
                for _ in 0..<10 {
                    group.operation {
                        #expect(running.add() == 1)
                        running.add(-1)
                    }
                }
            }
        }.value
        await queue.idle()
    }
}

private func isCopyable<Value: ~Copyable>(_: Value.Type) -> Bool { false }
private func isCopyable<Value>(_: Value.Type) -> Bool { true }
