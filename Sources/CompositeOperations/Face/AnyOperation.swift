// AnyOperation.swift - an operation without the type of its value: what it holds, and under which lock.
//
// Everything that changes is under one lock for each tree: a root composite and all that is below it. So a
// cancellation marks all descendants in one step, a round is one step, and of ours a queue's lock alone, or that
// of dependencies, is held around a tree's. What follows from a change is collected (Effects.swift), and done when the
// lock has been let go.
//
// Invariants (those of the pure state are in OperationMachine.swift):
//   I1  user code, the release of what users gave us, targets and queues: never under the lock.
//   I2  a composite holds its children until it is settled. A child does not hold its composite, which cannot settle
//       before the child has: a root, and one that a rerun dropped, is held by the runtime (I5), every other one by its
//       own composite. `parent` is taken away when the child settles, and read by nobody after that.
//   I3  the block of an operation is written while it is ready, read while a block is out, and released after it
//       is terminal; so those who read it need no lock.
//   I4  `domain` is set once, or once more when an operation that was made by itself becomes a child, which it
//       does only while it is ready. What it was before stays alive as long as the operation.
//   I5  a root that was started, or ended, is held by the runtime until it is settled (`isHeld`).
//   I6  because of the lock no two accesses to a field overlap. So the run-time check of exclusivity, which was a third
//       of a cascade's step, is left out: `@exclusivity(unchecked)`. ThreadSanitizer looks after the rest.
//   I7  the place of a leaf that has a queue is its ticket there.

internal import CompositeOperationsBasics
@_spi(Faces) public import Runs
internal import Scheduling
internal import Synchronization

/// Where an operation is admitted and runs, when that is not the built-in scheduler.
class Place: @unchecked Sendable {
    // Unchecked: as the fields of the operation.

    /// Where its blocks run; nil: the built-in scheduler.
    @exclusivity(unchecked) final var target: (any ExecutionTarget)?
    /// The queue that decides when they may run.
    @exclusivity(unchecked) final var admission: COOperationQueue?
    /// Whether a target was given, so that a queue which the operation is added to does not give it another one.
    @exclusivity(unchecked) final var hasOwnTarget = false
}

/// The state that the operations of one tree share, also after the end: a handle is read under this lock.
class Domain: Place, @unchecked Sendable {
    // Unchecked: what is below is under the lock.
    let lock = WordLock()
    /// How many gates of the tree are closed; while it is 0, no operation asks those above it.
    @exclusivity(unchecked) final var closedGates = 0
    /// There has been a child whose priority is lower than its composite's.
    @exclusivity(unchecked) final var hasLower = false

    /// Looks at something under the tree's lock.
    final func look<Answer>(_ body: () -> Answer) -> Answer {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return body()
    }
}

/// Any operation: one piece of work with a handle. The face of it that does not know the type of the value.
///
/// All members may be used from any thread, also inside blocks and handlers, and none runs blocks or handlers of
/// yours before it returns, but those that wait for an end, and `start()` of a ``COSyncOperation``. A target of your own, and
/// whoever listens to `Diagnostics.onReport(_:)`, is called by whoever gives cause to, under no lock.
///
/// - SeeAlso: ``COOperation``, ``COSyncOperation``, ``COCascadeOperation``, ``COTransactionalOperation``.
public class AnyOperation: @unchecked Sendable, Identifiable, CustomStringConvertible {
    // Unchecked: everything that changes is under the tree's lock, except as I3 says.

    /// How it ended, when it did not finish. An object, which all that end for one reason share.
    final class BadEnd: @unchecked Sendable {
        // Unchecked: what changes is under the tree's lock.

        let outcome: Outcome<Never>
        /// Somebody has looked.
        @exclusivity(unchecked) private var isSeen = false
        /// An operation has failed without a handler: that is told when the last that has this end goes.
        @exclusivity(unchecked) private var unseen: UnseenFailure?

        init(_ outcome: Outcome<Never>) { self.outcome = outcome }

