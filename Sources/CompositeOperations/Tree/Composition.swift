// Composition.swift - the children of a composite operation: when they start, what the end of one means, what a redo
// does with them. Everything is guarded by the tree's lock; the root's composition is the tree's domain.
//
// Invariants:
//   I1  `unfinished` is the number of children of this epoch that have not finished; a composite completes when its
//       registration is closed, `unfinished` is 0, and no gate holds it back.
//   I2  children that ended without finishing begin at most one round per attempt of the composite: the first one takes
//       the composite out of `executing`, and rounds begin only in that phase.
//   I3  an epoch is one run of the registration block; children of an old epoch are dropped, and no longer counted.

@_spi(Faces) internal import Runs
internal import Scheduling
internal import Synchronization

/// The part of an operation that only composites have. Exclusivity: I6 of AnyOperation.swift.
final class Composition: Domain, @unchecked Sendable {
    let isCascade: Bool
    @exclusivity(unchecked) var order: ChildOrder
    /// The composite, not retained: valid as long as it lives.
    @exclusivity(unchecked) var owner: Unmanaged<AnyOperation>!
    /// The composite's ticket in its queue.
    @exclusivity(unchecked) var ticket: COOperationQueue.Ticket?
    /// The children that are operations; while there are plain ones, those that come after them.
    @exclusivity(unchecked) var operations: ContiguousArray<AnyOperation> = []
    /// The children that the composite had when it was settled. Used by the settling thread only.
    @exclusivity(unchecked) private var former: ContiguousArray<AnyOperation> = []
    /// Children without objects (Composition+Plain.swift).
    @exclusivity(unchecked) var plain = PlainPart()
    /// The thread that is executing the registration block.
    let registrar = Atomic<UInt>(0)
    /// The address of the plain children that the block registers; 0: none.
    let registering = Atomic<UInt>(0)
    @exclusivity(unchecked) var unfinished = 0
    @exclusivity(unchecked) var epoch: Int32 = 0
    /// The registration block is running.
    @exclusivity(unchecked) var isRegistering = false
    /// The registration block threw.
    @exclusivity(unchecked) var hasThrown = false
    /// A child may be missing: one was refused because the attempt was over, or the block read that from `isCancelled`.
    @exclusivity(unchecked) var isPartial = false
    /// The registration block has returned, and every child of it was accepted.
    @exclusivity(unchecked) var isWhole = false
    /// The causes of the attempt's end, in order.
    @exclusivity(unchecked) var causes: [Cause] = []
    /// A child that waits for the attempt to begin has ended meanwhile.
    @exclusivity(unchecked) var hasLateCauses = false
    /// Called to decide in a round, and notified of a direct cancel.
    @exclusivity(unchecked) var decisionHandler: (@Sendable (AnyOperation) -> Void)?
    /// Called once every child has finished.
    @exclusivity(unchecked) var completion: (@Sendable () -> Void)?
    /// The completion is on its way, or being called. It precedes all notices and is not one of them, so most
    /// composites need no memory for notices. Written under the lock; until the completion has returned, only the
    /// delivering thread changes this flag.
    @exclusivity(unchecked) var isCompletionOut = false
    /// The attempt for which the handler was posted last; 0 is possible, for an attempt that has not begun; -1: none.
    @exclusivity(unchecked) var handledAttempt: Int32 = -1
    /// How many holds keep the decision open, the handler's included.
    @exclusivity(unchecked) var holds = 0
    /// A resolver has no attempt left: nothing is redone.
    @exclusivity(unchecked) var isExhausted = false
    /// The highest priority of its waiters; nil: it has none.
    @exclusivity(unchecked) var awaited: Scheduler.Priority?
    /// The children before these indices have been raised already, because a later one was awaited.
    @exclusivity(unchecked) var raisedToHigh = 0
    @exclusivity(unchecked) var raisedToDefault = 0

    /// All children. Plain ones become operations.
    var children: ContiguousArray<AnyOperation> {
        @inline(__always) _read {
            if plain.areThere { takePlain() }
            yield operations
        }
        @inline(__always) _modify {
            if plain.areThere { takePlain() }
            yield &operations
        }
    }

    /// The children that may not have finished: all, except plain ones if these are over. Under the lock.
    var childrenLeft: ContiguousArray<AnyOperation> {
        if plain.areLeft { takePlain() }
        return operations
    }

    /// Whether plain children are possible: in a cascade, or without a limit to how many run.
    let mayHavePlain: Bool

