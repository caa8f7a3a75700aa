// OperationMachine.swift - the state machine of one operation: state x event -> state, consequences.
//
// A value without threads, locks or references to other operations: whether a gate is closed, or children are left, is
// an argument. It is used under the lock of the operation's tree, and tested by random events (OperationMachineTests).
//
// Invariants:
//   I1  a decided operation (ending or terminal) is decided once, unless an enclosing composite undoes that
//       (`reawaken`), which happens only while the operation is not settled.
//   I2  `attempt` never falls; it grows with each accepted redo.
//   I3  `pending` counts what keeps it from being quiescent: one for a live attempt, one for each block in flight, one
//       for each child that is not quiescent. It is never negative.
//   I4  `isPosted` means that one turn is on its way to a target. A block begins only with `turn`, which takes it.
//   I5  nothing follows a terminal state.

/// The state of one operation.
package struct OperationMachine: Sendable {
    package enum Phase: UInt8, Comparable, Sendable {
        case ready, queued, executing, deciding, delayed, ending, finished, failed, cancelled

        package static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
    }

    package enum End: UInt8, Sendable {
        case finished, failed, cancelled
    }

    // In this order the fields take 15 bytes; the owner uses the 16th.

    package private(set) var attempt: Int32 = 0
    package private(set) var runs: Int32 = 0
    package private(set) var pending: Int32 = 0
    package private(set) var phase = Phase.ready
    /// How it ends; meaningful once it is decided.
    package private(set) var end = End.finished
    private var flags = Flags()

    /// One byte, since there are many operations.
    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let isGateClosed = Flags(rawValue: 1)
        static let isPosted = Flags(rawValue: 2)
        static let isPaused = Flags(rawValue: 4)
        static let isAwakening = Flags(rawValue: 8)
        static let isHeldBack = Flags(rawValue: 16)
        static let isLive = Flags(rawValue: 32)
        static let isOut = Flags(rawValue: 64)
    }

    private subscript(flag: Flags) -> Bool {
        get { flags.contains(flag) }
        set { if newValue { flags.insert(flag) } else { flags.remove(flag) } }
    }

    /// Its own gate only, not those above it.
    package private(set) var isGateClosed: Bool {
        get { self[.isGateClosed] }
        set { self[.isGateClosed] = newValue }
    }
    package private(set) var isPosted: Bool {
        get { self[.isPosted] }
        set { self[.isPosted] = newValue }
    }
    /// Delayed: the pause is not over.
    package private(set) var isPaused: Bool {
        get { self[.isPaused] }
        set { self[.isPaused] = newValue }
    }
    /// Delayed: will continue without its block, with the children it has.
    package private(set) var isAwakening: Bool {
        get { self[.isAwakening] }
        set { self[.isAwakening] = newValue }
    }
    /// Delayed: begins when the enclosing composite does.
    package private(set) var isHeldBack: Bool {
        get { self[.isHeldBack] }
        set { self[.isHeldBack] = newValue }
    }
    /// The attempt has begun, and has neither ended nor been abandoned.
    package private(set) var isLive: Bool {
        get { self[.isLive] }
        set { self[.isLive] = newValue }
    }
    /// A block is in flight: begun, and not returned. There is one at most: an attempt begins only after the block of
    /// the previous one has returned.
    package private(set) var isOut: Bool {
        get { self[.isOut] }
        set { self[.isOut] = newValue }
    }

    package var isDecided: Bool { phase >= .ending }
    /// Whether its block has returned, and its end has to come from elsewhere. For a leaf.
    package var awaitsItsEnd: Bool { phase == .executing && isLive && !isOut }
    package var isTerminal: Bool { phase > .ending }
    package var isQuiescent: Bool { pending == 0 }

    package init() {}

    // MARK: Start

    /// - Returns: whether it was ready.
    @inline(__always)
    package mutating func start() -> Bool {
        guard phase == .ready else { return false }
        phase = .queued
        if attempt == 0 { attempt = 1 }  // a child that was never begun keeps its number
        return true
    }

    /// Its turn may come: it is queued, and neither a gate nor a dependency holds it.
    package func isDue(gateIsOpen: Bool) -> Bool { phase == .queued && !isPosted && gateIsOpen }

    /// A turn is sent to the target.
    @inline(__always)
    package mutating func post() {
        precondition(phase == .queued && !isPosted)
        isPosted = true
    }

    package enum Turn {
        /// The block is to be called; the block and the attempt count as pending.
        case begins
        /// A gate was closed meanwhile; the call that opens it posts again.
        case waits
        /// The operation ended meanwhile, or another turn came first.
        case isVoid
    }

    /// The turn has come.
    @inline(__always)
    package mutating func turn(gateIsOpen: Bool) -> Turn {
        guard phase == .queued, isPosted else { return .isVoid }
        isPosted = false
        guard gateIsOpen else { return .waits }
        phase = .executing
        isLive = true
        runs += 1
        isOut = true
        pending += 2
        return .begins
    }

    /// Takes the state of a plain child that has begun: its turn is on its way, or its block is running.
    package mutating func join(isRunning: Bool) {
        _ = start()
        post()
        if isRunning { _ = turn(gateIsOpen: true) }
    }

    /// Takes the state of a plain child that has finished.
    package mutating func finishAtOnce() {
        join(isRunning: true)
        _ = leaveFinished(number: attempt)
    }

    /// The turn cannot come: the target refused it.
    package mutating func turnIsRefused() -> Bool {
        guard phase == .queued, isPosted else { return false }
        isPosted = false
        return true
    }

    /// A block has returned. The caller lowers `pending`.
    @inline(__always)
    package mutating func leave() {
        precondition(isOut)
        isOut = false
    }

    /// The block has returned, and that finishes the attempt: ``decide(_:number:)``, ``leave()``, ``letGo(_:)`` for
    /// both, and ``settle()`` in one step, where nothing can intervene.
    ///
    /// - Returns: false: refused, and nothing was done.
    @inline(__always)
    package mutating func leaveFinished(number: Int32) -> Bool {
        // Two: the attempt, and this block.
        guard phase == .executing, attempt == number, pending == 2, isLive, isOut, !isGateClosed else {
            return false
        }
        phase = .finished
        end = .finished
        isLive = false
        isOut = false
        pending = 0
        return true
    }

    // MARK: Pending

    /// - Returns: whether it was quiescent before.
    @inline(__always)
    package mutating func hold(_ count: Int32 = 1) -> Bool {
        pending += count
        return pending == count
    }

    /// - Returns: whether it is quiescent now.
    @inline(__always)
    package mutating func letGo(_ count: Int32 = 1) -> Bool {
        precondition(pending >= count)
        pending -= count
        return pending == 0
    }

    // MARK: End

    /// Decides the outcome.
    ///
    /// - Parameter number: the attempt that asks for it; nil: a holder of the handle.
    /// - Returns: how many units of `pending` that frees, to be released by the caller; nil: refused.
    package mutating func decide(_ end: End, number: Int32? = nil) -> Int32? {
        guard canEnd(number) else { return nil }
        phase = .ending
        self.end = end
        isPosted = false
        isPaused = false
        isAwakening = false
        isHeldBack = false
        return endAttempt()
    }

    /// Whether an end would be accepted. While a decision is pending, the attempt is over for its own block.
    package func canEnd(_ number: Int32?) -> Bool {
        !isDecided && (number == nil || (number == attempt && phase != .deciding))
    }

    private mutating func endAttempt() -> Int32 {
        guard isLive else { return 0 }
        isLive = false
        return 1
    }

    /// The outcome is delivered.
    package mutating func settle() {
        precondition(phase == .ending && pending == 0)
        switch end {
        case .finished: phase = .finished
        case .failed: phase = .failed
        case .cancelled: phase = .cancelled
        }
    }

    // MARK: Redo

    /// Asks for a decision.
    ///
    /// - Returns: whether a decision may be made, until which the attempt continues; false: refused.
    package mutating func ask() -> Bool {
        guard phase == .executing else { return false }
        phase = .deciding
        return true
    }

    package enum Redo {
        /// From an executing or deciding attempt, with the block.
        case rerun
        /// From a deciding attempt, with the children.
        case awake
    }

    /// Begins a new attempt, after a pause, and after the block of the old one has returned.
    ///
    /// - Returns: as ``decide(_:number:)``.
    package mutating func redo(_ how: Redo, paused: Bool, number: Int32? = nil) -> Int32? {
        guard phase == .deciding || (phase == .executing && how == .rerun), number == nil || number == attempt
        else { return nil }
        phase = .delayed
        attempt += 1
        isPaused = paused
        isAwakening = how == .awake
        isHeldBack = false
        return endAttempt()
    }

    /// An enclosing composite, which is not settled, undoes its end. The operation begins when that composite begins.
    ///
    /// - Parameter wasTold: its handler has been notified of the end of this attempt: so another attempt follows,
    ///   although no block of this one has begun.
    package mutating func reawaken(_ how: Redo, wasTold: Bool = false) {
        precondition(phase == .ending && end != .finished)
        if runs == 0, attempt == 0 || !wasTold {
            phase = .ready
        } else {
            phase = .delayed
            attempt += 1
            isAwakening = how == .awake
            isHeldBack = true
        }
    }

    /// The enclosing composite begins, so this operation may begin.
    ///
    /// - Returns: whether it was held back, or not begun.
    @inline(__always)
    package mutating func begin() -> Bool {
        switch phase {
        case .ready: return start()
        case .delayed where isHeldBack:
            isHeldBack = false
            return true
        default: return false
        }
    }

    package mutating func pauseIsOver(number: Int32) -> Bool {
        guard phase == .delayed, isPaused, number == attempt else { return false }
        isPaused = false
        return true
    }

    package enum Next {
        /// Not yet.
        case waits
        /// Queued, for its block.
        case queued
        /// Executing, with the children it has. The attempt counts as pending.
        case executing
    }

    /// The step that follows a delay, after the old blocks have returned.
    ///
    /// - Parameter isWhole: there are children to go on with; else its block is called after all.
    package mutating func proceed(gateIsOpen: Bool, isWhole: Bool = true) -> Next {
        guard phase == .delayed, !isPaused, !isHeldBack, pending == 0 else { return .waits }
        guard isAwakening, isWhole else {
            phase = .queued
            isAwakening = false
            return .queued
        }
        guard gateIsOpen else { return .waits }
        phase = .executing
        isAwakening = false
        isLive = true
        pending += 1
        return .executing
    }

    // MARK: Gate

    package mutating func suspend() -> Bool {
        guard !isDecided, !isGateClosed else { return false }
        isGateClosed = true
        return true
    }

    package mutating func resume() -> Bool {
        guard !isDecided, isGateClosed else { return false }
        isGateClosed = false
        return true
    }

    /// The gate of a settled operation holds nothing back any more.
    package mutating func openAtEnd() -> Bool {
        defer { isGateClosed = false }
        return isGateClosed
    }

    // MARK: Label

    package func state(gateIsOpen: Bool) -> OperationState {
        switch phase {
        case .ready: gateIsOpen ? .ready : .suspended
        case .queued: gateIsOpen ? .queued : .suspended
        case .executing: gateIsOpen ? .executing : .suspended
        case .deciding: .deciding
        case .delayed: gateIsOpen ? .delayed : .suspended
        case .ending: .ending
        case .finished: .finished
        case .failed: .failed
        case .cancelled: .cancelled
        }
    }
}
