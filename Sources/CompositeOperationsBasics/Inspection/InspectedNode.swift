// InspectedNode.swift - what dumps know of one live object, as a value.

/// A live object, as it was at one moment.
package struct InspectedNode: Sendable {
    /// Why a node does not proceed: what must end, or make room, first.
    package struct Wait: Sendable {
        /// The id of the awaited node.
        package let id: String
        /// As a phrase whose object is that node: "waits for", "needs a slot of".
        package let why: String

        package init(_ why: String, _ id: String) {
            self.why = why
            self.id = id
        }
    }

    /// How far below its root it is.
    package var depth = 0
    /// Its kind, in a word.
    package let kind: String
    /// The name that its owner gave it.
    package let name: String?
    /// Distinguishes it from all other nodes of the dump.
    package let id: String
    /// Its current state.
    package let state: String
    /// When it was registered.
    package var since: ContinuousClock.Instant?
    /// Further details, in words.
    package var notes: [String] = []
    /// The nodes that it waits for.
    package var waitsFor: [Wait] = []
    /// Whether it proceeds as soon as one of `waitsFor` does, rather than when all do.
    package var waitsForAny = false
    /// Whether its block has returned without ending it, and nothing has ended it since.
    package var isForgotten = false
    /// How many objects below it are not in the dump.
    package var omitted = 0

    package init(_ kind: String, name: String? = nil, id: String, state: String) {
        self.kind = kind
        self.name = name
        self.id = id
        self.state = state
    }

    /// A node below a root, without further details.
    package init(below kind: String, id: String, state: String) {
        self.init(kind, id: id, state: state)
        depth = 1
    }
}

/// Gathers nodes, within limits.
package struct Inspector {
    /// The nodes that were added, each before those below it.
    package private(set) var nodes: [InspectedNode] = []
    /// How many more may be added.
    package private(set) var room: Int
    /// How many more objects may be looked at, whether or not they have a node.
    package private(set) var looks: Int
    private let names: [ObjectIdentifier: String]
    private let one: Inspectables.Kept

    /// - Parameters:
    ///   - room: how many nodes may be added.
    ///   - looks: how many objects may be looked at.
    ///   - names: the ids of objects that others refer to.
    ///   - one: the entry that is inspected.
    package init(
        room: Int, looks: Int, names: [ObjectIdentifier: String], _ one: Inspectables.Kept
    ) {
        self.room = room
        self.looks = looks
        self.names = names
        self.one = one
    }

    /// The number of the inspected entry.
    package var number: Int { one.number }
    /// The name that the entry was registered with.
    package var name: String? { one.name }

    /// The id of an object, if it is registered.
    package func id(of object: ObjectIdentifier) -> String? { names[object] }

    /// Adds a node, if there is room.
    ///
    /// - Returns: its index; nil: there is no room.
    @discardableResult
    package mutating func add(_ node: InspectedNode) -> Int? {
        guard room > 0 else { return nil }
        room -= 1
        var node = node
        if nodes.isEmpty { node.since = one.since }
        nodes.append(node)
        return nodes.count - 1
    }

    /// Adds a detail to a node.
    package mutating func note(_ note: String, of place: Int) { nodes[place].notes.append(note) }

    /// Records that `count` objects were looked at.
    package mutating func looked(at count: Int) { looks -= count }

    /// Records that `count` objects below a node are not in the dump.
    package mutating func omit(_ count: Int, below place: Int) { nodes[place].omitted += count }
}