    init(_ order: ChildOrder, isCascade: Bool) {
        self.order = order
        mayHavePlain = isCascade || order.width == .max
        self.isCascade = isCascade
    }

    deinit { plain.store = nil }

    // MARK: Registration

    /// Why a child would be refused; nil: it would be accepted.
    @inline(__always)
    func refusal(of composite: AnyOperation, epoch: Int32) -> RegistrationError? {
        if epoch != self.epoch { return .stale }
        switch composite.machine.phase {
        case .executing: return nil
        // An attempt that continues with this epoch will have the child.
        case .deciding where isRegistering, .delayed where isRegistering: return nil
        case .deciding, .delayed, .queued: return .deciding
        case .ready, .ending, .finished, .failed, .cancelled: return .ended
        }
    }

    /// A registration was refused. If the block made it, an attempt that continues with this epoch would lack the
    /// child.
    func refused(_ error: RegistrationError) {
        if isRegistering, error == .ended || error == .deciding { isPartial = true }
    }

    /// Adds a child that is not refused, and starts it if its turn has come.
    @inline(__always)
    func append(_ child: AnyOperation, to composite: AnyOperation, _ effects: inout Effects) {
        if !child.machine.isTerminal { child.parent = composite }
        if plain.areThere { sealPlain() }
        child.index = UInt32(plain.count + operations.count)
        if operations.isEmpty { operations.reserveCapacity(8) }
        operations.append(child)
        unfinished += 1
        if child.extras != nil { child.armDeadline(&effects) }
        child.inheritPriority(of: composite)
        if !(isRegistering && isCascade), composite.machine.phase == .executing { startChildren(&effects) }
    }

    /// Whether it is a child of this epoch.
    @inline(__always)
    func isChild(_ operation: AnyOperation, of composite: AnyOperation) -> Bool {
        // Its index is guarded by the lock of its own tree.
        guard operation.isOfTheSameTree(as: composite) else { return false }
        let count = children.count  // plain ones have no index before they become operations
        let index = Int(operation.index)
        return index < count && (children[index] === operation || isStub(index, for: operation))
    }

    /// The last unfinished child before a place, if children run one after another: the child at that place waits for
    /// it.
    ///
    /// - Complexity: O(finished children between the two).
    func unfinished(before place: Int) -> AnyOperation? {
        guard order.width == 1 else { return nil }
        return children.prefix(place).last { !$0.isFinishedForGood }
    }

    /// Starts the children whose turn has come.
    func startChildren(_ effects: inout Effects) {
        // In a cascade, plain steps come first.
        if isCascade, plain.areLeft { return }
        let first = plain.count
        while let next = order.next(
            of: first + operations.count, isFinished: { operations[$0 - first].isFinishedForGood })
        {
            // The child is held by the array, or by the code that took the array away, until the lock is released.
            Unmanaged.passUnretained(operations[next - first])._withUnsafeGuaranteedRef {
                $0.startAsChild(&effects)
            }
        }
    }

    /// The registration block has returned, and its epoch is the current one.
    ///
    /// - Returns: plain children that are to be started, under no lock.
    func registrationHasClosed(_ composite: AnyOperation, _ effects: inout Effects) -> PlainChildren? {
        isWhole = !isPartial
        // Otherwise a decision is open, or the attempt that continues with these children waits for the block.
        guard composite.machine.phase == .executing else { return nil }
        let plain = closePlain()
        if isCascade { startChildren(&effects) }
        completeIfDone(composite, &effects)
        return plain
    }

    /// Whether an attempt could continue with the children that exist now, or will exist when the block has returned.
    var mayBeWhole: Bool { isWhole || (isRegistering && !isPartial) }

    // MARK: Ends

    /// A child's outcome has been decided.
    ///
    /// - Returns: whether that decided the composite's outcome.
    func childDecided(_ child: AnyOperation, of composite: AnyOperation, _ effects: inout Effects) -> Bool {
        guard child.machine.end != .finished else {
            childFinished(child, of: composite, &effects)
            return isDone(composite) && complete(composite, &effects)
        }
        causes.append(
            Cause(
                index: Int(child.index), child: child.id,
                outcome: child.badEnd?.outcome ?? .cancelled(CancelReason())))
        switch composite.machine.phase {
        case .executing: return beginRound(composite, &effects)
        case .delayed: hasLateCauses = true
        default: break
        }
        return false
    }

    /// Stops counting a finished child, and makes room for others.
    @inline(__always)
    func childFinished(_ child: AnyOperation, of composite: AnyOperation, _ effects: inout Effects) {
        unfinished -= 1
        order.finished(Int(child.index))
        if composite.machine.phase == .executing, !(isRegistering && isCascade) { startChildren(&effects) }
    }

