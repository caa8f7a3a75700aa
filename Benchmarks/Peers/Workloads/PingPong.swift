import BenchmarkCore
import Dispatch

/// W11: two serial places answer each other, `rounds` times. Measures the latency of every round trip; each
/// turn adds its mark.
func pingPong(_ pool: some ThreadPool, rounds: Int) throws -> Sample {
    let places = try pool.lanes(2)
    let court = Court(here: places[0], there: places[1], times: Slots(count: rounds + 1))
    let start = startClock()
    court.here.submit(Turn(court: court, turn: 0, sum: 0))
    court.end.wait()
    let stop = stopClock()
    return roundTrips(from: start, to: stop, times: court.times.values, checksum: court.end.value)
}

/// The sample of a game, given the times when the ball was at the first place.
func roundTrips(from start: Int, to stop: Int, times: [UInt64], checksum: UInt64) -> Sample {
    var sample = Sample(from: start, to: stop, operations: times.count - 1, checksum: checksum)
    sample.latencies_ns = zip(times.dropFirst(), times).map { $0 - $1 }
    return sample
}

/// Two places, and the times when the ball was at the first.
private final class Court<Place: Lane>: Sendable {
    let here: Place
    let there: Place
    let times: Slots
    let end = ChainEnd()

    init(here: Place, there: Place, times: Slots) {
        self.here = here
        self.there = there
        self.times = times
    }
}

/// One side's turn; even turns are at the first place. The waiter keeps the court alive.
private struct Turn<Place: Lane>: Job {
    unowned(unsafe) let court: Court<Place>
    let turn: Int
    let sum: UInt64

    func run() {
        let isHome = turn % 2 == 0
        if isHome {
            court.times.address(of: turn / 2).pointee = UInt64(now_ns())
            if turn / 2 + 1 == court.times.count { return court.end.reach(sum) }
        }
        let next = Turn(court: court, turn: turn + 1, sum: sum &+ Workload.mark(turn))
        (isHome ? court.there : court.here).submit(next)
    }
}
