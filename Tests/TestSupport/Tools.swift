// Tools.swift - helpers shared by the tests of several modules: sizes, limits, logs, counts, and polling.

package import Dispatch
import Glibc
import PropertyTesting
import Synchronization

/// Test sizes scale with the environment variable `STRESS_SCALE`.
package let stressScale: Double = getenv("STRESS_SCALE").flatMap { Double(String(cString: $0)) } ?? 1

package let isThreadSanitized = dlsym(nil, "__tsan_init") != nil
package let isAddressSanitized = dlsym(nil, "__asan_init") != nil
/// A sanitizer makes everything many times as slow.
package let isSanitized = isThreadSanitized || isAddressSanitized

/// How long a case of a test may take: many times what it takes on a busy machine.
package let testLimit: Duration = .seconds(240) * max(1, stressScale) * (isSanitized ? 2 : 1)

/// Ends this process with the status that `body` returns, after everything that `body` made is released: an optimised build
/// releases nothing before `exit`, and LeakSanitizer reports that.
package func exit(_ body: () async -> Int32) async -> Never { Glibc.exit(await body()) }

/// For code that blocks its thread: it must not take the threads that other tests need.
package let elsewhere = DispatchQueue(label: "elsewhere", attributes: .concurrent)

/// A log of events, in order.
package final class Log<Entry: Sendable>: Sendable {
    private let storage = Locked<[Entry]>([])
    package init() {}
    package var entries: [Entry] { storage.withLock { $0 } }
    package func add(_ entry: Entry) { storage.withLock { $0.append(entry) } }

    /// Returns the events since the last call.
    package func take() -> [Entry] {
        storage.withLock { entries in
            defer { entries = [] }
            return entries
        }
    }

    /// For entries that refer to the log: they are released outside the lock.
    package func removeAll() { withExtendedLifetime(take()) {} }
}

/// A count with an identity.
package final class Count: Sendable {
    private let storage = Atomic(0)
    package init() {}
    package var value: Int { storage.load(ordering: .sequentiallyConsistent) }

    @discardableResult
    package func add(_ amount: Int = 1) -> Int {
        storage.add(amount, ordering: .sequentiallyConsistent).newValue
    }
}

/// Counts its deallocation: captured by a closure, it shows that the closure was released.
package final class Token: Sendable {
    private let released: Count
    package init(_ released: Count) { self.released = released }
    deinit { released.add() }
}

/// The CPU time of the calling thread, in nanoseconds.
package func threadTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Waits until a condition holds that no event reports, such as what another thread is about to do.
package func eventually(
    within limit: Duration = testLimit * 0.75, isolation: isolated (any Actor)? = #isolation,
    _ condition: () throws -> Bool
) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    var looks = 0
    while try !condition() {
        if ContinuousClock.now > end { return false }
        // Usually the condition holds in a moment. A longer poll must not keep the processors from the work that it waits
        // for.
        looks += 1
        if looks < 50 { await Task.yield() } else { try? await Task.sleep(for: .microseconds(200)) }
    }
    return true
}
