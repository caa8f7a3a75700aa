// AnyOperation.swift - an operation without the type of its value: what it holds, and under which lock.
//
// All mutable state is guarded by one lock per tree: a root composite and everything below it. Hence a cancellation
// marks all descendants in one step, and a round is one step. Of our own locks, only a queue's lock or the lock of the
// dependencies may be held when a tree's lock is taken. The consequences of a change are collected (Effects.swift) and
// carried out after the lock is released.
//
// Invariants (those of the pure state are in OperationMachine.swift):
//   I1  the lock is never held while calling user code, targets or queues, or releasing objects that users gave us.
//   I2  a composite holds its children until it is settled. A child does not hold its composite, which cannot settle
//       before the child has. A root, and a composite that a rerun dropped, is held by the runtime (I5), every other
//       composite by its parent. `parent` is cleared when the child settles, and never read after that.
//   I3  an operation's block is written while the operation is ready, read while a block is in flight, and released
//       after the operation is terminal; so readers need no lock.
//   I4  `domain` is set once, and a second time when a standalone operation becomes a child, which happens only while
//       it is ready. The former domain stays alive as long as the operation.
//   I5  a root is held by the runtime from its start, or from an end before that, until it is settled (`isHeld`).
//   I6  under the lock no two accesses to a field overlap. So the run-time exclusivity check, which cost a third of a
//       cascade step, is turned off: `@exclusivity(unchecked)`. ThreadSanitizer covers the rest.
//   I7  the `Place` of a leaf that has a queue is its ticket in that queue.

internal import CompositeOperationsBasics
@_spi(Faces) public import Runs
internal import Scheduling
internal import Synchronization

/// Where an operation is admitted and runs, if not directly on the built-in scheduler.
class Place: @unchecked Sendable {
    // Unchecked: guarded like the fields of the operation.

    /// Where its blocks run; nil: the built-in scheduler.
    @exclusivity(unchecked) final var target: (any ExecutionTarget)?
    /// The queue that decides when they may run.
    @exclusivity(unchecked) final var admission: COOperationQueue?
    /// Whether the user specified the target; if so, a queue that the operation is added to does not replace it.
    @exclusivity(unchecked) final var hasOwnTarget = false
}

/// The state that the operations of one tree share. It outlives their end, because handles are still read under its
/// lock.
class Domain: Place, @unchecked Sendable {
    // Unchecked: the fields below are guarded by the lock.
    let lock = WordLock()
    /// The number of closed gates in the tree; while it is 0, no operation checks the gates above it.
    @exclusivity(unchecked) final var closedGates = 0
    /// Set once a child has a lower priority than its composite.
    @exclusivity(unchecked) final var hasLower = false

    /// Reads something under the tree's lock.
    final func look<Answer>(_ body: () -> Answer) -> Answer {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return body()
    }
}

/// Any operation: one piece of work with a handle. This class is type-erased: it does not know the type of the value.
///
/// All members may be used from any thread, including from blocks and handlers. None runs your blocks or handlers
/// before it returns, except members that wait for an end, and `start()` of a ``COSyncOperation``. Custom targets and
/// the handler of `Diagnostics.onReport(_:)` are called synchronously by the code that triggers them, under no lock.
///
/// - SeeAlso: ``COOperation``, ``COSyncOperation``, ``COCascadeOperation``, ``COTransactionalOperation``.
public class AnyOperation: @unchecked Sendable, Identifiable, CustomStringConvertible {
    // Unchecked: mutable state is guarded by the tree's lock, except as I3 says.

    /// How it ended, if it did not finish. An object, because all operations that end for the same reason share it.
    final class BadEnd: @unchecked Sendable {
        // Unchecked: mutable state is guarded by the tree's lock.

