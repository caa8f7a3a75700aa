// The behaviour of a tree of members, stated without hooks, links and logs: a value whose copies are savepoints.

struct ReferenceModel {
    /// The state that a rollback restores.
    struct State {
        var numbers = [0]
        var parent: [Int?] = [nil]
        var children: [[Int]] = [[]]
        /// The members that left, in order.
        var departed: [Int] = []
        var doom: Int?
    }

    var state = State()
    /// Facts: no rollback changes them.
    var isAlive = [true]
    private(set) var createdBelow: [Int?] = [nil]
    private(set) var detached: Set<Int> = []
    private(set) var begun: Set<Int> = []
    private(set) var ended: Set<Int> = []
    private(set) var trace: [String] = []
    var isActive = false

    var count: Int { isAlive.count }
    mutating func takeTrace() -> [String] {
        defer { trace = [] }
        return trace
    }

    func takesPart(_ member: Int) -> Bool { begun.contains(member) && !ended.contains(member) }
    /// Also true of a member that was rolled back to a savepoint.
    private func hasBegun(_ member: Int) -> Bool { begun.contains(member) }
    func isBelow(_ member: Int, _ top: Int) -> Bool {
        var node: Int? = member
        while let here = node {
            if here == top { return true }
            node = state.parent[here]
        }
        return false
    }

    func parentsFirst(_ top: Int = 0) -> [Int] { [top] + state.children[top].flatMap { parentsFirst($0) } }
    func childrenFirst(_ top: Int = 0) -> [Int] { state.children[top].flatMap { childrenFirst($0) } + [top] }
    private var all: [Int] { childrenFirst() + state.departed.flatMap { childrenFirst($0) } }

    private mutating func note(_ hook: String, _ member: Int) {
        if isAlive[member] { trace.append("\(hook) \(member)") }
    }

    mutating func begin() {
        isActive = true
        for member in parentsFirst() {
            begun.insert(member)
            note("begin", member)
        }
    }

    mutating func create(below parent: Int) {
        let member = count
        state.numbers.append(0)
        state.parent.append(parent)
        state.children.append([])
        state.children[parent].append(member)
        isAlive.append(true)
        createdBelow.append(parent)
        if detached.contains(parent) {
            detached.insert(member)
        } else if hasBegun(parent) {
            begun.insert(member)
            note("begin", member)
        }
    }

    private mutating func unlink(_ member: Int) {
        if let parent = state.parent[member] {
            state.children[parent].removeAll { $0 == member }
        } else {
            state.departed.removeAll { $0 == member }
        }
        state.parent[member] = nil
    }

    mutating func leave(_ member: Int) {
        if state.departed.contains(member) { return }
        unlink(member)
        if isActive { state.departed.append(member) } else { detach(member) }
    }

    mutating func move(_ member: Int, to parent: Int) {
        unlink(member)
        state.parent[member] = parent
        state.children[parent].append(member)
        for member in parentsFirst(member) where isActive && !begun.contains(member) {
            guard let parent = state.parent[member], hasBegun(parent) else { continue }
            begun.insert(member)
            note("begin", member)
        }
    }

    private mutating func detach(_ top: Int) { detached.formUnion(parentsFirst(top)) }

    /// Restores the state, and appends the members registered since.
    mutating func restore(_ old: State) {
        let first = old.parent.count
        let numbers = state.numbers
        state = old
        for member in first..<count {
            // A member's initial number: later writes are undone, except for those of a detached member.
            state.numbers.append(detached.contains(member) ? numbers[member] : 0)
            state.parent.append(createdBelow[member])
            state.children.append([])
            if let parent = createdBelow[member] { state.children[parent].append(member) }
        }
        for member in detached where member < first { state.numbers[member] = numbers[member] }
    }

    mutating func rollBack(to old: State, begunBefore: Set<Int>) {
        restore(old)
        for member in all where takesPart(member) && !begunBefore.contains(member) {
            ended.insert(member)
            note("rollback", member)
        }
    }

    mutating func rollBack(_ old: State) {
        restore(old)
        for member in all where takesPart(member) { note("rollback", member) }
        finish()
    }

    /// Validates members, and returns those that fail. Unless `all` is true, stops at the first failure.
    mutating func validate(all: Bool, fails: (Int) -> Bool) -> [Int] {
        var failing: [Int] = []
        for member in parentsFirst() where takesPart(member) && isAlive[member] {
            note("validate", member)
            if fails(state.numbers[member]) {
                failing.append(member)
                if !all { break }
            }
        }
        return failing
    }

    mutating func commit() {
        for member in all where takesPart(member) { note("commit", member) }
        for top in state.departed { detach(top) }
        state.departed = []
        finish()
    }

    private mutating func finish() {
        begun = []
        ended = []
        isActive = false
    }
}
