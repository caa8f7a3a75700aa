// AnyOperation+Trace.swift - the trace of a root operation, and what its descendants add to it.
//
// A root has its trace in its extras from its start to its end. Its code sees the span as the current one, so runs that
// it starts elsewhere belong to it. Descendants have no spans: each one whose block was passed where the span was
// current becomes an event when it is decided.

@_spi(Faces) internal import Runs

extension AnyOperation {
    /// Begins the trace of a root whose block has not begun. Under no lock: the tracer is user code.
    final func beginTrace() {
        let isRoot = look { !isChild && !machine.isDecided && extras?.trace == nil }
        guard isRoot, let trace = RunTrace.begin(.operation, name ?? kindName, number: id.number) else {
            return
        }
        let isKept = look {
            if isChild || machine.isDecided || extras?.trace != nil { return false }
            ensureExtras().trace = trace
            return true
        }
        if !isKept { trace.end(.cancelled(CancelReason(.abandoned))) }
    }

    /// Adds a decided descendant to the trace of its root. Under the tree's lock.
    ///
    /// - Complexity: O(depth).
    final func noteInTrace() {
        var root = parentReference
        while let above = root?._withUnsafeGuaranteedRef({ $0.parentReference }) { root = above }
        guard let trace = root?._withUnsafeGuaranteedRef({ $0.extras?.trace }) else { return }
        trace.add(
            RunTrace.Event(
                name: extras?.options?.name ?? kindName, number: id.number, attempt: Int(machine.attempt),
                end: RunTrace.End(badEnd?.outcome)))
    }
}

extension Extras {
    /// Like ``context``, within the span of the root. Under the lock.
    var contextOfBlock: OperationContext? {
        guard let trace else { return context }
        return OperationContext(.traced(context, trace))
    }
}