        func see() {
            isSeen = true
            unseen?.see()
        }

        func noteUnseen(by operation: OperationID, attempt: Int) {
            guard !isSeen, unseen == nil, let error else { return }
            unseen = UnseenFailure(error) {
                Diagnostic(
                    operation: operation, attempt: attempt, state: "\(OperationState.failed)",
                    "failed, and nobody looked: \(error)")
            }
        }

        static func failed(_ error: any Error) -> BadEnd { BadEnd(.failed(error)) }
        static func cancelled(_ reason: CancelReason) -> BadEnd { BadEnd(.cancelled(reason)) }

        var isFailure: Bool { outcome.isFailed }
        var error: (any Error)? { outcome.error }
        var reason: CancelReason? { outcome.reason }
    }

    // There are many: in this order a leaf has 112 bytes with its value and its block.

    private let ownLock = WordLock()
    @exclusivity(unchecked) private final var marks = Marks()
    /// Under the lock until it is settled, then the settling thread's.
    @exclusivity(unchecked) private final var holdings = Holdings()
    /// Its value is stored: under the lock, before anybody is told.
    @usableFromInline
    @exclusivity(unchecked) final var hasValue = false
    /// Its place among the children of `parent`.
    @exclusivity(unchecked) final var index: UInt32 = 0
    /// The tree's `Domain`, unmanaged; 0: a single operation, under its own lock.
    private let domainBits: Atomic<UInt>
    /// 0: nobody has asked yet.
    private let number = Atomic<UInt64>(0)

    @exclusivity(unchecked) final var machine = OperationMachine()
    /// The kind of a leaf's block; in the byte that the machine leaves. As the block (I3).
    @exclusivity(unchecked) final var blockKind: BlockKind
    /// The composite around it, until it is settled (I2).
    final var parent: AnyOperation? {
        @inline(__always) get { parentReference?.takeUnretainedValue() }
        set { parentReference = newValue.map { .passUnretained($0) } }
    }
    /// As ``parent``; where references need not be counted.
    @exclusivity(unchecked) final var parentReference: Unmanaged<AnyOperation>?
    /// A reference to its place. The last bit: it is a composite, and the place its composition, which never changes.
    @exclusivity(unchecked) private final var placeBits: UInt = 0
    @exclusivity(unchecked) final var extras: Extras?
    /// How it ended: the value, when `hasValue`; else `badEnd`.
    @usableFromInline
    @exclusivity(unchecked) final var storage = ValueStorage()
    private let instance = Instance(.operations)

    /// How it ended, when it did not finish.
    final var badEnd: BadEnd? {
        get { self[.endedBadly] ? storage.object(of: BadEnd.self).takeUnretainedValue() : nil }
        set {
            if self[.endedBadly] { storage.object(of: BadEnd.self).release() }
            self[.endedBadly] = newValue != nil
            if let newValue {
                precondition(!hasValue)
                storage.storeObject(newValue)
            }
        }
    }

    /// The kind of a leaf's block.
    enum BlockKind: UInt8 {
        case none, token, lent, value, async
        /// A value's, that is given the value of an earlier step.
        case step
    }

    /// In one byte: there are many operations.
    private struct Marks: OptionSet {
        let rawValue: UInt8
        static let isChild = Marks(rawValue: 1)
        static let isDropped = Marks(rawValue: 2)
        static let isFinal = Marks(rawValue: 4)
        static let endedBadly = Marks(rawValue: 8)
        // The last two bits are `priorityMark`.
        static let firstOfPriority: UInt8 = 6
    }

    private struct Holdings: OptionSet {
        let rawValue: UInt8
        static let isHeld = Holdings(rawValue: 1)
        static let keepsBlock = Holdings(rawValue: 2)
    }

    private final subscript(mark: Marks) -> Bool {
        @inline(__always) get { marks.contains(mark) }
        @inline(__always) set { if newValue { marks.insert(mark) } else { marks.remove(mark) } }
    }

