public import CExplorer
import Glibc
import PropertyTesting
public import Testing

/// Runs a C program under every schedule of its threads within bounds, in a weak memory model. Records an issue when a
/// schedule fails, with the message, the steps of the schedule in a column for each thread, and the way to replay it.
///
/// The program must be compiled so that the explorer sees its memory accesses: see docs/exploration-c.md.
///
/// There is one explorer per process, and its threads are fibres of the calling thread, so explorations run one at a
/// time, and the call blocks. A fault (a signal) in the program is a fault of the test process; `explorer_main` turns
/// such a fault into a failure.
///
/// - Parameters:
///   - preemptions: The maximum number of preemptions in a schedule: switches away from a thread that could continue.
///   - staleLoads: The maximum number of loads that see an older value, and of weak operations that fail spuriously,
///     in a schedule.
///   - random: The number of additional random schedules, by PCT.
///   - limit: The maximum number of schedules; nil: all within the bounds.
///   - replay: The only schedule to run, for example "t2@13", from an issue.
/// - Returns: The number of schedules that ran, and whether they were all within the bounds.
/// - Complexity: Exponential in the bounds. About 10,000 to 200,000 short schedules per second.
@discardableResult
public func exploreThreads(
    _ program: explorer_program, preemptions: Int = 2, staleLoads: Int = 1, random: Int = 0,
    limit: Int? = 1_000_000, replay: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
) -> ThreadSchedules {
    precondition(preemptions >= 0 && staleLoads >= 0 && random >= 0, "The bounds must not be negative.")
    precondition(limit.map { $0 > 0 } ?? true, "A limit of \(limit ?? 0) schedules explores nothing.")
    var options = explorer_options_default()
    options.bound = UInt32(clamping: preemptions)
    options.stale_bound = UInt32(clamping: staleLoads)
    options.executions_most = UInt64(limit ?? 0)
    if let replay {
        guard explorer_schedule_read(&options.schedule, replay) else {
            Issue.record(
                "'\(replay)' is not a schedule, which looks like \"t2@13,r1@20\", or \"-\".",
                sourceLocation: sourceLocation)
            return ThreadSchedules(count: 0, areAll: false)
        }
        guard options.schedule.frozen == 0 || program.check_frozen != nil else {
            Issue.record(
                "\(program.testDescription) has no check_frozen: it does not claim that it goes on without a thread.",
                sourceLocation: sourceLocation)
            return ThreadSchedules(count: 0, areAll: false)
        }
        options.strategy = EXPLORER_REPLAY
    }
    return exploring.withLock { _ in
        let exploration = Exploration(program: program, options: options)
        let (schedules, failure) = exploration.run(random: replay == nil ? random : 0)
        if let failure { Issue.record("\(failure)", sourceLocation: sourceLocation) }
        return schedules
    }
}

/// The schedules that an exploration has run.
public struct ThreadSchedules: Sendable, CustomStringConvertible {
    /// The number of schedules, including the random ones.
    public let count: Int
    /// Whether every schedule within the bounds was run.
    public let areAll: Bool

    /// "all 1381 schedules", "1381 schedules".
    public var description: String { (areAll ? "all " : "") + counted(count, "schedule") }
}

/// Shows a test's argument by the name of the program.
extension explorer_program: @retroactive CustomTestStringConvertible {
    /// Its name.
    public var testDescription: String { name.map { String(cString: $0) } ?? "a program without a name" }
}

private func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

// An unused number: ThreadSanitizer takes an access to a zero-size value for an access to the memory at its address.
private let exploring = Locked(0)

private struct Exploration {
    var program: explorer_program
    var options: explorer_options

    func run(random: Int) -> (ThreadSchedules, failure: String?) {
        let all = search(options, explorer_run)
        var last = all
        var count = all.executions
        if !last.failed, random > 0 {
            var randomly = options
            randomly.strategy = EXPLORER_PCT
            randomly.executions_most = UInt64(random)
            randomly.seed = 1
            last = search(randomly, explorer_run)
            count += last.executions
        }
        if !last.failed, program.check_frozen != nil, options.strategy == EXPLORER_EXHAUSTIVE {
            var frozen = options
            frozen.bound = program.frozen_bound
            frozen.stale_bound = 0
            last = search(frozen, explorer_run_frozen)
            count += last.executions
        }
        return (
            ThreadSchedules(count: Int(clamping: count), areAll: all.complete && !last.failed),
            last.failed ? told(last) : nil
        )
    }

    private func search(
        _ options: explorer_options,
        _ search: (UnsafePointer<explorer_program>?, UnsafePointer<explorer_options>?) -> explorer_result
    ) -> explorer_result {
        withUnsafePointer(to: program) { program in
            withUnsafePointer(to: options) { options in
                var result = search(program, options)
                if result.failed, options.pointee.strategy != EXPLORER_REPLAY {
                    explorer_simplify(program, options, &result)
                }
                return result
            }
        }
    }

    private func told(_ failure: explorer_result) -> String {
        let message = withUnsafeBytes(of: failure.message) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        let schedule = text(of: failure.schedule)
        return """
            \(message)
            schedule with \(counted(Int(failure.schedule.count), "departure")):
            \(steps(of: failure.schedule))replay with exploreThreads(…, replay: "\(schedule)")
            """
    }

    private func text(of schedule: explorer_schedule) -> String {
        withUnsafePointer(to: schedule) { schedule in
            let length = Int(explorer_schedule_write(schedule, nil, 0))
            return String(unsafeUninitializedCapacity: length + 1) { buffer in
                buffer.withMemoryRebound(to: CChar.self) { buffer in
                    Int(explorer_schedule_write(schedule, buffer.baseAddress, buffer.count))
                }
            }
        }
    }

    /// The steps, one per line.
    private func steps(of schedule: explorer_schedule) -> String {
        var bytes: UnsafeMutablePointer<CChar>?
        var size = 0
        guard let file = open_memstream(&bytes, &size) else { return "" }
        var replay = options
        replay.strategy = EXPLORER_REPLAY
        replay.schedule = schedule
        withUnsafePointer(to: program) { explorer_print(file, $0, &replay, &replay.schedule) }
        fclose(file)
        defer { free(bytes) }
        let text = String(decoding: UnsafeRawBufferPointer(start: bytes, count: size), as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let shown = 400
        guard lines.count > shown else { return text }
        return "\(lines.count - shown) steps, and then:\n" + lines.suffix(shown).joined(separator: "\n")
    }
}
