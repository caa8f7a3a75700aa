// Real crashes: a program that uses a journal is killed during commands, undos, recovery and replays, and the state that is
// left must be consistent each time. Scripts/journal-crashes kills it more often.

import CompositeOperationsTestSupport
import Foundation
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

/// The program, which is built next to the tests.
final class JournalCrash: Sendable {
    private let process: pid_t
    private let output: Int32

    private init(process: pid_t, output: Int32) {
        self.process = process
        self.output = output
    }

    deinit { close(output) }

    static func start(_ arguments: [String]) throws -> JournalCrash {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(
            "JournalCrash"
        ).path
        try #require(
            FileManager.default.isExecutableFile(atPath: program),
            "it is built with: swift build --product JournalCrash")
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for number in [STDOUT_FILENO, STDERR_FILENO] {
            posix_spawn_file_actions_adddup2(&actions, ends[1], number)
        }
        let pointers = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process: pid_t = 0
        try #require(posix_spawn(&process, program, &actions, nil, pointers, environ) == 0)
        close(ends[1])
        return JournalCrash(process: process, output: ends[0])
    }

    /// Returns nil when the program has ended.
    func nextByte() -> UInt8? {
        var byte: UInt8 = 0
        return read(output, &byte, 1) == 1 ? byte : nil
    }

    func kill() {
        Glibc.kill(process, SIGKILL)
        _ = wait()
    }

    /// - Returns: the program's output and exit status.
    func wait() -> (String, Int32) {
        var bytes: [UInt8] = []
        while let byte = nextByte() { bytes.append(byte) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {}
        return (String(decoding: bytes, as: UTF8.self), status)
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct CrashTests {
    @Test(.promises("J14"))
    func
        `J14: killed at any point, nothing is lost, nothing is done twice, and what was begun is taken back`()
        throws
    {
        let seed = UInt64.random(in: 0...UInt64.max)
        let kills = max(8, Int(30 * stressScale))
        let (output, status) = try JournalCrash.start([
            "campaign", "--kills", "\(kills)", "--seed", "\(seed)",
        ])
        .wait()
        print(output, terminator: "")
        #expect(status == 0, "seed \(seed): \(output)")
        #expect(output.contains("\(kills) kills (seed \(seed))"))
    }
}