    /// Whether it belongs, or has belonged, to a composite.
    final var isChild: Bool {
        get { self[.isChild] }
        set { self[.isChild] = newValue }
    }
    /// A composite has started anew without it.
    final var isDropped: Bool {
        get { self[.isDropped] }
        set { self[.isDropped] = newValue }
    }
    /// No composite around it can take its end back.
    final var isFinal: Bool {
        get { self[.isFinal] }
        set { self[.isFinal] = newValue }
    }
    /// The runtime holds a reference to it (I5).
    final var isHeld: Bool {
        get { holdings.contains(.isHeld) }
        set { if newValue { holdings.insert(.isHeld) } else { holdings.remove(.isHeld) } }
    }
    /// Whether it is settled, and keeps its block: for `releaseBlock`, which is under no lock.
    final var keepsBlock: Bool {
        get { holdings.contains(.keepsBlock) }
        set { if newValue { holdings.insert(.keepsBlock) } else { holdings.remove(.keepsBlock) } }
    }

    /// Its priority: 0: the default, since nobody has said anything else; else one more than its number. Under the lock.
    @inline(__always)
    final var priorityMark: UInt8 {
        get { marks.rawValue >> Marks.firstOfPriority }
        set {
            let others = marks.rawValue & (1 << Marks.firstOfPriority - 1)
            marks = Marks(rawValue: others | newValue << Marks.firstOfPriority)
        }
    }

    // MARK: Place

    @inline(__always)
    private final var placeReference: Unmanaged<Place>? {
        UnsafeRawPointer(bitPattern: placeBits & ~1).map { .fromOpaque($0) }
    }

    final var place: Place? { placeReference?.takeUnretainedValue() }

    /// Before anybody else knows the operation, or under the lock, while it is ready.
    ///
    /// - Parameter isTicket: a leaf's is to be the ticket of its queue, too (I7).
    private final func ensurePlace(isTicket: Bool) -> Place {
        let former = place
        if let former, !isTicket || isComposite || former is COOperationQueue.Ticket { return former }
        let made = isTicket ? COOperationQueue.Ticket() : Place()
        placeBits = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
        if let former { Unmanaged.passUnretained(former).release() }  // the caller holds what it had
        return made
    }

    /// The operation, as its queue knows it; nil: it has no queue, or that knows nothing yet. Under the lock.
    final var ticket: Unmanaged<COOperationQueue.Ticket>? {
        guard isAdmitted else { return nil }
        guard isComposite else {
            return .fromOpaque(UnsafeRawPointer(bitPattern: placeBits).unsafelyUnwrapped)
        }
        return composition?.ticket.map { .passUnretained($0) }
    }

    /// Likewise. It has a queue.
    @inline(__always)
    final func ensureTicket() -> Unmanaged<COOperationQueue.Ticket> {
        guard let compositionReference else {
            return .fromOpaque(UnsafeRawPointer(bitPattern: placeBits).unsafelyUnwrapped)
        }
        return compositionReference._withUnsafeGuaranteedRef { composition in
            if let ticket = composition.ticket { return .passUnretained(ticket) }
            let made = COOperationQueue.Ticket()
            if let queue = composition.admission { made.isIn(queue) }
            composition.ticket = made
            return .passUnretained(made)
        }
    }

    /// Where its blocks run; nil: the built-in scheduler.
    final var target: (any ExecutionTarget)? { place?.target }
    /// As ``target``, for a turn, which may be sent when it has ended meanwhile: then there is none any more. Under no lock.
    @inline(__always)
    final var targetOfTurn: (any ExecutionTarget)? { placeBits == 0 ? nil : targetUnderLock }

    @inline(never)
    private final var targetUnderLock: (any ExecutionTarget)? { look { target } }

    /// The queue that decides when they may run.
    final var admission: COOperationQueue? { place?.admission }
    /// Whether it was given a target, so that a queue which it is added to does not give it another one.
    final var hasOwnTarget: Bool { place?.hasOwnTarget ?? false }

