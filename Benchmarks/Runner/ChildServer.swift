import AllocationCounter
import BenchmarkCore
import BenchmarkHarness
import Foundation
import Glibc

/// The child's side: serves one peer, one request after another, until its input ends.
struct ChildServer {
    private let peer: any Peer
    private let countsAllocations: Bool

    /// Creates the peer.
    ///
    /// - Parameter countsAllocations: whether answers report allocations; their times are not meaningful then.
    /// - Throws: any error of the peer's initialiser.
    init(_ type: any Peer.Type, threads: Int, countsAllocations: Bool) throws {
        self.countsAllocations = countsAllocations && allocation_counter_install()  // before any thread
        peer = try type.init(threads: threads)
    }

    /// Reads requests from standard input, and answers on the original standard output; returns when the input ends.
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

    /// Gives a pool that frees memory on a separate thread, or after a grace period, time to do so: 25 ms, and longer
    /// while it reports that memory is waiting to be reclaimed, at most 5 s.
    private func settle() {
        for _ in 0..<200 {
            poll(nil, 0, 25)
            if peer.isReclaimed { return }
        }
    }

    private func respond(to line: String) -> Response {
        do {
            let request = try JSONDecoder().decode(Request.self, from: Data(line.utf8))
            guard request.protocol == Request.currentProtocol else {
                return Response(
                    error:
                        "This program speaks version \(Request.currentProtocol) of the protocol, not \(request.protocol)."
                )
            }
            if request.list { return Response(workloads: list) }
            let findsLeftovers = countsAllocations && request.findsLeftovers
            if countsAllocations {
                // Allocations that are made once, and stay, do not belong to an operation.
                let least = workloads.first { $0.id == request.workload }?.quick.first ?? request.n
                _ = try peer.run(request.workload, n: findsLeftovers ? request.n : min(least, request.n))
                if findsLeftovers { settle() }
            }
            if countsAllocations { allocation_counter_start() }
            let before = Costs.now()
            var sample = try peer.run(request.workload, n: request.n)
            let costs = Costs.now().since(before)
            if findsLeftovers {
                sample.extra = [:]  // would remain allocated
                settle()
            }
            let allocated = countsAllocations ? allocation_counter_stop() : nil
            if let allocated, allocated.loops == 0 {
                throw BenchmarkError(
                    "\(request.workload) does not mark where its loop begins and ends, so its allocations cannot be counted."
                )
            }
            let left = try findsLeftovers ? allocated.map { try leftovers($0, request) } : nil
            return Response(
                sample: sample, costs: costs, allocations: allocated.map { Double($0.allocations) },
                allocatedBytes: allocated.map { Double($0.allocated) },
                bytesLeft: left)
        } catch {
            return Response(error: "\(error)")
        }
    }

    /// The workloads of the peer, each at its largest quick size. Workloads that measure a cost are excluded: it may
    /// be 0, and has no ratio then.
    private var list: [ListedWorkload] {
        let type = type(of: peer)
        return workloads.compactMap { workload in
            guard workload.id != "W0", workload.metric != .cost, type.notApplicable(workload.id) == nil,
                let n = workload.quick.last(where: { $0 <= type.largest(workload.id) ?? .max })
            else { return nil }
            return ListedWorkload(
                workload: workload.id, n: [n], metric: workload.metric == .latency ? .latency_p99 : .time)
        }
    }

    /// Returns the bytes that each run of a request leaves, after as many additional runs as are needed to decide.
    private func leftovers(_ first: allocation_counts, _ request: Request) throws -> Double {
        var leftovers = Leftovers()
        leftovers.add(Int(first.left))
        while leftovers.isOpen {
            allocation_counter_start()
            _ = try peer.run(request.workload, n: request.n)
            settle()
            leftovers.add(Int(allocation_counter_stop().left))
        }
        return Double(leftovers.ofEachRun)
    }
}
