internal import CScheduler

/// The function that a job calls with the submitted object, and with whether the job is cancelled, for example because the
/// scheduler was shut down first. The function takes over the object's reference.
package typealias JobFunction =
    @convention(c) (_ object: UnsafeMutableRawPointer, _ isCancelled: Bool) -> Void

// An operation's context is the object, and its second word the function, so nothing is allocated for a job.

extension Scheduler {
    /// Submits an object, exempt from the capacity.
    ///
    /// - Parameter priority: nil: that of the running body.
    /// - Throws: as ``submit(_:)``, but never ``SchedulerError/Code/full``; `function` is not called then.
    /// - Complexity: O(1), lock-free, allocates nothing but a block per few hundred waiting operations.
    package func submit(
        job object: AnyObject, priority: Priority? = nil, _ function: JobFunction
    ) throws(SchedulerError) {
        var operation = unsafe jobOperation(object, function)
        let status = unsafe csched_submit_exempt_at(handle, &operation, priority?.inQueue ?? .inherited)
        if status != .ok {
            unsafe Unmanaged.passUnretained(object).release()
            try status.check()
        }
    }

    // Only the handle, to avoid reference counting of the `Scheduler`.
    nonisolated(unsafe) private static let sharedHandle = unsafe shared.handle

    /// The handle of ``shared``, which is never destroyed.
    package static var handleOfShared: OpaquePointer { unsafe sharedHandle }

    /// Submits an object to ``shared``.
    ///
    /// - Parameter object: retained; `function` takes over the reference.
    /// - Returns: whether the object was accepted; if not, the reference still belongs to the caller.
    package static func submitToShared(
        job object: UnsafeMutableRawPointer, priority: Priority, _ function: JobFunction
    ) -> Bool {
        var operation = unsafe csched_operation(
            run: runJob, context: object, extra: unsafeBitCast(function, to: UnsafeMutableRawPointer.self),
            counter: nil)
        return unsafe csched_submit_exempt_at(sharedHandle, &operation, priority.inQueue) == .ok
    }
}

extension Scheduler {
    /// Reports that the running job had nothing to do, so its turn does not count toward the share of its priority.
    package static func turnWasVoid() { csched_turn_was_void() }
}

extension SerialLane {
    /// Appends an object.
    ///
    /// - Parameter priority: nil: that of the running body.
    /// - Throws: as ``submit(_:)``; `function` is not called then.
    package func submit(
        job object: AnyObject, priority: Scheduler.Priority? = nil, _ function: JobFunction
    ) throws(SchedulerError) {
        var operation = unsafe jobOperation(object, function)
        let status = unsafe csched_lane_submit_at(handle, &operation, priority?.inQueue ?? .inherited)
        if status != .ok {
            unsafe Unmanaged.passUnretained(object).release()
            try status.check()
        }
    }
}

@inline(__always)
func jobOperation(_ object: AnyObject, _ function: JobFunction) -> csched_operation {
    unsafe csched_operation(
        run: runJob, context: Unmanaged.passRetained(object).toOpaque(),
        extra: unsafeBitCast(function, to: UnsafeMutableRawPointer.self), counter: nil)
}

extension CompletionCounter {
    /// Blocks like ``wait(helping:)``, and meanwhile runs those jobs queued on the calling worker that have this function and
    /// for which `isWanted` returns true.
    ///
    /// - Parameters:
    ///   - isWanted: receives the job's object, which it may inspect but must not keep.
    ///   - areWanted: likewise; receives the address of children that have no objects, and the address of one of them, or nil
    ///     for a range of them.
    @available(*, noasync)
    package func wait(
        running function: JobFunction, where isWanted: (UnsafeMutableRawPointer) -> Bool,
        orChildrenWhere areWanted: (UnsafeMutableRawPointer, UnsafeMutableRawPointer?) -> Bool
    ) {
        unsafe withoutActuallyEscaping(isWanted) { isWanted in
            unsafe withoutActuallyEscaping(areWanted) { areWanted in
                let wanted = unsafe WantedJobs(function: function, isWanted: isWanted, areWanted: areWanted)
                withExtendedLifetime(wanted) {
                    _ = unsafe csched_completion_wait_running(
                        handle, runJob,
                        { wanted, object, function in
                            let jobs = unsafe Unmanaged<WantedJobs>.fromOpaque(wanted!)
                            return unsafe jobs._withUnsafeGuaranteedRef {
                                unsafe $0.contain(object!, function!)
                            }
                        },
                        { wanted, children, child in
                            let jobs = unsafe Unmanaged<WantedJobs>.fromOpaque(wanted!)
                            return unsafe jobs._withUnsafeGuaranteedRef {
                                unsafe $0.areWanted(children, child)
                            }
                        }, Unmanaged.passUnretained(wanted).toOpaque())
                }
            }
        }
    }
}

/// The jobs that a wait may run on its stack; lives as long as the wait.
@safe
private final class WantedJobs {
    private let function: UnsafeMutableRawPointer
    private let isWanted: (UnsafeMutableRawPointer) -> Bool
    let areWanted: (UnsafeMutableRawPointer, UnsafeMutableRawPointer?) -> Bool

    init(
        function: JobFunction, isWanted: @escaping (UnsafeMutableRawPointer) -> Bool,
        areWanted: @escaping (UnsafeMutableRawPointer, UnsafeMutableRawPointer?) -> Bool
    ) {
        unsafe self.function = unsafeBitCast(function, to: UnsafeMutableRawPointer.self)
        unsafe self.isWanted = isWanted
        unsafe self.areWanted = areWanted
    }

    func contain(_ object: UnsafeMutableRawPointer, _ function: UnsafeMutableRawPointer) -> Bool {
        unsafe self.function == function && isWanted(object)
    }
}

private func runJob(
    _ object: UnsafeMutableRawPointer?, _ function: UnsafeMutableRawPointer?,
    _ disposition: csched_disposition
) {
    let call = unsafe unsafeBitCast(function, to: JobFunction.self)
    unsafe call(object!, disposition == .cancel)
}