    private func isDone(_ composite: AnyOperation) -> Bool {
        !isRegistering && unfinished == 0 && composite.machine.phase == .executing && composite.gateIsOpen
    }

    /// - Returns: whether it is decided.
    private func complete(_ composite: AnyOperation, _ effects: inout Effects) -> Bool {
        let isWhole = composite.assembleValue()
        guard composite.machine.decide(isWhole ? .finished : .failed) != nil else { return false }
        if !isWhole { composite.badEnd = .failed(RegistrationError.notAnEarlierStep) }
        composite.keep()
        composite.decided(&effects)
        return true
    }

    /// Completes the composite if nothing is left to be done in it.
    func completeIfDone(_ composite: AnyOperation, _ effects: inout Effects) {
        if isDone(composite), complete(composite, &effects) { composite.carryUp(1, &effects) }
    }

    /// The attempt ended badly other than through a child: the block threw, or a timeout expired.
    func attemptEnded(_ cause: Cause, of composite: AnyOperation, _ effects: inout Effects) {
        guard composite.machine.phase == .executing else {
            if composite.machine.phase == .deciding { causes.append(cause) }
            return
        }
        causes.append(cause)
        if beginRound(composite, &effects) { composite.carryUp(1, &effects) }
    }

    /// Marks all siblings of the child that ended, and requests a decision.
    ///
    /// - Returns: whether that decided the composite, because there is no handler or resolver to ask.
    private func beginRound(_ composite: AnyOperation, _ effects: inout Effects) -> Bool {
        composite.markDescendants(.cancelled(CancelReason(.parent, origin: causes.first?.child)), &effects)
        if let handler = decisionHandler {
            _ = composite.machine.ask()
            composite.observe(&effects)
            let number = composite.machine.attempt
            handledAttempt = number
            holds = 1
            composite.post(
                &effects,
                .ofOperation { operation in
                    handler(operation)
                    operation.decisionIsOver(number)
                })
            return false
        }
        if let resolver = composite.extras?.options?.resolver,
            composite.resolve(resolver, causes.first, isOwnWish: false, &effects)
        {
            return false
        }
        let bad = composite.badEndByCause
        guard composite.machine.decide(bad.isFailure ? .failed : .cancelled) != nil else { return false }
        composite.badEnd = bad
        composite.keep()
        composite.decided(&effects)
        return true
    }

    /// The composite has finished. Under the lock.
    func postCompletion(of composite: AnyOperation, keepingIt: Bool, _ effects: inout Effects) {
        if completion == nil { return }
        if composite.extras == nil {
            isCompletionOut = true
            effects.deliver(composite)
        } else if let completion {
            composite.post(&effects, .ofEnd(completion))
            if !keepingIt { self.completion = nil }  // the notice holds it
        }
    }

    /// Notifies the handler of an end about which there is nothing to decide, unless it was called in this attempt: of
    /// a direct cancel at once, of a cancel from above when the composite settles.
    func postNotice(to composite: AnyOperation, _ effects: inout Effects) {
        guard let handler = decisionHandler, handledAttempt != composite.machine.attempt else {
            return
        }
        handledAttempt = composite.machine.attempt
        composite.post(&effects, .ofOperation(handler))
    }

    // MARK: Redo

    /// Begins a new epoch.
    func dropChildren(of composite: AnyOperation, _ effects: inout Effects) {
        composite.markDescendants(.cancelled(CancelReason(.parent, origin: composite.id)), &effects)
        let over = dropPlain()
        let dropped = children
        children = []
        (raisedToHigh, raisedToDefault) = (0, 0)
        unfinished = 0
        epoch += 1
        if !composite.machine.isOut, !plain.taken.isEmpty { effects.add(.giveUpPlain(takeUpTaken())) }
        giveUpCauses(&effects)
        hasLateCauses = false
        hasThrown = false
        isPartial = false
        isWhole = false
        isRegistering = false
        order.restart()
        for child in dropped {
            child.isDropped = true
            child.isFinal = true
            if child.machine.isTerminal { continue }
            child.hold()  // its composite no longer does
            child.settleSubtree(&effects)
        }
        effects.giveUp(dropped, over)
    }

    /// The errors in the causes are the user's, to be released under no lock.
    private func giveUpCauses(_ effects: inout Effects) {
        effects.giveUp(causes)
        causes = []
    }

