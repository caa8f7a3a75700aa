/// An implementation that a user might pick, adapted to a common interface for running workloads.
///
/// A peer lives in its own process, and is used by one thread at a time.
public protocol Peer: AnyObject, SendableMetatype {
    /// The name on the command line, in JSON and in the report.
    static var name: String { get }
    /// The version of the library, as far as the library reports one.
    static var version: String { get }
    /// The adapter's file, relative to the root of the repository: the report links to it.
    static var source: String { get }
    /// One sentence: why the peer is not in this build, and how to include it. Nil if it is.
    static var missing: String? { get }

    /// Describes in a few words how the peer implements a workload, and what it leaves out; nil if its name and file say enough.
    static func form(_ workload: String) -> String?

    /// One sentence: why the peer cannot run a workload. Nil if it can.
    static func notApplicable(_ workload: String) -> String?
    /// The largest size that finishes in time; nil: any.
    static func largest(_ workload: String) -> Int?

    /// Creates the pool with its threads.
    ///
    /// - Parameter threads: how many threads run operations; at least 1.
    init(threads: Int) throws

    /// Runs a workload once and measures it. Nothing is pending when it returns.
    ///
    /// - Parameters:
    ///   - workload: the identifier of an applicable workload.
    ///   - n: the size, as in ``Workload/quick``.
    func run(_ workload: String, n: Int) throws -> Sample

    /// Whether everything that the peer has retired is freed: nothing waits for a grace period.
    var isReclaimed: Bool { get }

    /// Joins the threads; the peer is not used afterwards.
    func shutdown()
}

extension Peer {
    /// Nil: the peer is in this build.
    public static var missing: String? { nil }

    /// Returns nil: the name says enough.
    public static func form(_ workload: String) -> String? { nil }

    /// Returns nil: any size finishes in time.
    public static func largest(_ workload: String) -> Int? { nil }

    /// True: the peer retires nothing.
    public var isReclaimed: Bool { true }
}
