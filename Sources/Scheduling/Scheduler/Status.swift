internal import CScheduler

extension csched_status {
    /// Throws what the C side answered, unless it is OK.
    ///
    /// Exhaustive on purpose: a status that is added in C does not compile here until it is given a meaning.
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
            fatalError("CScheduler answered with status \(rawValue), which has no meaning here")
        }
    }
}

extension Duration {
    /// A century. The clocks of the standard library stop the process for what is much longer, and nobody waits for it.
    package static var longest: Duration { .seconds(100 * 365 * 86_400) }

    /// Whole nanoseconds: zero for what is negative, the longest representable time for what is longer (584
    /// years).
    var wholeNanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carry) = product.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
        return overflow || carry ? .max : sum
    }
}
