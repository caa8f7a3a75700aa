import AllocationCounter
import BenchmarkCore
import BenchmarkHarness
import Foundation
import Glibc

/// The child's side: serves one peer, one request after the other, until its input ends.
struct ChildServer {
    private let peer: any Peer
    private let countsAllocations: Bool

    /// Creates the peer.
    ///
    /// - Parameter countsAllocations: whether answers tell allocations; their times are not to be used then.
    /// - Throws: what the peer's initialiser throws.
    init(_ type: any Peer.Type, threads: Int, countsAllocations: Bool) throws {
        self.countsAllocations = countsAllocations && allocation_counter_install()  // before any thread
        peer = try type.init(threads: threads)
    }

    /// Reads requests from standard input and answers on what was standard output; returns when the input
    /// ends.
    func run() {
        // A peer that prints must not garble the answers: standard output becomes standard error.
        let answers = dup(STDOUT_FILENO)
        dup2(STDERR_FILENO, STDOUT_FILENO)
        while let line = readLine() {
            var answer = (try? JSONEncoder().encode(respond(to: line))) ?? Data()
            answer.append(UInt8(ascii: "\n"))
            answer.withUnsafeBytes { bytes in
                var sent = 0
                while sent < bytes.count {
                    let count = write(answers, bytes.baseAddress! + sent, bytes.count - sent)
                    if count <= 0 { exit(1) }  // the coordinator is gone
                    sent += count
                }
            }
        }
        peer.shutdown()
    }

    private func respond(to line: String) -> Response {
        do {
            let request = try JSONDecoder().decode(Request.self, from: Data(line.utf8))
            if countsAllocations { allocation_counter_start() }
            let before = Costs.now()
            let sample = try peer.run(request.workload, n: request.n)
            let costs = Costs.now().since(before)
            let allocated = countsAllocations ? allocation_counter_stop() : nil
            return Response(
                sample: sample, costs: costs, allocations: allocated.map { Double($0.allocations) },
                allocatedBytes: allocated.map { Double($0.bytes) })
        } catch {
            return Response(error: "\(error)")
        }
    }
}
