// Refusal.swift - why a request was not started.

/// A request that was not started: its body was not called, and never will be.
public struct Refusal: Error, Hashable, Sendable {
    /// Why.
    public enum Reason: Hashable, Sendable, CaseIterable {
        /// As many requests wait as the tenant's limit allows.
        case full
        /// Judging by recent times, the deadline would pass before its turn. Reported at once.
        case late
        /// The deadline passed before its turn.
        case expired
        /// A newer request took its place: ``Tenant/WhenFull/dropOldest``.
        case dropped
        /// The gate is closed, or its scheduler is.
        case closed
    }

    /// Why.
    public let reason: Reason
    /// The name of the tenant that made the request.
    public let tenant: String
    /// The estimated wait; nil unless the reason is ``Reason/late``. A server can report it in `Retry-After`.
    public let expectedWait: Duration?

    init(_ reason: Reason, tenant: String, expectedWait: Duration? = nil) {
        self.reason = reason
        self.tenant = tenant
        self.expectedWait = expectedWait
    }
}

extension Refusal: CustomStringConvertible {
    /// One sentence.
    public var description: String {
        let why =
            switch reason {
            case .full: "its queue of requests is full"
            case .late:
                "it would wait for some \(expectedWait.map { "\($0)" } ?? "time"), longer than its deadline"
            case .expired: "its deadline passed before its turn"
            case .dropped: "a newer request took its place"
            case .closed: "the gate or its scheduler is closed"
            }
        return "Tenant \"\(tenant)\": not started, because \(why)."
    }
}
