// Inspection.swift - the switch, and the dump on a signal.

internal import CInspection
internal import CompositeOperationsBasics
public import Glibc
internal import Synchronization

/// Shows what is alive in the process: trees of operations, queues, invokers, open transactions, actions, schedulers.
///
/// ```swift
/// Inspection.start()  // or COOPERATIONS_INSPECT=1 in the environment
/// …
/// print(Inspection.dump())
/// ```
///
/// While inspection is off, anything that begins only checks one word, and nothing is registered.
public enum Inspection {
    /// Registers what begins from now on: root operations when they are started, queues, invokers and actions when they are
    /// created, transactions when they are opened, waits when they begin. Registration keeps nothing alive.
    public static func start() { Inspectables.start() }

    /// Stops registering, and forgets what has been registered.
    public static func stop() { Inspectables.stop() }

    /// Whether inspection is on.
    public static var isOn: Bool { Inspectables.areKept }

    /// Everything that is alive now. The program keeps running meanwhile: each object is shown as it was when it was inspected.
    ///
    /// May be called from any thread, including in blocks and handlers, but not while holding a lock that one of your `deinit`s
    /// takes: inspected objects are retained meanwhile, so their last references may be released here.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of operations shown in trees; likewise of queues with their tickets, of invokers with their
    ///     commands, of transactions, and of actions with their executions. The dump counts what it leaves out.
    ///   - stacks: whether the stacks of workers that are in a body are read, by a signal that may end a system call in which a
    ///     worker sleeps; see ``ThreadStack``.
    /// - Complexity: O(`limit`), however much is alive; while the recorder is on, also O(events of its thread) for each worker that
    ///   is in a body.
    /// - Precondition: `limit` is greater than 0.
    public static func dump(limit: Int = 10_000, stacks: Bool = false) -> Dump {
        if limit < 1 { fatalError("Inspection.dump: the limit is \(limit), and must be at least 1") }
        return Dump(limit: min(limit, 100_000_000), stacks: stacks)
    }

    // MARK: Signals

    private static let receiver = Atomic<Unmanaged<Receiver>?>(nil)

    private final class Receiver: Sendable {
        let limit: Int
        let stacks: Bool
        let body: @Sendable (Dump) -> Void

        init(_ limit: Int, _ stacks: Bool, _ body: @escaping @Sendable (Dump) -> Void) {
            self.limit = limit
            self.stacks = stacks
            self.body = body
        }
    }

    /// Starts inspection, and writes a dump as text to a file whenever a signal arrives. The signal's handler only wakes a thread,
    /// which makes the dump. The thread and the handler remain from now on.
    ///
    /// - Parameters:
    ///   - signal: the signal; its former handler is replaced.
    ///   - descriptor: the file's descriptor.
    /// - Returns: false, with no effect, if this has been called before or the system refuses it.
    @discardableResult
    public static func dumpOnSignal(
        _ signal: Int32 = SIGUSR2, limit: Int = 10_000, stacks: Bool = false,
        to descriptor: Int32 = STDERR_FILENO
    ) -> Bool {
        dumpOnSignal(signal, limit: limit, stacks: stacks) { dump in
            write(dump.description + "\n", to: descriptor)
        }
    }

    /// Likewise, but passes the dumps to `body`, one after another, on that thread.
    @discardableResult
    public static func dumpOnSignal(
        _ signal: Int32 = SIGUSR2, limit: Int = 10_000, stacks: Bool = false,
        _ body: @escaping @Sendable (Dump) -> Void
    ) -> Bool {
        if limit < 1 { fatalError("Inspection.dumpOnSignal: the limit is \(limit), and must be at least 1") }
        let new = Unmanaged.passRetained(Receiver(limit, stacks, body))
        let isFirst = receiver.compareExchange(
            expected: nil, desired: new, ordering: .acquiringAndReleasing
        ).exchanged
        guard isFirst else {
            new.release()
            return false
        }
        // The receiver lives as long as the process.
        guard inspection_on_signal(signal, { Inspection.signalHasArrived() }) == 0 else {
            receiver.store(nil, ordering: .releasing)
            new.release()
            return false
        }
        start()
        return true
    }

    private static func signalHasArrived() {
        guard let receiver = receiver.load(ordering: .acquiring)?.takeUnretainedValue() else { return }
        receiver.body(dump(limit: receiver.limit, stacks: receiver.stacks))
    }

    private static func write(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN {
                    var writable = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&writable, 1, -1)
                    continue
                }
                if count <= 0 { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }
}
