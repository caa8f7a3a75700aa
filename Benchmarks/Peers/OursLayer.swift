import BenchmarkCore
import CompositeOperations
import Scheduling
import Synchronization

/// The workloads of operations, cascades and groups, on the built-in scheduler, as a user writes them.
struct OursLayer {
    /// Whether the layer runs a workload; in all others, ours is the bare scheduler.
    static func runs(_ workload: String) -> Bool {
        switch workload {
        case "W5", "W5-range", "W6-cascade", "W6-serial", "W6-small", "W7", "W8-declared", "W10": true
        default: ["W14-", "W15-", "W20-"].contains { workload.hasPrefix($0) }
        }
    }

    /// - Parameter threads: the number of workers for the built-in scheduler.
    init(threads: Int) throws { try Scheduler.shared.setWorkers(threads) }

    func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W5": group(count: n)
        case "W5-range": groupOfRange(count: n)
        case "W6-cascade": cascade(steps: n)
        case "W6-serial": cascadeWithoutValues(steps: n)
        case "W6-small": smallCascades(count: n)
        case "W7": stages(width: n)
        case "W8-declared": declaredGraph(workload, n: n)
        case "W10": skynet(leaves: n)
        case "W14-0", "W14-1", "W14-50": cancellation(count: n, begun: Workload.started(workload, of: n))
        case "W15-suspend": resumption(count: n)
        case "W15-rerun": rerun(runs: n)
        case "W15-rebuild": rebuild(runs: n)
        case "W20-leaf": pendingLeaves(count: n)
        case "W20-child": pendingChildren(count: n)
        case "W20-composite": pendingComposites(count: n)
        case "W20-queued": queuedLeaves(count: n)
        default: throw PeerError("The layer has no workload '\(workload)'.")
        }
    }

    // MARK: Groups and sequences

    private func group(count: Int) -> Sample {
        let slots = Slots(count: count)
        let end = ChainEnd()
        let start = startClock()
        transactionalOperation { group in
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.operation { mark.run() }
            }
        } completion: {
            end.reach(0)
        }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    private func groupOfRange(count: Int) -> Sample {
        let slots = Slots(count: count)
        let end = ChainEnd()
        let marks = Unowned(slots)
        let start = startClock()
        transactionalOperation { group in
            group.operations(0..<count) { index in Mark(slots: marks.object, index: index).run() }
        } completion: {
            end.reach(0)
        }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    private func smallCascades(count: Int) -> Sample {
        let slots = Slots(count: count * Workload.stepsOfSmallOne)
        let ended = Countdown(count)
        let (marks, end) = (Unowned(slots), Unowned(ended))
        let start = startClock()
        operation {
            for number in 0..<count {
                cascadeOperation { cascade in
                    for step in 0..<Workload.stepsOfSmallOne {
                        let step = SmallStep(slots: marks.object, number: number, step: step)
                        cascade.operation { step.run() }
                    }
                } completion: {
                    end.leave()
                }
            }
        }
        ended.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    private func cascade(steps: Int) -> Sample {
        let end = ChainEnd()
        let start = startClock()
        cascadeOperation { cascade in
            var last = cascade.operation { Workload.mark(0) }
            for step in 1..<max(1, steps) {
                last = cascade.operation(using: last) { $0 &+ Workload.mark(step) }
            }
            return .value(of: last)
        }
        .onOutcome { outcome in end.reach(Self.value(of: outcome)) }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: steps, checksum: end.value)
    }

    private func cascadeWithoutValues(steps: Int) -> Sample {
        let end = ChainEnd()
        let state = Slots(count: 2)
        let start = startClock()
        cascadeOperation { cascade in
            for step in 0..<steps {
                let job = SerialStep(state: state, step: step, steps: steps, end: nil)
                cascade.operation { job.run() }
            }
        } completion: {
            end.reach(state.address(of: 1).pointee)
        }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: steps, checksum: end.value)
    }

    private func stages(width: Int) -> Sample {
        let count = Workload.stages(ofWidth: width)
        let slots = Slots(count: count * width)
        let end = ChainEnd()
        let start = startClock()
        cascadeOperation { cascade in
            for stage in 0..<count {
                cascade.transactionalOperation { group in
                    for index in 0..<width {
                        let mark = StageMark(slots: slots, width: width, stage: stage, index: index)
                        group.operation { mark.run() }
                    }
                }
            }
        } completion: {
            end.reach(0)
        }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count * width, checksum: slots.checksum)
    }

    private func declaredGraph(_ workload: String, n: Int) -> Sample {
        let run = GraphRun(workload, n: n)
        let ended = Countdown(run.count)
        let end = Unowned(ended)
        let start = startClock()
        var operations: [COOperation<Void>] = []
        operations.reserveCapacity(run.count)
        for (node, others) in run.graph.predecessors.enumerated() {
            let work = NodeWork(nodes: run, node: node)
            let operation = COOperation<Void> { attempt in
                work.run()
                attempt.finish()
                end.leave()
            }
            for other in others { operation.addDependency(operations[other]) }
            operations.append(operation)
        }
        for operation in operations { operation.start() }
        ended.wait()
        let stop = stopClock()
        return run.sample(from: start, to: stop)
    }

    private func skynet(leaves: Int) -> Sample {
        let end = ChainEnd()
        let start = startClock()
        cascadeOperation { cascade in .value(of: Self.sum(of: leaves, from: 0, in: cascade)) }
            .onOutcome { outcome in end.reach(Self.value(of: outcome)) }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: leaves, checksum: end.value)
    }

    /// The steps of a node: its branches, and their sum.
    private static func sum(of leaves: Int, from first: Int, in cascade: CascadeScope) -> COOperation<UInt64>
    {
        let part = leaves / 10
        let branches = cascade.transactionalOperation { group in
            if part <= 1 {
                return .values(of: (first..<first + 10).map { leaf in group.operation { UInt64(leaf) } })
            }
            return .values(
                of: (0..<10).map { branch in
                    group.cascadeOperation { .value(of: sum(of: part, from: first + branch * part, in: $0)) }
                })
        }
        return cascade.operation(using: branches) { $0.reduce(0, &+) }
    }

    /// The value of an outcome; 0, which makes the result wrong, if there is none.
    private static func value(of outcome: Outcome<UInt64>) -> UInt64 {
        if case .finished(let value) = outcome { value } else { 0 }
    }

    // MARK: Cancel, suspend, redo

    private func cancellation(count: Int, begun: Int) -> Sample {
        let slots = Slots(count: count)
        let end = ChainEnd()
        let registered = Countdown(1 + begun)
        let begin = Unowned(registered)
        // Operations that begin never complete, so the width lets exactly `begun` of them begin. If that
        // is 0, a closed gate keeps all of them from beginning.
        let options = begun > 0 ? OperationOptions(width: begun) : .standard
        let transaction = transactionalOperation(options: options) { group in
            if begun == 0 { group.suspend() }
            for index in 0..<count {
                let mark = Mark(slots: slots, index: index)
                group.operation { _ in  // asynchronous, and never completes
                    mark.run()
                    begin.leave()
                }
            }
            begin.leave()
        }
        transaction.onOutcome { _ in end.reach(0) }
        registered.wait()
        let start = startClock()
        transaction.cancel()
        let cancelled = now_ns()
        end.wait()
        let stop = stopClock()
        withExtendedLifetime(registered) {}
        return storm(from: start, cancelled: cancelled, to: stop, slots, begun: begun)
    }

    private func resumption(count: Int) -> Sample {
        let slots = Slots(count: count)
        let end = ChainEnd()
        let transaction = Self.suspendedGroup(slots, end)
        let start = startClock()
        transaction.resume()
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    /// A group behind a closed gate; all of its operations are registered when this returns.
    private static func suspendedGroup(_ slots: Slots, _ end: ChainEnd) -> COTransaction<Void> {
        let registered = Countdown(1)
        let transaction = transactionalOperation { group in
            group.suspend()
            for index in 0..<slots.count {
                let mark = Mark(slots: slots, index: index)
                group.operation { mark.run() }
            }
            registered.leave()
        } completion: {
            end.reach(0)
        }
        registered.wait()
        return transaction
    }

    private func rerun(runs: Int) -> Sample {
        let steps = Workload.stepsOfOneRun
        let state = Slots(count: 2)
        let end = ChainEnd()
        let start = startClock()
        cascadeOperation { cascade in
            let run = cascade.control.attempt - 1
            for step in 0..<steps - 1 {
                let job = SerialStep(state: state, step: run * steps + step, steps: .max, end: nil)
                cascade.operation { job.run() }
            }
            let job = SerialStep(state: state, step: run * steps + steps - 1, steps: .max, end: nil)
            cascade.operation { attempt in
                job.run()
                if run + 1 < runs { attempt.cancel() } else { attempt.finish() }
            }
        } completion: {
            end.reach(state.address(of: 1).pointee)
        } cancellation: { cascade in
            cascade.rerun()
        }
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: runs, checksum: end.value)
    }

    private func rebuild(runs: Int) -> Sample {
        let state = Slots(count: 2)
        let end = ChainEnd()
        let start = startClock()
        Self.build(run: 0, of: runs, state, end)
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: runs, checksum: end.value)
    }

    private static func build(run: Int, of runs: Int, _ state: Slots, _ end: ChainEnd) {
        let steps = Workload.stepsOfOneRun
        cascadeOperation { cascade in
            for step in 0..<steps {
                let job = SerialStep(state: state, step: run * steps + step, steps: .max, end: nil)
                cascade.operation { job.run() }
            }
        } completion: {
            if run + 1 < runs {
                build(run: run + 1, of: runs, state, end)
            } else {
                end.reach(state.address(of: 1).pointee)
            }
        }
    }

    // MARK: Memory

    private func pendingLeaves(count: Int) -> Sample {
        pending(count: count) { mark, ended in
            operation {
                mark.run()
                ended.leave()
            }
        }
    }

    private func pendingComposites(count: Int) -> Sample {
        pending(count: count) { mark, ended in
            transactionalOperation { _ in
                mark.run()
                ended.leave()
            }
        }
    }

    private func queuedLeaves(count: Int) -> Sample {
        let queue = COOperationQueue(runningLimit: Scheduler.shared.workers)
        queue.suspend()
        return pending(count: count, resume: { queue.resume() }) { mark, ended in
            operation(on: queue) {
                mark.run()
                ended.leave()
            }
        }
    }

    /// - Parameter resume: releases the queued operations; nil: they are queued in the built-in scheduler.
    private func pending(
        count: Int, resume: (() -> Void)? = nil, _ start: (Mark, Unowned<Countdown>) -> Void
    ) -> Sample {
        let slots = Slots(count: count)
        let ended = Countdown(count)
        if resume == nil { Scheduler.shared.suspend() }
        var memory = LiveBytes()
        let began = startClock()
        for index in 0..<count { start(Mark(slots: slots, index: index), Unowned(ended)) }
        memory.notePending()
        if let resume { resume() } else { Scheduler.shared.resume() }
        ended.wait()
        let stop = stopClock()
        memory.noteDrained()
        return memory.sample(from: began, to: stop, operations: count, checksum: slots.checksum)
    }

    private func pendingChildren(count: Int) -> Sample {
        let slots = Slots(count: count)
        let end = ChainEnd()
        var memory = LiveBytes()
        let start = startClock()
        resumeSuspendedGroup(slots, end, &memory)
        let stop = stopClock()
        memory.noteDrained()
        return memory.sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    /// The group is released when this returns.
    private func resumeSuspendedGroup(_ slots: Slots, _ end: ChainEnd, _ memory: inout LiveBytes) {
        let transaction = Self.suspendedGroup(slots, end)
        memory.notePending()
        transaction.resume()
        end.wait()
    }
}

/// An unretained reference, because the reference count is a word that all threads would write. The waiter
/// keeps the object alive.
private struct Unowned<Object: AnyObject & Sendable>: Sendable {
    unowned(unsafe) let object: Object
    init(_ object: Object) { self.object = object }
}

extension Unowned<Countdown> {
    func leave() { object.leave() }
}
