// TenantFigures.swift - the outcomes of a tenant's requests.

/// Counts and times of a tenant's requests since the tenant was created, as of one moment.
///
/// Every request is accounted for: `asked == started + waiting + refused + cancelled`, and
/// `started == ended + running`.
public struct TenantFigures: Hashable, Sendable {
    /// The tenant's name.
    public internal(set) var name: String
    /// Its share, relative to the other tenants.
    public internal(set) var weight: Int
    /// How many requests it has made.
    public internal(set) var asked = 0
    /// How many of these wait.
    public internal(set) var waiting = 0
    /// How many have begun.
    public internal(set) var started = 0
    /// How many of these have ended.
    public internal(set) var ended = 0
    /// How many were refused because as many waited as the limit allows.
    public internal(set) var full = 0
    /// How many were refused at once, because they would have missed their deadlines.
    public internal(set) var late = 0
    /// How many were refused because their deadlines passed before their turn.
    public internal(set) var expired = 0
    /// How many were refused because a newer request took their place.
    public internal(set) var dropped = 0
    /// How many were refused because the gate or its scheduler was closed.
    public internal(set) var closed = 0
    /// How many were withdrawn, because the waiting tasks were cancelled.
    public internal(set) var cancelled = 0
    /// The total time that requests waited before they began.
    public internal(set) var waited: Duration = .zero
    /// The longest of these waits.
    public internal(set) var longestWait: Duration = .zero
    /// The total time that ended requests took.
    public internal(set) var ran: Duration = .zero

    /// How many run.
    public var running: Int { started - ended }
    /// How many were refused.
    public var refused: Int { full + late + expired + dropped + closed }

    init(name: String, weight: Int) {
        self.name = name
        self.weight = weight
    }

    mutating func count(_ reason: Refusal.Reason) {
        switch reason {
        case .full: full += 1
        case .late: late += 1
        case .expired: expired += 1
        case .dropped: dropped += 1
        case .closed: closed += 1
        }
    }
}
