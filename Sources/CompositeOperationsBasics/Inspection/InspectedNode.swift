// InspectedNode.swift - what dumps know of one live object, as a value.

/// A live object, as it was for a moment.
package struct InspectedNode: Sendable {
    /// Why it does not go on: what has to end, or to make room, first.
    package struct Wait: Sendable {
        /// The id of that.
        package let id: String
        /// As a sentence with that as its object: "waits for", "needs a slot of".
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
    /// Tells it apart from all others of the dump.
    package let id: String
    /// Where it is on its way.
    package let state: String
    /// Since when it has been kept.
    package var since: ContinuousClock.Instant?
    /// More that is known, in words.
    package var notes: [String] = []
    /// For what it waits.
    package var waitsFor: [Wait] = []
    /// Whether it goes on as soon as one of `waitsFor` does, and not only when all do.
    package var waitsForAny = false
    /// Its block has returned without an end, and nothing has ended it since.
    package var isForgotten = false
    /// How many are below it that are not in the dump.
    package var omitted = 0

    package init(_ kind: String, name: String? = nil, id: String, state: String) {
        self.kind = kind
        self.name = name
        self.id = id
        self.state = state
    }

    /// A node below a root, of which no more is known.
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
    ///   - one: what is inspected.
    package init(
        room: Int, looks: Int, names: [ObjectIdentifier: String], _ one: Inspectables.Kept
    ) {
        self.room = room
        self.looks = looks
        self.names = names
        self.one = one
    }

    /// The number of what is inspected.
    package var number: Int { one.number }
    /// The name that it has had since it was kept.
    package var name: String? { one.name }

    /// The id of an object, if that is kept, too.
    package func id(of object: ObjectIdentifier) -> String? { names[object] }

    /// Adds a node, where there is room.
    ///
    /// - Returns: its place; nil: there is none.
    @discardableResult
    package mutating func add(_ node: InspectedNode) -> Int? {
        guard room > 0 else { return nil }
        room -= 1
        var node = node
        if nodes.isEmpty { node.since = one.since }
        nodes.append(node)
        return nodes.count - 1
    }

    /// Adds to what is known of a node.
    package mutating func note(_ note: String, of place: Int) { nodes[place].notes.append(note) }

    /// So many objects were looked at.
    package mutating func looked(at count: Int) { looks -= count }

    /// So many below a node are not in the dump.
    package mutating func omit(_ count: Int, below place: Int) { nodes[place].omitted += count }
}