    /// As ``admission``; where references need not be counted.
    @inline(__always)
    final var admissionReference: Unmanaged<COOperationQueue>? {
        guard let placeReference else { return nil }
        return placeReference._withUnsafeGuaranteedRef { place in
            place.admission.map { .passUnretained($0) }
        }
    }

    /// Whether it has a queue.
    @inline(__always)
    final var isAdmitted: Bool {
        guard let placeReference else { return false }
        return placeReference._withUnsafeGuaranteedRef { $0.admission != nil }
    }

    /// Whether that is its queue.
    @inline(__always)
    final func isAdmitted(by queue: COOperationQueue) -> Bool {
        guard let placeReference else { return false }
        return placeReference._withUnsafeGuaranteedRef { $0.admission === queue }
    }

    /// Whether it may have a queue or a target to give up.
    @inline(__always)
    final var hasPlace: Bool {
        isComposite
            ? placeReference?._withUnsafeGuaranteedRef { $0.target != nil } ?? false
            : placeBits != 0
    }

    /// A handle is no reason for its target and queue to stay, but for the queue of a composite, which is read for each child
    /// under no lock. Under no lock; it is settled.
    func giveUpPlace() {
        var former: (target: (any ExecutionTarget)?, queue: COOperationQueue?)  // released under no lock
        look {
            placeReference?._withUnsafeGuaranteedRef { place in
                swap(&former.target, &place.target)
                if !isComposite { swap(&former.queue, &place.admission) }
            }
        }
        withExtendedLifetime(former) {}
    }

    /// The children of a composite.
    final var composition: Composition? { compositionReference?.takeUnretainedValue() }

    /// As ``composition``; where references need not be counted.
    @inline(__always)
    final var compositionReference: Unmanaged<Composition>? {
        isComposite ? .fromOpaque(UnsafeRawPointer(bitPattern: placeBits & ~1).unsafelyUnwrapped) : nil
    }

    /// Calls `body` with the children of a composite; likewise.
    @inline(__always)
    final func withComposition<Answer>(_ body: (Composition) -> Answer) -> Answer? {
        compositionReference?._withUnsafeGuaranteedRef(body)
    }

    @inline(__always)
    final var isComposite: Bool { placeBits & 1 != 0 }

    /// - Parameters:
    ///   - target: a queue counts as both: it admits, and its target runs.
    ///   - composite: the one whose child it will be; it has been started.
    ///   - queue: admits it, unless `target` is a queue.
    init(
        on target: (any ExecutionTarget)?, options: OperationOptions?, composition: Composition?,
        within composite: AnyOperation?, admission queue: COOperationQueue? = nil
    ) {
        blockKind = .none
        if let composite {
            let bits = composite.domainBits.load(ordering: .acquiring)
            _ = Self.domain(bits)?.retain()
            domainBits = Atomic(bits)
        } else {
            domainBits = Atomic(
                composition.map { UInt(bitPattern: Unmanaged.passRetained($0).toOpaque()) } ?? 0)
        }
        if let composition {
            placeBits = UInt(bitPattern: Unmanaged<Place>.passRetained(composition).toOpaque()) | 1
        }
        let scope = COQueues.areInUse ? COQueues.scoped : nil
        if let admitting = target as? COOperationQueue {
            set(target: admitting.target, isOwn: true, admission: admitting)
        } else {
            let inherited = composite == nil ? queue : composite?.admission
            let given = target ?? (inherited == nil ? scope?.target ?? COQueues.unscoped : nil)
            if let given {
                let admitting = COOperationQueue.admitting(to: given)
                set(
                    target: admitting == nil ? given : admitting?.target, isOwn: target != nil,
                    admission: admitting ?? inherited)
            } else if let inherited {
                set(target: inherited.target, isOwn: false, admission: inherited)
            }
        }
        if let scope { ensureExtras().scope = scope }
        if let options, !options.isStandard { ensureExtras().options = options }
    }

