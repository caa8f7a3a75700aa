// Campaign.swift - kills the program at chosen events, repeatedly, and inspects what is left each time.

import CommandJournal
import Foundation
import Glibc
import PropertyTesting

/// A number of kills, spread over the kinds of events.
struct Campaign {
    private let kills: Int
    private let seed: UInt64
    private var random: SplitMix64
    private var totals = Totals()

    /// The counts of a campaign.
    struct Totals {
        var runs = 0
        /// The kills, by the event that was aimed at.
        var aimed: [String: Int] = [:]
        /// The members whose run was open, by phase.
        var left: [JournalRecord.Phase: Int] = [:]
        var inRecovery = 0
        var inReplay = 0
        var ended: [JournalOutcome: Int] = [:]
        var inDoubt = 0
        var effects = 0
    }

    /// The events aimed at, in turn: during commands, during a recovery, during a replay.
    private static let targets = "w c u ( x C d U v W < a D X . V".split(separator: " ").map {
        UInt8($0.utf8.first!)
    }
    /// The kills per folder: a limit keeps the journal short.
    private static let killsPerFolder = 20

    private static func isOfRecovery(_ event: UInt8) -> Bool {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(event)
    }

    init(kills: Int, seed: UInt64) {
        self.kills = kills
        self.seed = seed
        random = SplitMix64(seed: seed)
    }

    /// - Throws: `Violation`, when an invariant does not hold.
    mutating func run() throws {
        var done = 0
        var attempts = 0
        while done < kills {
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("journal-crash-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            var inspection = Inspection(folder)
            var session = 0
            let goal = min(kills, done + Self.killsPerFolder)
            while done < goal {
                session += 1
                attempts += 1
                if attempts > 20 * kills + 200 { throw Violation("too few kills hit anything") }
                let target = Self.targets[attempts % Self.targets.count]
                let child = try Child(
                    folder, seed: random.next(), session: session, jobs: 10,
                    aim: Aim(
                        event: target, count: 1 + Int(random.next() % (Self.isOfRecovery(target) ? 2 : 4)),
                        pause: random.next() % 400_000)
                )
                let end = child.watch()
                guard let seen = end.seen else {
                    throw Violation("the program failed by itself: status \(end.status)")
                }
                totals.runs += 1
                let left = try inspection.look(wasRecovered: seen.contains(UInt8(ascii: ")")))
                guard end.wasKilled else { continue }
                done += 1
                totals.aimed[String(UnicodeScalar(target)), default: 0] += 1
                for phase in Set(left) { totals.left[phase, default: 0] += 1 }
                if seen.contains(UInt8(ascii: "(")), !seen.contains(UInt8(ascii: ")")) {
                    totals.inRecovery += 1
                }
                let replays = seen.filter { $0 == UInt8(ascii: "<") }.count
                if replays > seen.filter({ $0 == UInt8(ascii: ">") }).count { totals.inReplay += 1 }
            }
            // The last process runs to its end, undisturbed.
            let last = try Child(folder, seed: random.next(), session: session + 1, jobs: 5, aim: nil).watch()
            guard last.status == 0 else { throw Violation("the last run failed: status \(last.status)") }
            _ = try inspection.look(wasRecovered: true)
            try inspection.finish(into: &totals)
            try FileManager.default.removeItem(atPath: folder)
        }
        print(totals.line(kills: done, seed: seed))
        let missed = totals.missed
        if kills >= 300, !missed.isEmpty {
            throw Violation("no kill left anything \(missed.joined(separator: ", "))")
        }
    }
}

extension Campaign.Totals {
    private static let phases: [JournalRecord.Phase] = [.begun, .done, .failed, .undoing, .undone]

    var missed: [String] {
        Self.phases.filter { left[$0] == nil }.map { "\($0)" } + (inRecovery == 0 ? ["in a recovery"] : [])
            + (inReplay == 0 ? ["in a replay"] : [])
    }

    func line(kills: Int, seed: UInt64) -> String {
        let left = Self.phases.map { "\($0) \(self.left[$0] ?? 0)" }.joined(separator: ", ")
        let aimed = self.aimed.sorted { $0.key < $1.key }.map { "\($0.key)\($0.value)" }.joined(
            separator: " ")
        let ended = self.ended.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            "\($0.key.rawValue) \($0.value)"
        }
        .joined(separator: ", ")
        return
            "journal-crashes: \(kills) kills (seed \(seed)): open runs had members that were \(left); \(inRecovery) "
            + "in a recovery, \(inReplay) in a replay; aimed at \(aimed); runs: \(ended), in doubt \(inDoubt); "
            + "\(effects) effects: nothing lost, nothing twice"
    }
}

/// An invariant that does not hold.
struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// When to kill: `pause` nanoseconds after the event has occurred `count` times.
struct Aim {
    let event: UInt8
    let count: Int
    let pause: UInt64
}

/// A process of the program.
struct Child {
    struct End {
        let wasKilled: Bool
        let status: Int32
        /// The events; nil if the process failed.
        let seen: [UInt8]?
    }

    private let process: pid_t
    private let events: Int32
    private let aim: Aim?

    init(_ folder: String, seed: UInt64, session: Int, jobs: Int, aim: Aim?) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw Violation("there is no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let inherited: Int32 = 3
        if ends[1] == inherited {
            // The descriptor already has the right number: only its close-on-exec flag must be
            // cleared.
            _ = fcntl(ends[1], F_SETFD, 0)
        } else {
            posix_spawn_file_actions_adddup2(&actions, ends[1], inherited)
        }
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let words = [program, "work", folder, "\(inherited)", "\(seed)", "\(session)", "\(jobs)"]
        let pointers = words.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process: pid_t = 0
        guard posix_spawn(&process, program, &actions, nil, pointers, environ) == 0 else {
            throw Violation("the program cannot be started")
        }
        close(ends[1])
        self.process = process
        events = ends[0]
        self.aim = aim
    }

    /// Reads events until the process has to be killed, or ends.
    func watch() -> End {
        var seen: [UInt8] = []
        var isHit = false
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            // One event at a time until the aim is hit: the next event is what the process does
            // meanwhile.
            let count = read(events, &chunk, aim == nil || isHit ? chunk.count : 1)
            if count <= 0 { break }
            seen += chunk[..<count]
            if let aim, !isHit, seen.last == aim.event, seen.filter({ $0 == aim.event }).count == aim.count {
                isHit = true
                let end = DispatchTime.now().uptimeNanoseconds + aim.pause
                while DispatchTime.now().uptimeNanoseconds < end {}
                kill(process, SIGKILL)
            }
        }
        close(events)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {}
        let wasKilled = status & 0x7F == SIGKILL
        let isFine = wasKilled && isHit || status == 0
        return End(wasKilled: wasKilled, status: status, seen: isFine ? seen : nil)
    }
}
