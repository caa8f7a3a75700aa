// Random trees of operations, and a record of what each operation of such a tree does.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import Synchronization
import Testing

/// How a leaf ends.
enum LeafEnd: CaseIterable, Sendable {
    case finish, returning, asynchronous, late
    case fail, throwing
    case cancel, throwingCancellation

    var isGood: Bool { self == .finish || self == .returning || self == .asynchronous || self == .late }
    var isFailure: Bool { self == .fail || self == .throwing }
}

/// Where the blocks of an operation run.
enum Place: CaseIterable, Sendable {
    case builtIn, lane, dispatch
}

/// The shape of an operation to create.
indirect enum Shape: Sendable {
    case leaf(LeafEnd, Place)
    case cascade([Shape], Place)
    case transaction([Shape], Place)

    var count: Int {
        switch self {
        case .leaf: 1
        case .cascade(let children, _), .transaction(let children, _): children.reduce(1) { $0 + $1.count }
        }
    }

    /// Whether everything in it finishes by itself.
    var isGood: Bool {
        switch self {
        case .leaf(let end, _): end.isGood
        case .cascade(let children, _), .transaction(let children, _): children.allSatisfy(\.isGood)
        }
    }

    /// - Parameters:
    ///   - depth: the maximum number of levels of composites.
    ///   - badness: one leaf in `badness` fails or is cancelled; 0: none does.
    static func generator(depth: Int, badness: UInt64) -> Generator<Shape> {
        Generator { source in try make(depth, badness, &source) }
    }

    private static func make(_ depth: Int, _ badness: UInt64, _ source: inout Source) throws -> Shape {
        let place = Place.allCases[Int(source.draw(below: UInt64(Place.allCases.count)))]
        let kind = depth == 0 ? 0 : source.draw(below: 3)
        if kind == 0 {
            let isBad = badness > 0 && source.draw(below: badness) == badness - 1
            let ends = LeafEnd.allCases.filter { $0.isGood != isBad }
            return .leaf(ends[Int(source.draw(below: UInt64(ends.count)))], place)
        }
        var children: [Shape] = []
        for _ in 0..<source.draw(below: 5) { children.append(try make(depth - 1, badness, &source)) }
        return kind == 1 ? .cascade(children, place) : .transaction(children, place)
    }

    /// A shape whose root is a composite.
    static func composite(depth: Int, badness: UInt64) -> Generator<Shape> {
        Generator { source in
            var children: [Shape] = []
            for _ in 0..<(1 + source.draw(below: 4)) {
                children.append(try make(depth - 1, badness, &source))
            }
            return source.draw(below: 2) == 0
                ? .cascade(children, .builtIn) : .transaction(children, .builtIn)
        }
    }
}

/// One operation of a tree, and what is observed of it.
final class Node: Sendable {
    let shape: Shape
    let children: [Node]
    /// The violations found, in the whole tree.
    let violations: Log<String>
    let begun = Count()
    let left = Count()
    let completions = Count()
    let cancellations = Count()
    let outcomes = Log<Outcome<Void>>()
    private let handle = Locked<OperationHandle<Void>?>(nil)
    private let onEach = Locked<@Sendable (Node) -> Void>({ _ in })
    private let onCompletion = Locked<@Sendable () -> Void>({})

    init(_ shape: Shape, violations: Log<String> = Log()) {
        self.shape = shape
        self.violations = violations
        children =
            switch shape {
            case .leaf: []
            case .cascade(let children, _), .transaction(let children, _):
                children.map { Node($0, violations: violations) }
            }
    }

    /// The operation; nil if it has not been registered.
    var operation: OperationHandle<Void>? { handle.withLock { $0 } }
    var leaf: COOperation<Void>? { operation as? COOperation<Void> }

    /// The node and everything below it.
    var all: [Node] { [self] + children.flatMap(\.all) }
    var registered: [OperationHandle<Void>] { all.compactMap(\.operation) }

    // MARK: Creation

    private static func target(_ place: Place) -> (any ExecutionTarget)? {
        switch place {
        case .builtIn: nil
        case .lane: serialQueue()
        case .dispatch: elsewhere
        }
    }

    /// Makes and starts the operation, as a root.
    ///
    /// - Parameters:
    ///   - onCompletion: called in the root's completion closure.
    ///   - onEach: called in each handler of each node.
    func start(
        onCompletion: @escaping @Sendable () -> Void = {},
        onEach: @escaping @Sendable (Node) -> Void = { _ in }
    ) {
        self.onCompletion.withLock { $0 = onCompletion }
        for node in all { node.onEach.withLock { $0 = onEach } }
        switch shape {
        case .leaf(let end, let place):
            switch body(end) {
            case .token(let block): observe(CompositeOperations.operation(on: Self.target(place), block))
            case .value(let block): observe(CompositeOperations.operation(on: Self.target(place), block))
            case .asynchronous(let block):
                observe(CompositeOperations.operation(on: Self.target(place), block))
            }
        case .cascade(_, let place):
            observe(
                cascadeOperation(on: Self.target(place), registering()) {
                    self.hasCompleted()
                } cancellation: { _ in
                    self.wasAsked()
                })
        case .transaction(_, let place):
            observe(
                transactionalOperation(on: Self.target(place), registering()) {
                    self.hasCompleted()
                } cancellation: { _ in
                    self.wasAsked()
                })
        }
    }

    private func hasCompleted() {
        completions.add()
        onCompletion.withLock { $0 }()
        onEach.withLock { $0 }(self)
    }

