// LaneMembers.swift - the runs that a lane has accepted and that have no outcome, each found by its place here.

/// A run, as its lane knows it.
struct LaneMember {
    let run: CommandRun
    let epoch: Int
    let cost: Int
    var isGathering: Bool
}

/// The runs of one lane. Under its lock, which so guards `CommandRun.placeInLane`, too. To come, to go and to be found is O(1).
struct LaneMembers {
    private var places: [LaneMember?] = []
    private var free: [Int] = []

    var count: Int { places.count - free.count }
    var all: [CommandRun] { places.compactMap { $0?.run } }

    /// Some of them; of as many places it looks at no more than twice as many.
    func some(_ most: Int) -> [CommandRun] {
        Array(places.prefix(2 * most).compactMap { $0?.run }.prefix(most))
    }

    func contains(_ run: CommandRun) -> Bool { run.placeInLane != CommandRun.nowhere }

    /// nil: it has its outcome.
    subscript(run: CommandRun) -> LaneMember? { contains(run) ? places[run.placeInLane] : nil }

    mutating func add(_ member: LaneMember) {
        if let place = free.popLast() {
            places[place] = member
            member.run.placeInLane = place
        } else {
            member.run.placeInLane = places.count
            places.append(member)
        }
    }

    mutating func hasGathered(_ run: CommandRun) { places[run.placeInLane]?.isGathering = false }

    /// - Returns: nil: it is none of these.
    mutating func remove(_ run: CommandRun) -> LaneMember? {
        guard contains(run) else { return nil }
        let member = places[run.placeInLane].take()
        free.append(run.placeInLane)
        run.placeInLane = CommandRun.nowhere
        // The memory of many goes with the last of them.
        if count == 0, places.count > 64 { self = LaneMembers() }
        return member
    }
}