        let outcome: Outcome<Never>
        /// The end has been read.
        @exclusivity(unchecked) private var isSeen = false
        /// Set when an operation without a failure handler fails. The failure is reported when the last reference to
        /// this end is released, unless the end is read first.
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
                    "failed, and its error was never read: \(error)")
            }
        }

        static func failed(_ error: any Error) -> BadEnd { BadEnd(.failed(error)) }
        static func cancelled(_ reason: CancelReason) -> BadEnd { BadEnd(.cancelled(reason)) }

        var isFailure: Bool { outcome.isFailed }
        var error: (any Error)? { outcome.error }
        var reason: CancelReason? { outcome.reason }
    }

    // There are many operations: with the fields in this order a leaf takes 112 bytes, value and block included.

    private let ownLock = WordLock()
    @exclusivity(unchecked) private final var marks = Marks()
    /// Guarded by the lock until the operation is settled, then owned by the settling thread.
    @exclusivity(unchecked) private final var holdings = Holdings()
    /// Its value is stored. Set under the lock, before any notification.
    @usableFromInline
    @exclusivity(unchecked) final var hasValue = false
    /// Its index among the children of `parent`.
    @exclusivity(unchecked) final var index: UInt32 = 0
    /// The tree's `Domain`, unmanaged; 0: a single operation, under its own lock.
    private let domainBits: Atomic<UInt>
    /// 0: not assigned yet.
    private let number = Atomic<UInt64>(0)

    @exclusivity(unchecked) final var machine = OperationMachine()
    /// The kind of a leaf's block, in the byte that the machine leaves free. Accessed like the block (I3).
    @exclusivity(unchecked) final var blockKind: BlockKind
    /// Its parent, until the operation is settled (I2).
    final var parent: AnyOperation? {
        @inline(__always) get { parentReference?.takeUnretainedValue() }
        set { parentReference = newValue.map { .passUnretained($0) } }
    }
    /// Like ``parent``, without reference counting.
    @exclusivity(unchecked) final var parentReference: Unmanaged<AnyOperation>?
    /// A retained reference to its place. The lowest bit is set for a composite: then the place is its composition, and
    /// never changes.
    @exclusivity(unchecked) private final var placeBits: UInt = 0
    @exclusivity(unchecked) final var extras: Extras?
    /// How it ended: the value, when `hasValue`; else `badEnd`.
    @usableFromInline
    @exclusivity(unchecked) final var storage = ValueStorage()
    private let instance = Instance(.operations)

    /// How it ended, if it did not finish.
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
        /// Returns a value, and takes the value of an earlier step.
        case step
    }

    /// One byte, since there are many operations.
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
    /// Its composite has started over without it.
    final var isDropped: Bool {
        get { self[.isDropped] }
        set { self[.isDropped] = newValue }
    }
    /// No enclosing composite can undo its end.
    final var isFinal: Bool {
        get { self[.isFinal] }
        set { self[.isFinal] = newValue }
    }
    /// The runtime holds a reference to it (I5).
    final var isHeld: Bool {
        get { holdings.contains(.isHeld) }
        set { if newValue { holdings.insert(.isHeld) } else { holdings.remove(.isHeld) } }
    }
    /// Whether it is settled and keeps its block. Read by `releaseBlock`, under no lock.
    final var keepsBlock: Bool {
        get { holdings.contains(.keepsBlock) }
        set { if newValue { holdings.insert(.keepsBlock) } else { holdings.remove(.keepsBlock) } }
    }

    /// Its priority. 0: not set, which means the default; else the raw value plus 1. Under the lock.
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

    /// Called before the operation is published, or under the lock while it is ready.
    ///
    /// - Parameter isTicket: a leaf's place must also be its queue ticket (I7).
    private final func ensurePlace(isTicket: Bool) -> Place {
        let former = place
        if let former, !isTicket || isComposite || former is COOperationQueue.Ticket { return former }
        let made = isTicket ? COOperationQueue.Ticket() : Place()
        placeBits = UInt(bitPattern: Unmanaged.passRetained(made).toOpaque())
        if let former { Unmanaged.passUnretained(former).release() }  // the caller holds its target
        return made
    }

    /// Its ticket in its queue; nil: it has no queue, or no ticket there yet. Under the lock.
    final var ticket: Unmanaged<COOperationQueue.Ticket>? {
        guard isAdmitted else { return nil }
        guard isComposite else {
            return .fromOpaque(UnsafeRawPointer(bitPattern: placeBits).unsafelyUnwrapped)
        }
        return composition?.ticket.map { .passUnretained($0) }
    }

    /// Like ``ticket``, but creates a composite's ticket if there is none yet. Requires a queue.
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
    /// Like ``target``, for sending a turn. Nil, too, if the operation has ended in the meantime and released its
    /// target. Under no lock.
    @inline(__always)
    final var targetOfTurn: (any ExecutionTarget)? { placeBits == 0 ? nil : targetUnderLock }

    @inline(never)
    private final var targetUnderLock: (any ExecutionTarget)? { look { target } }

    /// The queue that decides when they may run.
    final var admission: COOperationQueue? { place?.admission }
    /// Whether the user specified its target; if so, a queue that it is added to does not replace it.
    final var hasOwnTarget: Bool { place?.hasOwnTarget ?? false }

    /// Like ``admission``, without reference counting.
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

    /// Whether `queue` is its queue.
    @inline(__always)
    final func isAdmitted(by queue: COOperationQueue) -> Bool {
        guard let placeReference else { return false }
        return placeReference._withUnsafeGuaranteedRef { $0.admission === queue }
    }

    /// Whether it may have a queue or a target to release.
    @inline(__always)
    final var hasPlace: Bool {
        isComposite
            ? placeReference?._withUnsafeGuaranteedRef { $0.target != nil } ?? false
            : placeBits != 0
    }

    /// Releases target and queue, which a handle must not keep alive. A composite keeps its queue, which is read for
    /// each child without the lock. Under no lock; the operation is settled.
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

    /// Like ``composition``, without reference counting.
    @inline(__always)
    final var compositionReference: Unmanaged<Composition>? {
        isComposite ? .fromOpaque(UnsafeRawPointer(bitPattern: placeBits & ~1).unsafelyUnwrapped) : nil
    }

    /// Calls `body` with the composition of a composite, without reference counting.
    @inline(__always)
    final func withComposition<Answer>(_ body: (Composition) -> Answer) -> Answer? {
        compositionReference?._withUnsafeGuaranteedRef(body)
    }

    @inline(__always)
    final var isComposite: Bool { placeBits & 1 != 0 }

    /// - Parameters:
    ///   - target: if this is a queue, the queue admits the operation, and its own target runs it.
    ///   - composite: the future parent, which has been started.
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

    /// A child that needs nothing but its block: no target, options, queue, scope or context.
    ///
    /// - Precondition: `composite.givesItsPlace` is false.
    init(_ blockKind: BlockKind, plainChildOf composite: __shared AnyOperation) {
        self.blockKind = blockKind
        let bits = composite.domainBits.load(ordering: .acquiring)
        _ = Self.domain(bits)?.retain()
        domainBits = Atomic(bits)
        marks = .isChild
    }

    /// An object for a child that has already ended.
    init(endedIn tree: Domain) {
        blockKind = .none
        domainBits = Atomic(UInt(bitPattern: Unmanaged.passRetained(tree).toOpaque()))
        marks = .isChild
    }

    /// Called before the operation is published, or under the lock while it is ready.
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

    /// Whether a child that is created here inherits a queue, a target or a context.
    @usableFromInline
    final var givesItsPlace: Bool { isAdmitted || COQueues.areInUse || COQueues.giveContextHere }

    deinit {
        if let domain = Self.domain(domainBits.load(ordering: .relaxed)) { domain.release() }
        if let placeReference {
            // An entry in a line of its queue may release the ticket later, under the queue's lock, where nothing else
            // may be released.
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

    /// - Returns: the argument of ``unlock(_:)``.
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

    /// Changes something under the tree's lock, then performs the effects.
    @inline(__always)
    final func change<Answer>(_ body: (inout Effects) -> Answer) -> Answer {
        var effects = Effects()
        let bits = lock()
        let answer = body(&effects)
        unlock(bits)
        effects.perform()
        return answer
    }

    /// Reads something under the tree's lock.
    @inline(__always)
    final func look<Answer>(_ body: () -> Answer) -> Answer {
        let bits = lock()
        defer { unlock(bits) }
        return body()
    }

    /// The tree's domain; nil: a single operation. Under the lock.
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

    /// Moves to another tree (I4). Called under the lock that guards the operation until then.
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

    /// Gives an unpublished copy the same queue and target.
    final func copyPlace(to copy: AnyOperation) {
        let place = look {
            () -> (target: (any ExecutionTarget)?, isOwn: Bool, admission: COOperationQueue?)? in
            if machine.isTerminal, extras?.options?.keepsBlock != true { return nil }  // being released
            return (target, hasOwnTarget, admission)
        }
        if let place { copy.set(target: place.target, isOwn: place.isOwn, admission: place.admission) }
    }

    // MARK: Overridden by the kinds of operations

    /// Whether it has something to run.
    @usableFromInline
    var hasBlock: Bool { false }
    /// Runs the block of an attempt, and records its return. On the target.
    @usableFromInline
    func execute(_ number: Int32) { fatalError("an operation without a kind") }
    /// Releases the block. See I3.
    @usableFromInline
    func releaseBlock() {}
    /// Assembles the value of a composite from those of its children. Under the lock.
    ///
    /// - Returns: false: one of these values is missing.
    func assembleValue() -> Bool { true }
    /// Its kind, for descriptions.
    var kindName: String { "operation" }
    func makeCopy() -> AnyOperation { fatalError("an operation without a kind") }

    // MARK: Public

    /// Starts the operation: it runs on its target as soon as its turn comes.
    ///
    /// - Returns: false, with no effect, when it has been started or has ended, has no block, or belongs to a
    ///   composite, which starts it.
    /// - Complexity: O(1).
    @discardableResult
    public func start() -> Bool { startIfReady() }

    /// Like ``start()``, adding it to a queue.
    func start(addedTo queue: COOperationQueue) -> Bool { startIfReady(addedTo: queue) }

    /// Identifies it within the process.
    public final var id: OperationID {
        let given = number.load(ordering: .relaxed)
        if given != 0 { return OperationID(number: given) }
        let new = OperationID.next()
        let (exchanged, earlier) = number.compareExchange(
            expected: 0, desired: new.number, ordering: .relaxed)
        return exchanged ? new : OperationID(number: earlier)
    }

    /// Its state.
    ///
    /// - Complexity: O(1) while nothing in its tree is suspended, else O(depth).
    public final var state: OperationState {
        look {
            seeFailure()
            return label
        }
    }

    /// The number of the attempt: 0 before the start, then 1, incremented by each accepted redo.
    public final var attempt: Int { look { Int(machine.attempt) } }

    /// How many blocks have begun.
    public final var numberOfRuns: Int { look { Int(machine.runs) } }

    /// Whether it waits for its start or for its turn: its state is ``OperationState/ready`` or
    /// ``OperationState/queued``.
    public final var isReady: Bool {
        switch look({ label }) {
        case .ready, .queued: true
        default: false
        }
    }

    /// Whether an attempt is under way: its state is ``OperationState/executing`` or ``OperationState/deciding``.
    public final var isExecuting: Bool {
        switch look({ label }) {
        case .executing, .deciding: true
        default: false
        }
    }

    /// Whether it needs no `start()`: its composite starts it, or it has been started already.
    package final var willBeStarted: Bool { look { isChild || machine.phase != .ready } }

    /// Whether a closed gate, its own or one above it, or a suspended queue holds it back: its state is
    /// ``OperationState/suspended``.
    public final var isSuspended: Bool { look { label } == .suspended }

    /// Whether its own gate or one above it is closed, even while a decision is pending.
    package final var isGated: Bool { look { !machine.isDecided && !gateIsOpen } }

    /// Whether it finished; true as soon as the call that finished it has returned.
    public final var isFinished: Bool { look { hasEnd(.finished) } }

    /// Whether it was cancelled; true as soon as the call that cancelled it, or an enclosing composite, has returned.
    public final var isCancelled: Bool { look { hasEnd(.cancelled) } }

    /// Whether it failed; true as soon as the call that failed it has returned.
    public final var isFailed: Bool { look { hasEnd(.failed) } }

    /// Answers a query by user code; a failure counts as seen from then on. Under the lock.
    private final func hasEnd(_ end: OperationMachine.End) -> Bool {
        seeFailure()
        return machine.isDecided && machine.end == end
    }

    /// Records that its end, if there is one, has been read: a failure is not reported any more. Under the lock.
    @inline(__always)
    final func seeFailure() { badEnd?.see() }

    /// Whether it is over: none of its code is running any more, and its outcome is set.
    public final var isEnded: Bool { look { machine.isTerminal } }

    /// The name in its options; nil: none.
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

    /// - Parameter gateIsOpen: as ``gateIsOpen``; ignored once the operation is decided.
    final func label(gateIsOpen: Bool) -> OperationState {
        machine.state(gateIsOpen: gateIsOpen && (machine.phase != .queued || queueIsOpen))
    }

    /// A leaf without options, handlers, waiters, dependencies, timers or a queue: the common case. Under the lock.
    @inline(__always)
    final var isPlain: Bool { extras == nil && !isComposite && !isAdmitted }

    /// Same, for leaves and composites.
    @inline(__always)
    final var isBare: Bool { extras == nil && !isAdmitted }

    /// Neither its own gate nor one above it is closed. Under the lock.
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

    /// Whether it is `operation` or a descendant of it.
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

    /// Whether it can take its turn now: nothing holds it back. Under the lock.
    @inline(__always)
    final var isDue: Bool {
        machine.isDue(gateIsOpen: queueIsOpen) && isUnhindered
    }

    /// Neither a gate nor a dependency holds it back. Under the lock.
    @inline(__always)
    final var isUnhindered: Bool { gateIsOpen && (extras?.unmetDependencies ?? 0) == 0 }
}
