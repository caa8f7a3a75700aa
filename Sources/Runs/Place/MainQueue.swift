// MainQueue.swift - the main dispatch queue, served by the main thread while it waits for an outcome.
//
// libdispatch lets the owner of the main thread's loop serve the main queue: a descriptor becomes readable when there is
// work, and a function performs it. Foundation's run loop is built on these two; so is this file, without Foundation.
//
// Invariants:
//   I1  only the main thread serves, and only between items: inside an item, libdispatch's function does nothing. There is no
//       API to find out whether the caller is inside an item, so a probe item is enqueued: it runs only if the caller is not
//       inside one.
//   I2  a wake-up persists until the waiter has seen it: as a count in the descriptor `wakeUp`, and, for a pump, as an item
//       that is enqueued again until the waiter has checked (``MainQueueSleeper/isUnseen``). So a nested pump that consumes a
//       wake-up does not lose it.
//
// Source: swift-corelibs-libdispatch, private/private.h; swift-corelibs-foundation, CFRunLoop.c, for how they are used.

internal import Dispatch
internal import Glibc
internal import Synchronization

/// The waiting thread, which serves the main queue in the meantime.
package protocol MainQueueSleeper: AnyObject, Sendable {
    /// Whether something has happened since the waiter last checked.
    var isUnseen: Bool { get }
}

/// The main queue and its thread.
package enum MainQueue {
    /// Serves the main queue, among other sources, on the main thread, until something was served or the timeout expires; a
    /// nil timeout never expires. Returns false if it cannot serve anything.
    package typealias Pump = @Sendable (_ timeout: Duration?) -> Bool

    private static let pump = Guarded<Pump?>(nil)
    private static let hasPump = Atomic(false)

    /// Installs a pump, which is then used in place of serving only the main queue.
    package static func install(_ pump: @escaping Pump) {
        self.pump.withLock { $0 = pump }
        hasPump.store(true, ordering: .releasing)
    }

    /// libdispatch's access to the main queue, and the wake-up of the thread that polls it.
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

    /// Whether the caller is, or could be, on the main actor: on the main thread, or inside an item of the main queue, which
    /// other threads run once the main thread has exited.
    package static var isCurrent: Bool { isMainThread || DispatchQueue.main.isCurrent }

    /// The main thread is the first thread of the process, and has its ID.
    private static var isMainThread: Bool { threadNumber?() == getpid() }

    // Looked up by name, since `gettid` is newer than Swift's module of the C library.
    private static let threadNumber = function("gettid", as: (@convention(c) @Sendable () -> pid_t).self)

    private static func function<Function>(_ name: String, as type: Function.Type) -> Function? {
        dlsym(nil, name).map { unsafeBitCast($0, to: type) }
    }

    /// Whether a thread that is about to wait can serve the main queue during the wait.
    package enum Service {
        /// The thread is neither the main thread nor inside an item of the main queue.
        case isNotOurs
        case isServed
        /// The main queue is stalled during the wait.
        case standsStill(why: String)
    }

    /// Finds out whether the calling thread can serve the main queue, and if so, serves its current items.
    package static func service() -> Service {
        guard isMainThread else {
            // Once the main thread has exited, in `dispatchMain()`, other threads run the items.
            if Diagnostics.areHeard, DispatchQueue.main.isCurrent {
                return .standsStill(why: "the wait is inside one of its items")
            }
            return .isNotOurs
        }
        guard let access else { return .standsStill(why: "libdispatch does not let the thread serve it") }
        let probe = Probe()
        DispatchQueue.main.async { probe.isServed.store(true, ordering: .relaxed) }
        access.serve(nil)
        return probe.isServed.load(ordering: .relaxed)
            ? .isServed : .standsStill(why: "the wait is inside one of its items")
    }

    private final class Probe: Sendable {
        let isServed = Atomic(false)
    }

    /// Serves once, on the main thread: returns when something was served, on a wake-up, or at the deadline.
    ///
    /// - Returns: false if the deadline has passed.
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
        if count <= 0 { return true }  // interrupted or expired: the next call checks the deadline
        if descriptors[1].revents != 0 { drain(access.wakeUp) }
        if descriptors[0].revents != 0 {
            // Drained first, so that an item that arrives while items run makes the descriptor readable again. If an item's
            // own run loop drains the descriptor, libdispatch signals it once more at the end.
            drain(access.readable)
            access.serve(nil)
        }
        return true
    }

    /// Wakes a waiter that is serving, or is about to. Callable from any thread.
    package static func wake(_ waiter: some MainQueueSleeper) {
        guard let access else { return }
        var one: UInt64 = 1
        _ = write(access.wakeUp, &one, MemoryLayout.size(ofValue: one))
        if hasPump.load(ordering: .acquiring) { post(waiter) }
    }

    private static func post(_ waiter: some MainQueueSleeper) {
        DispatchQueue.main.async { postAgain(waiter) }
    }

    /// The pump returns after it has run this item, so that the waiter checks. A nested pump may have run the item instead,
    /// so it is enqueued again until the waiter has checked.
    private static func postAgain(_ waiter: some MainQueueSleeper) {
        guard waiter.isUnseen else { return }
        DispatchQueue.main.asyncAfter(deadline: .now() + .milliseconds(1)) { postAgain(waiter) }
    }

    private static func drain(_ event: Int32) {
        var count: UInt64 = 0
        _ = read(event, &count, MemoryLayout.size(ofValue: count))
    }

    /// A timeout for `poll`, rounded up so that it does not return too early; -1 for no timeout.
    private static func milliseconds(_ duration: Duration?) -> Int32 {
        guard let (seconds, attoseconds) = duration?.components else { return -1 }
        let most = Int64(Int32.max) / 1000 - 1
        return seconds > most ? Int32.max : Int32(seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
    }
}
