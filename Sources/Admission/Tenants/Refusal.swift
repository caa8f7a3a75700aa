// Refusal.swift - why something was not started.

/// Something that was not started: its body was not called, and never will be.
public struct Refusal: Error, Hashable, Sendable {
    /// Why.
    public enum Reason: Hashable, Sendable, CaseIterable {
        /// As many wait as the tenant's limit allows.
        case full
        /// The deadline would be over before its turn, as far as can be told from the times of late. Told at once.
        case late
        /// The deadline was over before its turn.
        case expired
        /// A newer one took its place: ``Tenant/WhenFull/dropOldest``.
        case dropped
        /// The gate is closed, or its scheduler is.
        case closed
    }

    /// Why.
    public let reason: Reason
    /// The name of the tenant that asked.
    public let tenant: String
    /// How long it would have waited, as far as that can be told; nil unless the reason is ``Reason/late``: a server says it in
    /// a `Retry-After`.
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
            case .full: "as many wait as its limit allows"
            case .late:
                "it would wait for some \(expectedWait.map { "\($0)" } ?? "time"), longer than its deadline"
            case .expired: "its deadline was over before its turn"
            case .dropped: "a newer one took its place"
            case .closed: "the gate or its scheduler is closed"
            }
        return "Tenant \"\(tenant)\": not started, because \(why)."
    }
}
