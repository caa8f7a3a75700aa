// A watchdog that fires ends the process, so each test of that is an exit test, which checks the status and the
// output.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Sleeps for longer than any test takes.
private func hang() { Gate().wait() }

/// The place where a body hangs. Used as the state of a scope, it delays the report until the body has reached
/// it: on a busy machine that takes longer than any limit a test would want.
private final class Depth: Sendable {
    private let reached = Gate()

    func hang() {
        reached.open()
        Gate().wait()
    }

    @Sendable func awaited() -> String {
        reached.wait()
        return ""
    }
}

/// Names the calling thread, for the kernel.
private func name(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY)
    defer { close(file) }
    write(file, name, name.utf8.count)
}

/// The size of the process's address space, in pages.
private func addressSpace() throws -> Int {
    let fields = try #require(contents(of: "/proc/self/statm")).split(separator: " ")
    return try #require(Int(fields[0]))
}

private let short = Duration.milliseconds(20)
private let long = Duration.seconds(600)

private func text(of result: ExitTest.Result?) throws -> String {
    String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
}

@Suite(.watched(.seconds(120))) struct WatchdogTests {
    @Test func `a hung scope ends the process, which reports what hung and how`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            setenv("WATCHDOG_SCALE", "1", 1)
            Watchdog.run("the dam", limit: short, state: { "three leaks" }) { hang() }
        }
        let text = try text(of: result)
        #expect(
            text.hasPrefix(
                "watchdog: 'the dam' has not ended within 0.02 seconds; the process exits with status 70.\n"),
            "\(text)")
        #expect(text.contains("\n  its state: three leaks\n"), "\(text)")
    }

    @Test func `the report locates each thread`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            let named = Gate()
            _ = concurrently(2) { thread in
                name("sleeper-\(thread)")
                if thread == 0 {
                    named.open()
                    hang()
                } else {
                    named.wait()
                    Watchdog.run("two threads", limit: short) { hang() }
                }
            }
        }
        let text = try text(of: result)
        for name in ["sleeper-0", "sleeper-1", "watchdog"] {
            #expect(text.contains(try Regex("(?m)^  thread [0-9]+ '\(name)' [RSD], ran ")), "\(text)")
        }
    }

    @Test func `the status can be chosen`() async {
        await #expect(processExitsWith: .exitCode(3)) {
            Watchdog.run("a scope", limit: short, status: 3) { hang() }
        }
    }

    @Test func `a task that is never resumed is a hang`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            await Watchdog.run("a task", limit: short) {
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            }
        }
        #expect(try text(of: result).hasPrefix("watchdog: 'a task' has not ended"))
    }

    @Test func `the outer scope fires when the inner has time, and reports it`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            let depth = Depth()
            Watchdog.run("outer", limit: short, state: depth.awaited) {
                Watchdog.run("ended", limit: long) {}
                Watchdog.run("inner", limit: long, state: { "in the depth" }) { depth.hang() }
            }
        }
        let text = try text(of: result)
        #expect(text.hasPrefix("watchdog: 'outer' has not ended"), "\(text)")
        let inside = try Regex("(?m)^  inside it, for [0-9.e-]+ seconds: inner: in the depth$")
        #expect(text.contains(inside), "\(text)")
        #expect(!text.contains("'ended'"), "\(text)")
    }

    @Test func `the inner scope fires when it expires first`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            Watchdog.run("outer", limit: long) { Watchdog.run("inner", limit: short) { hang() } }
        }
        let text = try text(of: result)
        #expect(text.hasPrefix("watchdog: 'inner' has not ended"), "\(text)")
        #expect(text.contains("\n  around it, for "), "\(text)")
    }

    @Test func `of many scopes at once only the hung one is reported`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            let depths = (0..<8).map { _ in Depth() }
            _ = concurrently(8) { thread in
                Watchdog.run(
                    "scope \(thread)", limit: thread == 5 ? short : long,
                    state: { depths.map { $0.awaited() }.joined() }
                ) { depths[thread].hang() }
            }
        }
        let text = try text(of: result)
        #expect(text.hasPrefix("watchdog: 'scope 5' has not ended"), "\(text)")
        let beside = text.split(separator: "\n").filter { $0.hasPrefix("  beside it, for ") }
        #expect(beside.count == 7, "\(text)")
    }

    @Test func `two watchdogs that fire at once write one report`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            _ = concurrently(4) { _ in Watchdog.run("a scope", limit: short) { hang() } }
        }
        let sentences = try text(of: result).split(separator: "\n").filter { $0.hasPrefix("watchdog: ") }
        #expect(sentences.count == 1, "\(sentences)")
    }

    /// A test that hangs in its own process would leave that process behind.
    @Test func `children of the process are killed`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            var (child, arguments) = (pid_t(), [strdup("sleep"), strdup("600"), nil])
            posix_spawn(&child, "/bin/sleep", nil, nil, &arguments, nil)
            Watchdog.run("a parent", limit: short) {
                waitpid(child, nil, 0)
                hang()
            }
        }
        let text = try text(of: result)
        let child = try #require(text.firstMatch(of: /child process (\d+), which is killed/)?.output.1)
        let identifier = try #require(pid_t(child))
        // The child belongs to another parent now, which may take its time to reap it.
        let stat = "/proc/\(identifier)/stat"
        while let text = contents(of: stat), !text.contains(") Z") { sched_yield() }
    }

    @Test func `a case of a property that hangs can be replayed`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            setenv("PROPERTY_SEED", "11", 1)
            let depth = Depth()
            await Watchdog.run("a test", limit: short, state: depth.awaited) {
                await forAll(.int(in: 0...1_000)) { value in if value > 900 { depth.hang() } }
            }
        }
        let text = try text(of: result)
        #expect(text.contains(": a property with PROPERTY_SEED=11\n"), "\(text)")
        let tape = try #require(text.firstMatch(of: /PROPERTY_REPLAY=([0-9a-z.]+)\n/)?.output.1)
        var source = Source(replaying: try #require(Tape(String(tape))))
        #expect(try Generator<Int>.int(in: 0...1_000).value(from: &source) > 900)
    }

    @Test func `a case that hangs while it is shrunk can be replayed`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            let depth = Depth()
            await Watchdog.run("a test", limit: short, state: depth.awaited) {
                _ = await check(.int(in: 500...1_000), options: PropertyOptions(seed: 1)) { value in
                    if value == 500 { depth.hang() }
                    return "fails"
                }
            }
        }
        #expect(try text(of: result).contains("PROPERTY_REPLAY=0\n"))
    }

    @Test func `a limit grows with WATCHDOG_SCALE`() async throws {
        let result = await #expect(processExitsWith: .exitCode(70), observing: [\.standardErrorContent]) {
            setenv("WATCHDOG_SCALE", "2.5", 1)
            Watchdog.run("a scope", limit: short) { hang() }
        }
        #expect(try text(of: result).contains("within 0.05 seconds"))
    }

    @Test func `a scale of zero switches the watchdogs off`() async {
        await #expect(processExitsWith: .exitCode(9)) {
            setenv("WATCHDOG_SCALE", "0", 1)
            let isOver = Watchdog.run("a scope", limit: short) { !Gate().wait(timeout: short * 20) }
            exit(isOver ? 9 : 1)
        }
    }

    @Test(arguments: ["x", "-1", "inf"])
    func `a bad scale stops the process`(scale: String) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [scale] in
            setenv("WATCHDOG_SCALE", scale, 1)
            Watchdog.run("a scope", limit: short) {}
        }
        #expect(try text(of: result).contains("WATCHDOG_SCALE must be a non-negative number"))
    }

    struct Failed: Error, Equatable {}

    @Test func `a scope returns its body's result`() async throws {
        #expect(Watchdog.run("a scope", limit: long) { 3 } == 3)
        #expect(await Watchdog.run("a scope", limit: long) { () async in 3 } == 3)
        #expect(Watchdog.noting({ "a note" }) { 3 } == 3)
        #expect(throws: Failed()) { try Watchdog.run("a scope", limit: long) { throw Failed() } }
        await #expect(throws: Failed()) {
            try await Watchdog.run("a scope", limit: long) { () async throws(Failed) in throw Failed() }
        }
    }

    /// In its own process, so that every thread is accounted for.
    @Test func `scopes that end in time do not fire, and leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            func use() {
                Watchdog.run("outer", limit: long) {
                    Watchdog.run("inner", limit: long) {}
                    _ = concurrently(4) { thread in Watchdog.run("scope \(thread)", limit: long) {} }
                }
            }
            use()
            let pages = try addressSpace()
            for _ in 0..<100 { use() }
            // A thread that is not joined keeps the address space of its stack: these 600 would keep a
            // gibibyte.
            try #require((try addressSpace() - pages) * Int(sysconf(Int32(_SC_PAGESIZE))) < 200 << 20)
            try #require(WatchedScope.current.isEmpty)
            var threads: [String] { names(in: "/proc/self/task") ?? [] }
            while threads.contains(where: { contents(of: "/proc/self/task/\($0)/comm") == "watchdog" }) {
                sched_yield()
            }
        }
    }

    @Test func `a gate reports if it was opened in time`() {
        let gate = Gate()
        #expect(!gate.wait(timeout: .milliseconds(5)))
        #expect(!gate.wait(timeout: .zero))
        gate.open()
        #expect(gate.wait(timeout: .zero))
        #expect(gate.wait(timeout: .seconds(Int64.max)))
    }
}

/// The test of the trait: every test of a suite, including those of nested suites, runs in a scope with its
/// name.
@Suite(.watched(long)) struct WatchedSuiteTests {
    private static func isWatched(by suffix: String) -> Bool {
        Watchdog.innermost?.what.contains(suffix) ?? false
    }

    @Test func `a test is watched`() {
        #expect(Self.isWatched(by: "WatchedSuiteTests/`a test is watched`()"))
        #expect(Watchdog.innermost?.outer == nil)
    }

    @Test(arguments: [1, 2]) func `each case is watched`(number: Int) async {
        #expect(Self.isWatched(by: "`each case is watched`(number:)"))
        #expect(Self.isWatched(by: " with \(number)"))
        await Task { #expect(Watchdog.innermost != nil, "a task inside belongs to it") }.value
    }

    @Test(.watched(long * 2)) func `the nearest limit is the one that applies`() {
        #expect(Watchdog.innermost != nil && Watchdog.innermost?.outer == nil)
    }

    @Suite struct Inner {
        @Test func `a test of a suite inside is watched`() {
            #expect(WatchedSuiteTests.isWatched(by: "Inner/`a test of a suite inside is watched`()"))
        }
    }
}

@Suite struct UnwatchedTests {
    @Test func `a test elsewhere is not watched`() { #expect(Watchdog.innermost == nil) }
}
