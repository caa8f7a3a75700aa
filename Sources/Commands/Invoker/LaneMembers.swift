// LaneMembers.swift - the accepted runs of a lane that have no outcome, each found by its index here.

/// A run, with what its lane knows about it.
struct LaneMember {
    let run: CommandRun
    let epoch: Int
    let cost: Int
    var isGathering: Bool
}

/// The runs of one lane. Guarded by the lane's lock, which thus also guards `CommandRun.placeInLane`. Adding, removing and
/// finding a run is O(1).
struct LaneMembers {
    private var places: [LaneMember?] = []
    private var free: [Int] = []

    var count: Int { places.count - free.count }
    var all: [CommandRun] { places.compactMap { $0?.run } }

    /// At most `most` of the runs; examines at most twice as many places.
    func some(_ most: Int) -> [CommandRun] {
        Array(places.prefix(2 * most).compactMap { $0?.run }.prefix(most))
    }

    func contains(_ run: CommandRun) -> Bool { run.placeInLane != CommandRun.nowhere }

    /// nil if the run has its outcome.
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

    /// - Returns: nil if the run is not a member.
    mutating func remove(_ run: CommandRun) -> LaneMember? {
        guard contains(run) else { return nil }
        let member = places[run.placeInLane].take()
        free.append(run.placeInLane)
        run.placeInLane = CommandRun.nowhere
        // Frees the memory of a large table with its last member.
        if count == 0, places.count > 64 { self = LaneMembers() }
        return member
    }
}
