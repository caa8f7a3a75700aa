// MainQueue.swift - the main dispatch queue, served by the main thread while that waits for an outcome.
//
// libdispatch lets whoever owns the main thread's loop serve the main queue: a descriptor becomes readable when there
// is work, and a function does the work. Foundation's run loop is built on these two; so is this, without Foundation.
//
// Invariants:
//   I1  only the main thread serves, and only between items: libdispatch does nothing when it is asked inside one.
//       Nobody tells whether the caller is inside one, so a probe finds it out: an item that is served, or is not.
//   I2  a wake-up lasts until the waiter has seen it: as a count in the descriptor `wakeUp`, and, for a pump, as an
//       item that comes again until the waiter looked (``MainQueueSleeper/isUnseen``). So what is nested in between, and eats
//       one, loses none.
//
// Source: swift-corelibs-libdispatch, private/private.h; swift-corelibs-foundation, CFRunLoop.c, for how they are used.

internal import Dispatch
internal import Glibc
internal import Synchronization

/// The thread that waits, and serves the main queue meanwhile.
package protocol MainQueueSleeper: AnyObject, Sendable {
    /// Something has happened since it looked.
    var isUnseen: Bool { get }
}

/// The main queue, and the thread that it belongs to.
package enum MainQueue {
    /// Serves more than the main queue: on the main thread, until something was served or the time is over; nil: for
    /// ever. Has to serve the main queue too. Answers false when it can do nothing.
    package typealias Pump = @Sendable (_ timeout: Duration?) -> Bool

    private static let pump = Guarded<Pump?>(nil)
    private static let hasPump = Atomic(false)

    /// Sets what serves instead of the main queue alone.
    package static func install(_ pump: @escaping Pump) {
        self.pump.withLock { $0 = pump }
        hasPump.store(true, ordering: .releasing)
    }

    /// The work that libdispatch gives away, and the wake-up of the thread that polls it.
    private struct Access: Sendable {
        let readable: Int32
        let serve: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> Void
        let wakeUp: Int32
    }

    private static let access: Access? = {
        typealias GetHandle = @convention(c) () -> Int32
        typealias Serve = @convention(c) @Sendable (UnsafeMutableRawPointer?) -> Void
        typealias MakeEvent = @convention(c) (UInt32, Int32) -> Int32
        guard let getHandle = function("_dispatch_get_main_queue_handle_4CF", as: GetHandle.self),
            let serve = function("_dispatch_main_queue_callback_4CF", as: Serve.self),
            let makeEvent = function("eventfd", as: MakeEvent.self)
        else { return nil }
        let readable = getHandle()
        let wakeUp = makeEvent(0, O_CLOEXEC | O_NONBLOCK)
        guard readable >= 0, wakeUp >= 0 else { return nil }
        return Access(readable: readable, serve: serve, wakeUp: wakeUp)
    }()

    /// Whether the calling code is the main actor's, or could be: it is on the main thread, or inside an item of the main
    /// queue, which others run once the main thread has gone.
    package static var isCurrent: Bool { isMainThread || DispatchQueue.main.isCurrent }

    /// The main thread is the first one of the process, and has its number.
    private static var isMainThread: Bool { threadNumber?() == getpid() }

    // Newer than the modules that Swift makes of the C library's headers.
    private static let threadNumber = function("gettid", as: (@convention(c) @Sendable () -> pid_t).self)

    private static func function<Function>(_ name: String, as type: Function.Type) -> Function? {
        dlsym(nil, name).map { unsafeBitCast($0, to: type) }
    }

    /// Whether a thread that is about to wait can serve the main queue meanwhile.
    package enum Service {
        /// The thread is not the main queue's, and not in its item.
        case isNotOurs
        case isServed
        /// The main queue stands still during the wait.
        case standsStill(why: String)
    }

    /// Finds out whether the calling thread can serve the main queue, and serves what is in it.
    package static func service() -> Service {
        guard isMainThread else {
            // Once the main thread has gone, in `dispatchMain()`, others run the items.
            if Diagnostics.areHeard, DispatchQueue.main.isCurrent {
                return .standsStill(why: "inside one of its items")
            }
            return .isNotOurs
        }
        guard let access else { return .standsStill(why: "libdispatch does not give it away") }
        let probe = Probe()
        DispatchQueue.main.async { probe.isServed.store(true, ordering: .relaxed) }
        access.serve(nil)
        return probe.isServed.load(ordering: .relaxed)
            ? .isServed : .standsStill(why: "inside one of its items")
    }

    private final class Probe: Sendable {
        let isServed = Atomic(false)
    }

    /// Serves once, on the main thread: returns when something was served, somebody woke it, or the time is over.
    ///
    /// - Returns: false: the time is over.
    package static func serve(until deadline: ContinuousClock.Instant?) -> Bool {
        guard let access else { return true }
        let timeout = deadline.map { ContinuousClock.now.duration(to: $0) }
        if let timeout, timeout <= .zero { return false }
        if hasPump.load(ordering: .acquiring), let pump = pump.withLock({ $0 }), pump(timeout) { return true }

        var descriptors = [
            pollfd(fd: access.readable, events: Int16(POLLIN), revents: 0),
            pollfd(fd: access.wakeUp, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&descriptors, 2, milliseconds(timeout))
        if count <= 0 { return true }  // interrupted, or over: the next call tells
        if descriptors[1].revents != 0 { drain(access.wakeUp) }
        if descriptors[0].revents != 0 {
            // First, so that what comes while items run makes it readable again; what an item's own run loop empties it
            // of, libdispatch announces once more at the end.
            drain(access.readable)
            access.serve(nil)
        }
        return true
    }

    /// Wakes a waiter that serves, or is about to. From any thread.
    package static func wake(_ waiter: some MainQueueSleeper) {
        guard let access else { return }
        var one: UInt64 = 1
        _ = write(access.wakeUp, &one, MemoryLayout.size(ofValue: one))
        if hasPump.load(ordering: .acquiring) { post(waiter) }
    }

    private static func post(_ waiter: some MainQueueSleeper) {
        DispatchQueue.main.async { postAgain(waiter) }
    }

    /// The pump returns after an item, so that the waiter looks; but it may have been a pump nested in that one.
    private static func postAgain(_ waiter: some MainQueueSleeper) {
        guard waiter.isUnseen else { return }
        DispatchQueue.main.asyncAfter(deadline: .now() + .milliseconds(1)) { postAgain(waiter) }
    }

    private static func drain(_ event: Int32) {
        var count: UInt64 = 0
        _ = read(event, &count, MemoryLayout.size(ofValue: count))
    }

    /// As `poll` wants them: upwards, so that it does not return too early; -1: for ever.
    private static func milliseconds(_ duration: Duration?) -> Int32 {
        guard let (seconds, attoseconds) = duration?.components else { return -1 }
        let most = Int64(Int32.max) / 1000 - 1
        return seconds > most ? Int32.max : Int32(seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
    }
}