    private func wasAsked() {
        cancellations.add()
        onEach.withLock { $0 }(self)
    }

    private func register(in scope: some CompositeScope) {
        switch shape {
        case .leaf(let end, let place):
            switch body(end) {
            case .token(let block): observe(scope.operation(on: Self.target(place), block))
            case .value(let block): observe(scope.operation(on: Self.target(place), block))
            case .asynchronous(let block): observe(scope.operation(on: Self.target(place), block))
            }
        case .cascade(_, let place):
            observe(
                scope.cascadeOperation(on: Self.target(place), registering()) {
                    self.hasCompleted()
                } cancellation: { _ in
                    self.wasAsked()
                })
        case .transaction(_, let place):
            observe(
                scope.transactionalOperation(on: Self.target(place), registering()) {
                    self.hasCompleted()
                } cancellation: { _ in
                    self.wasAsked()
                })
        }
    }

    private func registering<Scope: CompositeScope>() -> @Sendable (Scope) throws -> Void {
        { scope in
            self.begun.add()
            defer { self.left.add() }
            for child in self.children { child.register(in: scope) }
        }
    }

    private enum Body {
        case token(COOperation<Void>.Block)
        case value(@Sendable () throws -> Void)
        case asynchronous(@Sendable () async throws -> Void)
    }

    private func body(_ end: LeafEnd) -> Body {
        switch end {
        case .returning:
            .value {
                self.begun.add()
                self.left.add()
            }
        case .asynchronous:
            .asynchronous {
                self.begun.add()
                await Task.yield()
                self.left.add()
            }
        default:
            .token { attempt in
                self.begun.add()
                defer { self.left.add() }
                switch end {
                case .finish: attempt.finish()
                case .late: elsewhere.async { attempt.finish() }
                case .fail: attempt.fail(TestError(number: 1))
                case .throwing: throw TestError(number: 2)
                case .cancel: attempt.cancel()
                case .throwingCancellation: throw CancellationError()
                case .returning, .asynchronous: break
                }
            }
        }
    }

    private func observe(_ operation: OperationHandle<Void>) {
        handle.withLock { $0 = operation }
        operation.onOutcome { [self] outcome in
            outcomes.add(outcome)
            defer { onEach.withLock { $0 }(self) }
            for node in all {
                guard let operation = node.operation else { continue }
                if !operation.isEnded { violations.add("\(operation) has not ended when \(self) has") }
                if node.begun.value != node.left.value { violations.add("a block of \(operation) is out") }
            }
        }
    }

    /// Releases the observers, whose closures hold the nodes that they observe.
    func forgetObservers() {
        for node in all {
            let former = (
                node.onEach.withLock { onEach in
                    defer { onEach = { _ in } }
                    return onEach
                },
                node.onCompletion.withLock { onCompletion in
                    defer { onCompletion = {} }
                    return onCompletion
                }
            )
            withExtendedLifetime(former) {}
        }
    }

    // MARK: Checking

    /// Waits for the end, then checks that every operation of the tree has ended and has reported one outcome.
    func expectEnd() async {
        for node in all {
            guard let operation = node.operation else { continue }
            let outcome = await operation.outcome
            // Observers are notified in order of registration, so all earlier observers have been notified.
            await withCheckedContinuation { continuation in operation.onOutcome { _ in continuation.resume() }
            }
            let told = node.outcomes.entries
            #expect(told.count == 1, "\(operation) was told \(told)")
            #expect(operation.isEnded && operation.state.isTerminal)
            if let first = told.first { #expect(isSame(first, outcome), "\(first), but also \(outcome)") }
            if let result = operation.result { #expect(isSame(result, outcome)) }
            if case .leaf = node.shape {
                #expect(node.begun.value <= 1)
            } else {
                #expect(node.completions.value == (outcome.isFinished ? 1 : 0))
                #expect(node.cancellations.value == (outcome.isFinished ? 0 : 1))
                let whole = node.children.allSatisfy { $0.operation?.isFinished ?? false }
                if outcome.isFinished { #expect(whole, "complete with a child that has not finished") }
            }
            #expect(node.begun.value == node.left.value)
        }
        #expect(violations.entries.isEmpty, "\(violations.entries)")
    }
}

/// Whether two outcomes of one operation agree.
func isSame(_ left: Outcome<Void>, _ right: Outcome<Void>) -> Bool {
    switch (left, right) {
    case (.finished, .finished): true
    case (.failed(let left), .failed(let right)): "\(left)" == "\(right)"
    case (.cancelled(let left), .cancelled(let right)): left.kind == right.kind && left.origin == right.origin
    default: false
    }
}

/// Runs `body` on threads that start together, without blocking a thread of Swift's pool.
func racing<Result: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> Result) async -> [Result] {
    await withCheckedContinuation { continuation in
        elsewhere.async { continuation.resume(returning: concurrently(count, body)) }
    }
}

extension Gate {
    /// Waits without blocking a thread of Swift's pool, which has few.
    func opened() async { _ = await eventually { wait(timeout: .zero) } }
}

/// A target that holds work until the test runs it, so the test decides when a turn or a handler runs.
final class Mailbox: ExecutionTarget {
    private let work = Locked<[ExecutionWork]>([])

    var count: Int { work.withLock { $0.count } }
    var isCurrent: Bool { false }
    func submit(_ piece: ExecutionWork) { work.withLock { $0.append(piece) } }

    /// Runs the held work, and the work that follows from it, on the calling thread.
    func runAll() {
        while let piece = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { piece.run() }
    }

    func runOne() {
        if let piece = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { piece.run() }
    }
}
