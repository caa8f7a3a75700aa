import BenchmarkCore

/// The state that the steps of W16 and the changes of W21 work on. It records their order.
///
/// Sendable: one task at a time uses it.
final class Ledger: @unchecked Sendable {
    private var sum: UInt64 = 0
    private var trace: UInt64 = 0

    @inline(__always)
    func add(_ step: Int) {
        sum &+= Workload.mark(step)
        trace = Workload.trace(trace, Workload.mark(step))
    }

    @inline(__always)
    func takeBack(_ step: Int) {
        sum &-= Workload.mark(step)
        trace = Workload.trace(trace, ~Workload.mark(step))
    }

    var checksum: UInt64 { trace &+ sum }
}

/// A step that may await, as a user of any peer would write it.
struct LedgerStep: Sendable {
    unowned(unsafe) let ledger: Ledger  // the creator of the steps keeps it alive
    let number: Int
    /// The step that throws.
    let failing: Int

    struct Failure: Error {}

    init(_ ledger: Ledger, _ number: Int, failing: Int = -1) {
        self.ledger = ledger
        self.number = number
        self.failing = failing
    }

    @inline(never)
    func perform() async throws {
        if number == failing { throw Failure() }
        ledger.add(number)
    }

    @inline(never)
    func undo() async { ledger.takeBack(number) }
}