    /// A child to which its place has nothing to add: no target, options, queue, scope or context.
    ///
    /// - Precondition: `composite.givesItsPlace` is false.
    init(_ blockKind: BlockKind, plainChildOf composite: __shared AnyOperation) {
        self.blockKind = blockKind
        let bits = composite.domainBits.load(ordering: .acquiring)
        _ = Self.domain(bits)?.retain()
        domainBits = Atomic(bits)
        marks = .isChild
    }

    /// A child that has ended before it was made.
    init(endedIn tree: Domain) {
        blockKind = .none
        domainBits = Atomic(UInt(bitPattern: Unmanaged.passRetained(tree).toOpaque()))
        marks = .isChild
    }

    /// Before anybody else knows the operation, or under the lock, while it is ready.
    final func set(target: (any ExecutionTarget)?, isOwn: Bool, admission: COOperationQueue?) {
        if target == nil, !isOwn, admission == nil, place == nil { return }
        let place = ensurePlace(isTicket: admission != nil)
        place.target = target
        place.hasOwnTarget = isOwn
        place.admission = admission
        if let admission, !isComposite {
            unsafeDowncast(place, to: COOperationQueue.Ticket.self).isIn(admission)  // I7
        }
    }

    /// Whether children that are made here have a queue, a target that they were not given, or a context.
    @usableFromInline
    final var givesItsPlace: Bool { isAdmitted || COQueues.areInUse || COQueues.giveContextHere }

    deinit {
        if let domain = Self.domain(domainBits.load(ordering: .relaxed)) { domain.release() }
        if let placeReference {
            // A line of its queue may come upon its ticket later, and let go of it under its lock: of that alone.
            if !isComposite {
                placeReference._withUnsafeGuaranteedRef { ($0.target, $0.admission) = (nil, nil) }
            }
            placeReference.release()
        }
        badEnd = nil
        extras?.operationGoes()
    }

    // MARK: The lock

    private static func domain(_ bits: UInt) -> Unmanaged<Domain>? {
        UnsafeRawPointer(bitPattern: bits).map { Unmanaged<Domain>.fromOpaque($0) }
    }

    private var ownKey: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// - Returns: what ``unlock(_:)`` needs.
    @inline(__always)
    final func lock() -> UInt {
        while true {
            let bits = domainBits.load(ordering: .acquiring)
            guard let domain = Self.domain(bits) else {
                ownLock.lock(ownKey)
                if domainBits.load(ordering: .relaxed) == bits { return bits }
                ownLock.unlock(ownKey)
                continue
            }
            let key = UnsafeRawPointer(domain.toOpaque())
            domain._withUnsafeGuaranteedRef { $0.lock.lock(key) }
            if domainBits.load(ordering: .relaxed) == bits { return bits }
            domain._withUnsafeGuaranteedRef { $0.lock.unlock(key) }  // it has become a child meanwhile
        }
    }

    @inline(__always)
    final func unlock(_ bits: UInt) {
        guard let domain = Self.domain(bits) else {
            ownLock.unlock(ownKey)
            return
        }
        domain._withUnsafeGuaranteedRef { $0.lock.unlock(UnsafeRawPointer(domain.toOpaque())) }
    }

    /// Changes something under the tree's lock, then does what follows from it.
    @inline(__always)
    final func change<Answer>(_ body: (inout Effects) -> Answer) -> Answer {
        var effects = Effects()
        let bits = lock()
        let answer = body(&effects)
        unlock(bits)
        effects.perform()
        return answer
    }

    /// Looks at something under the tree's lock.
    @inline(__always)
    final func look<Answer>(_ body: () -> Answer) -> Answer {
        let bits = lock()
        defer { unlock(bits) }
        return body()
    }

    /// That of the tree; nil: a single operation. Under the lock.
    final var domain: Unmanaged<Domain>? { Self.domain(domainBits.load(ordering: .relaxed)) }

    @inline(__always)
    final func isOfTheSameTree(as other: AnyOperation) -> Bool {
        let bits = domainBits.load(ordering: .relaxed)
        return bits != 0 && bits == other.domainBits.load(ordering: .relaxed)
    }

