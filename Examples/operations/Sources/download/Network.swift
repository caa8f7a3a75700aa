// Network.swift - servers with scripted answers, and clocks on which time passes at once.

import CompositeOperations
import Synchronization

struct ConnectionLost: Error, CustomStringConvertible {
    var description: String { "connection lost" }
}

/// A clock on which every sleep ends at once. So pauses and latencies are exact, and the program waits for none.
final class InstantClock: Clock {
    struct Instant: InstantProtocol {
        var offset = Duration.zero
        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let time = Mutex(Instant())
    var now: Instant { time.withLock { $0 } }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        time.withLock { $0 = max($0, deadline) }
    }
}

/// A file on a server that drops the connection a given number of times, or never answers.
final class RemoteFile: Sendable {
    let name: String
    let size: Int
    let clock = InstantClock()
    /// The events, as they happen.
    let notes: AsyncStream<String>
    private let notesToCome: AsyncStream<String>.Continuation
    private let losses: Int
    private let isSilent: Bool
    private let state = Mutex((requests: 0, history: [String]()))

    init(_ name: String, size: Int, losses: Int = 0, isSilent: Bool = false) {
        self.name = name
        self.size = size
        self.losses = losses
        self.isSilent = isSilent
        (notes, notesToCome) = AsyncStream.makeStream()
    }

    var history: [String] { state.withLock { $0.history } }

    func load() async throws -> Int {
        let request = state.withLock { state in
            state.requests += 1
            return state.requests
        }
        note("request \(request)")
        if isSilent {
            do { try await Task.sleep(for: .seconds(1_000_000)) } catch {
                note("given up")
                throw error
            }
        }
        try await clock.sleep(for: .milliseconds(200))
        guard request > losses else {
            note("lost")
            throw ConnectionLost()
        }
        note("\(size) bytes")
        return size
    }

    private func note(_ what: String) {
        let note = "\(Int(clock.now.offset / .milliseconds(1))) ms \(what)"
        state.withLock { $0.history.append(note) }
        notesToCome.yield(note)
    }
}
