import Dispatch

/// Occupies threads of a pool that cannot be suspended, so that later submissions have to wait.
final class Gate: Sendable {
    private let arrived = DispatchSemaphore(value: 0)
    private let opened = DispatchSemaphore(value: 0)

    /// Occupies `threads` threads; returns when each of them is occupied.
    func close(threads: Int, submit: (Occupation) -> Void) {
        for _ in 0..<threads { submit(Occupation(gate: self)) }
        for _ in 0..<threads { arrived.wait() }
    }

    func open(threads: Int) {
        for _ in 0..<threads { opened.signal() }
    }

    struct Occupation: Job {
        let gate: Gate

        func run() {
            gate.arrived.signal()
            gate.opened.wait()
        }
    }
}