    /// Everything that has not finished is to be redone, in the same epoch, when the composite begins.
    func reawakenChildren(of composite: AnyOperation, _ effects: inout Effects) {
        var walk = [self]
        while let composition = walk.popLast() {
            composition.giveUpCauses(&effects)
            composition.hasLateCauses = false
            composition.order.restart(at: composition.plain.count)
            // A child that was registered during the round has no end to be undone.
            for child in composition.childrenLeft where child.machine.isDecided && !child.isFinishedForGood {
                if let badEnd = child.badEnd {
                    effects.add(.giveUp([], badEnd))
                    child.badEnd = nil
                }
                child.isFinal = false
                let below = child.composition
                child.machine.reawaken(
                    below?.mayBeWhole == true ? .awake : .rerun,
                    wasTold: below?.handledAttempt == child.machine.attempt)
                if child.extras != nil {
                    child.armDeadline(&effects)
                    child.observe(&effects)
                }
                guard let below else { continue }
                below.isExhausted = false
                if below.mayBeWhole { walk.append(below) } else { below.dropChildren(of: child, &effects) }
            }
        }
    }

    /// An attempt begins with the existing children.
    func goOn(_ composite: AnyOperation, _ effects: inout Effects) {
        guard composite.machine.phase == .executing else { return }  // an enclosing round came first
        if hasLateCauses {
            hasLateCauses = false
            if beginRound(composite, &effects) { composite.carryUp(1, &effects) }
            return
        }
        startChildren(&effects)
        completeIfDone(composite, &effects)
    }

    /// Does what waited behind the gate, except for the children.
    func gateHasOpened(_ composite: AnyOperation, _ effects: inout Effects) {
        guard composite.machine.phase == .executing else { return }
        completeIfDone(composite, &effects)
    }

    /// The composite is settled: its holdings are left for ``releaseHoldings(keepingHandler:)``.
    func giveUp(keepingHandler: Bool, _ effects: inout Effects) {
        giveUpPlain()
        swap(&former, &operations)
        if keepingHandler { return }
        if let completion, !isCompletionOut {
            effects.add(.giveUpCompletion(completion))
            self.completion = nil
        }
    }

    /// On the thread that settled the composite, under no lock.
    func releaseHoldings(keepingHandler: Bool) {
        former = []
        if !keepingHandler, decisionHandler != nil { decisionHandler = nil }
        releasePlain()
    }
}

extension AnyOperation {
    /// Whether it keeps its value whatever its composite decides. Under the lock.
    @inline(__always)
    final var isFinishedForGood: Bool { machine.isDecided && machine.end == .finished }

    /// Its turn among its siblings has come. Under the lock.
    @inline(__always)
    final func startAsChild(_ effects: inout Effects) {
        guard machine.begin() else { return }
        began(&effects)  // also when it begins again: its end, undone since, has disarmed its timers
        if machine.phase == .queued { becameDue(&effects) } else { proceed(isCounted: false, &effects) }
    }

    /// One of its children has been decided. Under the lock.
    @inline(__always)
    final func childDecided(_ child: AnyOperation, _ effects: inout Effects) -> Bool {
        withComposition { $0.childDecided(child, of: self, &effects) } ?? false
    }
}

extension ContiguousArray<AnyOperation> {
    /// Calls `body` with each element, without reference counting: the array holds the elements meanwhile.
    @inline(__always)
    func forEachReference(in range: Range<Int>, _ body: (AnyOperation) -> Void) {
        withUnsafeBytes { bytes in
            let references = bytes.assumingMemoryBound(to: Unmanaged<AnyOperation>.self)
            for place in range { references[place]._withUnsafeGuaranteedRef(body) }
        }
    }

    /// The first element at or after an index for which `isIt` returns true; likewise without reference counting.
    @inline(__always)
    func firstReference(
        from first: Int, where isIt: (AnyOperation, Int) -> Bool
    ) -> (place: Int, operation: AnyOperation)? {
        withUnsafeBytes { bytes in
            let references = bytes.assumingMemoryBound(to: Unmanaged<AnyOperation>.self)
            for place in first..<Swift.max(first, references.count)
            where references[place]._withUnsafeGuaranteedRef({ isIt($0, place) }) {
                return (place, references[place].takeUnretainedValue())
            }
            return nil
        }
    }

    /// Whether both arrays share one buffer.
    @inline(__always)
    func isSame(as other: Self) -> Bool {
        withUnsafeBytes { bytes in other.withUnsafeBytes { $0.baseAddress == bytes.baseAddress } }
    }
}