    @inline(__always)
    final func isOf(_ tree: Unmanaged<AnyObject>) -> Bool {
        domainBits.load(ordering: .relaxed) == UInt(bitPattern: tree.toOpaque())
    }

    /// Becomes part of another tree (I4). Under the lock that this ends to be.
    final func enter(_ domain: Unmanaged<Domain>) {
        let bits = UInt(bitPattern: domain.retain().toOpaque())
        if let former = Self.domain(domainBits.exchange(bits, ordering: .acquiringAndReleasing)) {
            ensureExtras().formerDomains.append(former.takeRetainedValue())
        }
    }

    final func ensureExtras() -> Extras {
        if let extras { return extras }
        let made = Extras()
        extras = made
        return made
    }

    /// Lets a copy, which nobody else knows yet, be admitted and run where this one is.
    final func copyPlace(to copy: AnyOperation) {
        let place = look {
            () -> (target: (any ExecutionTarget)?, isOwn: Bool, admission: COOperationQueue?)? in
            if machine.isTerminal, extras?.options?.keepsBlock != true { return nil }  // it is giving it up
            return (target, hasOwnTarget, admission)
        }
        if let place { copy.set(target: place.target, isOwn: place.isOwn, admission: place.admission) }
    }

    // MARK: What the kinds of operations know

    /// Whether it has something to run.
    @usableFromInline
    var hasBlock: Bool { false }
    /// Runs the block of an attempt, and tells when it has returned. On the target.
    @usableFromInline
    func execute(_ number: Int32) { fatalError("an operation without a kind") }
    /// Releases the block. See I3.
    @usableFromInline
    func releaseBlock() {}
    /// A composite: makes the value of what the children gave. Under the lock.
    ///
    /// - Returns: whether everything that it is made of is there.
    func assembleValue() -> Bool { true }
    /// Its kind, for descriptions.
    var kindName: String { "operation" }
    func makeCopy() -> AnyOperation { fatalError("an operation without a kind") }

    // MARK: Public

    /// Starts the operation: it runs on its target as soon as its turn comes.
    ///
    /// - Returns: false, and nothing was done, when it has been started or has ended, when it has no block, or when
    ///   it belongs to a composite, which starts it.
    /// - Complexity: O(1).
    @discardableResult
    public func start() -> Bool { startIfReady() }

    /// As ``start()``, in a queue that it is added to.
    func start(addedTo queue: COOperationQueue) -> Bool { startIfReady(addedTo: queue) }

    /// Tells it apart from all others of the process.
    public final var id: OperationID {
        let given = number.load(ordering: .relaxed)
        if given != 0 { return OperationID(number: given) }
        let new = OperationID.next()
        let (exchanged, earlier) = number.compareExchange(
            expected: 0, desired: new.number, ordering: .relaxed)
        return exchanged ? new : OperationID(number: earlier)
    }

    /// Where it is on its way.
    ///
    /// - Complexity: O(1) while nothing in its tree is suspended, else O(depth).
    public final var state: OperationState {
        look {
            seeFailure()
            return label
        }
    }

    /// The number of the attempt: 0 before the start, then 1, and one more with each redo that is decided.
    public final var attempt: Int { look { Int(machine.attempt) } }

    /// How many blocks have begun.
    public final var numberOfRuns: Int { look { Int(machine.runs) } }

    /// Whether it waits: for its start, or for its turn. Its state is ``OperationState/ready`` or ``OperationState/queued``.
    public final var isReady: Bool {
        switch look({ label }) {
        case .ready, .queued: true
        default: false
        }
    }

    /// Whether an attempt is under way. Its state is ``OperationState/executing`` or ``OperationState/deciding``.
    public final var isExecuting: Bool {
        switch look({ label }) {
        case .executing, .deciding: true
        default: false
        }
    }

    /// Whether its start is somebody else's: the composite's that it belongs to, or has been made already.
    package final var willBeStarted: Bool { look { isChild || machine.phase != .ready } }

