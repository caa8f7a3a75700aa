// ActionSnapshot.swift - the visible state of an action, and the word in which its gate stores it.

/// One atomic read of an action's gate: its members never come from two different moments.
public struct ActionSnapshot: Hashable, Sendable {
    /// Whether a trigger would be admitted: the precondition holds, and there is room.
    public var isEnabled: Bool
    /// Whether any execution is running.
    public var isExecuting: Bool
    /// How many executions are running: of the action, or, in a group, of all actions of the group.
    public var running: Int
    /// How many triggers wait for a slot.
    public var waiting: Int
    /// How many executions may run at once.
    public var limit: Int
    /// Incremented with every change of the gate; wraps around after 2²⁷ changes (2²⁴ in a group).
    public var generation: Int

    package init(
        isEnabled: Bool, isExecuting: Bool, running: Int, waiting: Int, limit: Int, generation: Int
    ) {
        self.isEnabled = isEnabled
        self.isExecuting = isExecuting
        self.running = running
        self.waiting = waiting
        self.limit = limit
        self.generation = generation
    }
}

/// A gate's answer to a trigger.
package enum Admission: Equatable, Sendable {
    /// The trigger runs.
    case start
    /// The trigger waits behind all waiting triggers.
    case wait
    /// The trigger waits in place of the one waiting trigger, if there is any.
    case replace
    case refuse(DisabledReason)
}

/// The gate of one action, as a pure state machine; see section "The gate" of DESIGN.md.
///
///     bit    0      1 ..< 13   13 ..< 25   25 ..< 37   37 ..< 64
///         enabled   waiting     running      limit     generation
package struct GateWord: Equatable, Sendable {
    package static let mostOfAKind = 0xFFF

    package private(set) var bits: UInt64

    package init(bits: UInt64) { self.bits = bits }

    package init(isEnabled: Bool, limit: Int) {
        bits = 0
        self.isEnabled = isEnabled
        self.limit = limit
    }

    private func field(_ shift: UInt64) -> Int { Int(bits >> shift & 0xFFF) }
    private mutating func setField(_ shift: UInt64, to value: Int) {
        bits = bits & ~(0xFFF << shift) | UInt64(value) << shift
    }

    package private(set) var isEnabled: Bool {
        get { bits & 1 != 0 }
        set { bits = newValue ? bits | 1 : bits & ~1 }
    }
    package private(set) var waiting: Int {
        get { field(1) }
        set { setField(1, to: newValue) }
    }
    package private(set) var running: Int {
        get { field(13) }
        set { setField(13, to: newValue) }
    }
    package private(set) var limit: Int {
        get { field(25) }
        set { setField(25, to: newValue) }
    }
    package var generation: Int { Int(bits >> 37) }

    private mutating func step() { bits &+= 1 << 37 }

    private func hasRoom(_ policy: ActionPolicy) -> Bool {
        switch policy {
        case .reject: running < limit
        case .queue(let most): running < limit || waiting < most
        case .switchToLatest, .coalesce: true
        }
    }

    package func snapshot(_ policy: ActionPolicy) -> ActionSnapshot {
        ActionSnapshot(
            isEnabled: isEnabled && hasRoom(policy), isExecuting: running > 0, running: running,
            waiting: waiting, limit: limit, generation: generation)
    }

    // MARK: Transitions

    /// - Returns: whether the state changed.
    package mutating func setEnabled(_ isEnabled: Bool) -> Bool {
        guard self.isEnabled != isEnabled else { return false }
        self.isEnabled = isEnabled
        step()
        return true
    }

    /// Admits a trigger whose precondition held when it was read.
    package mutating func admit(_ policy: ActionPolicy) -> Admission {
        guard isEnabled else { return .refuse(.precondition) }
        let admission: Admission
        if running < limit {
            admission = .start
            running += 1
        } else {
            switch policy {
            case .reject: return .refuse(.busy)
            case .queue(let most):
                guard waiting < most else { return .refuse(.queueFull) }
                admission = .wait
                waiting += 1
            case .switchToLatest, .coalesce:
                admission = .replace
                waiting = 1
            }
        }
        step()
        return admission
    }

    /// Records that an execution has ended, or could not begin.
    ///
    /// - Returns: whether its slot passes to the first waiting trigger.
    package mutating func end() -> Bool {
        step()
        if waiting > 0 && running <= limit {
            waiting -= 1
            return true
        }
        running -= 1
        return false
    }

    /// Records that a waiting execution has left the line.
    package mutating func leaveLine() {
        waiting -= 1
        step()
    }

    /// - Returns: how many waiting triggers are admitted.
    package mutating func setLimit(_ limit: Int) -> Int {
        self.limit = limit
        let count = max(0, min(waiting, limit - running))
        waiting -= count
        running += count
        step()
        return count
    }
}

/// The gate that the actions of a group share, as a pure state machine.
///
///     bit  0 ..< 16   16 ..< 32   32 ..< 40   40 ..< 64
///          enabled    executing     limit     generation
package struct GroupWord: Equatable, Sendable {
    package static let mostActions = 16
    package static let mostLimit = 0xFF

    package private(set) var bits: UInt64

    package init(bits: UInt64) { self.bits = bits }
    package init(limit: Int) { bits = UInt64(limit) << 32 }

    private var executing: UInt64 { bits >> 16 & 0xFFFF }
    package var limit: Int { Int(bits >> 32 & 0xFF) }
    package var running: Int { executing.nonzeroBitCount }

    private mutating func step() { bits &+= 1 << 40 }
    private func isExecuting(_ index: Int) -> Bool { bits >> UInt64(16 + index) & 1 != 0 }
    private func isEnabled(_ index: Int) -> Bool { bits >> UInt64(index) & 1 != 0 }

    package func snapshot(_ index: Int) -> ActionSnapshot {
        ActionSnapshot(
            isEnabled: isEnabled(index) && !isExecuting(index) && running < limit,
            isExecuting: isExecuting(index), running: running, waiting: 0, limit: limit,
            generation: Int(bits >> 40))
    }

    /// - Returns: whether the state changed.
    package mutating func setEnabled(_ isEnabled: Bool, _ index: Int) -> Bool {
        guard self.isEnabled(index) != isEnabled else { return false }
        bits ^= 1 << UInt64(index)
        step()
        return true
    }

    package mutating func admit(_ index: Int) -> Admission {
        guard isEnabled(index) else { return .refuse(.precondition) }
        guard !isExecuting(index), running < limit else { return .refuse(.busy) }
        bits |= 1 << UInt64(16 + index)
        step()
        return .start
    }

    package mutating func end(_ index: Int) {
        bits &= ~(1 << UInt64(16 + index))
        step()
    }

    package mutating func setLimit(_ limit: Int) {
        bits = bits & ~(0xFF << 32) | UInt64(limit) << 32
        step()
    }
}
