internal import CScheduler

extension csched_status {
    /// Throws the error for this status, unless it is OK.
    ///
    /// Exhaustive on purpose: a status added in C does not compile here until it is handled.
    @inline(__always)
    func check() throws(SchedulerError) {
        if self == .ok { return }
        throw SchedulerError(code)
    }

    private var code: SchedulerError.Code {
        switch self {
        case .ok: fatalError("not a failure")
        case .outOfMemory: .outOfMemory
        case .invalidWorkers: .invalidWorkers
        case .invalidCapacity: .invalidCapacity
        case .invalidEnvironment: .invalidEnvironment
        case .threadCreationFailed: .threadCreationFailed
        case .closed: .closed
        case .full: .full
        case .wouldDeadlock: .wouldDeadlock
        @unknown default:
            fatalError("CScheduler returned the status \(rawValue), which this call does not expect")
        }
    }
}

extension Duration {
    /// A century: the standard library's clocks trap on much longer durations, and no caller waits that long.
    package static var longest: Duration { .seconds(100 * 365 * 86_400) }

    /// The duration in whole nanoseconds: 0 if negative; at most 584 years, the longest that the type can
    /// represent.
    var wholeNanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carry) = product.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
        return overflow || carry ? .max : sum
    }
}