    /// Whether a closed gate, its own or one above it, or a suspended queue holds it: its state is
    /// ``OperationState/suspended``.
    public final var isSuspended: Bool { look { label } == .suspended }

    /// Whether a gate is closed, its own or one above it, also where a decision is asked for.
    package final var isGated: Bool { look { !machine.isDecided && !gateIsOpen } }

    /// Whether it finished; true as soon as the call that finished it has returned.
    public final var isFinished: Bool { look { hasEnd(.finished) } }

    /// Whether it was cancelled; true as soon as the call that cancelled it, or what is around it, has returned.
    public final var isCancelled: Bool { look { hasEnd(.cancelled) } }

    /// Whether it failed; true as soon as the call that failed it has returned.
    public final var isFailed: Bool { look { hasEnd(.failed) } }

    /// For somebody who asks. Under the lock.
    private final func hasEnd(_ end: OperationMachine.End) -> Bool {
        seeFailure()
        return machine.isDecided && machine.end == end
    }

    /// Somebody looks at how it ended, if it has: a failure is not reported any more. Under the lock.
    @inline(__always)
    final func seeFailure() { badEnd?.see() }

    /// Whether it is over: nothing of it runs, and its outcome is there.
    public final var isEnded: Bool { look { machine.isTerminal } }

    /// The name that its options give; nil without one.
    public final var name: String? { look { extras?.options?.name } }

    /// Kind, name and number, as in `cascade "download" #3`.
    public final var description: String {
        let name = name.map { " \"\($0)\"" } ?? ""
        return "\(kindName)\(name) \(id)"
    }
}

extension AnyOperation {
    /// Under the lock.
    final var label: OperationState { label(gateIsOpen: machine.isDecided || gateIsOpen) }

    /// - Parameter gateIsOpen: as ``gateIsOpen``; of one that is decided it does not matter.
    final func label(gateIsOpen: Bool) -> OperationState {
        machine.state(gateIsOpen: gateIsOpen && (machine.phase != .queued || queueIsOpen))
    }

    /// A leaf without options, handlers, waiters, dependencies, timers or a queue: most are. Under the lock.
    @inline(__always)
    final var isPlain: Bool { extras == nil && !isComposite && !isAdmitted }

    /// The same, or a composite of that kind.
    @inline(__always)
    final var isBare: Bool { extras == nil && !isAdmitted }

    /// No gate is closed, neither its own nor one above it. Under the lock.
    @inline(__always)
    final var gateIsOpen: Bool {
        guard let domain else { return !machine.isGateClosed }
        if domain._withUnsafeGuaranteedRef({ $0.closedGates }) == 0 { return true }
        return gatesAboveAreOpen
    }

    @inline(never)
    private final var gatesAboveAreOpen: Bool {
        var operation: AnyOperation? = self
        while let one = operation {
            if one.machine.isGateClosed { return false }
            operation = one.isDropped ? nil : one.parent
        }
        return true
    }

    /// Whether it is `operation`, or below it.
    final func isPart(of operation: AnyOperation) -> Bool {
        if self === operation { return true }
        return look {
            var above: AnyOperation? = isDropped ? nil : parent
            while let one = above {
                if one === operation { return true }
                above = one.isDropped ? nil : one.parent
            }
            return false
        }
    }

    /// Its queue is not suspended.
    @inline(__always)
    final var queueIsOpen: Bool {
        admissionReference.map { $0._withUnsafeGuaranteedRef { !$0.isSuspended } } ?? true
    }

    /// Nothing but its turn is missing. Under the lock.
    @inline(__always)
    final var isDue: Bool {
        machine.isDue(gateIsOpen: queueIsOpen) && isUnhindered
    }

    /// Neither a gate nor a dependency holds it. Under the lock.
    @inline(__always)
    final var isUnhindered: Bool { gateIsOpen && (extras?.unmetDependencies ?? 0) == 0 }
}
