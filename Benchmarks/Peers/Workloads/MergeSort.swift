import BenchmarkCore

/// R1: parts of equal length are sorted, then merged in pairs, level by level. Each level is a parallel loop over equal
/// pieces of its output, so that even the last merge keeps all threads busy.
///
/// Source: Odeh et al., Merge Path - Parallel Merging Made Simple (2012), for finding where a piece begins.
func mergeSort(_ pool: some Pool, count: Int) -> Sample {
    let sort = MergeSort(count: count)
    let pieces = Workload.piecesOfSort
    let start = startClock()
    pool.loop(pieces) { sort.sortPart($0) }
    var parts = 1  // in each run
    while parts < pieces {
        let merged = 2 * parts
        pool.loop(pieces) { sort.mergePiece($0, parts: merged) }
        sort.swap()
        parts = merged
    }
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: count, checksum: sort.checksum)
}

/// Sendable: each call writes its own part, and the levels run one after another.
private final class MergeSort: @unchecked Sendable {
    private var numbers: Slots
    private var others: Slots

    init(count: Int) {
        numbers = Slots(count: count)
        others = Slots(count: count)
        for place in 0..<count { numbers.address(of: place).pointee = Workload.numberToSort(place) }
    }

    private func bound(ofPart part: Int) -> Int { part * numbers.count / Workload.piecesOfSort }

    func sortPart(_ part: Int) {
        let first = bound(ofPart: part)
        var numbers = UnsafeMutableBufferPointer(
            start: numbers.address(of: first), count: bound(ofPart: part + 1) - first)
        numbers.sort()
    }

    /// Fills one piece, as long as a part, of a run of `parts` parts, by merging the run's two halves.
    func mergePiece(_ piece: Int, parts: Int) {
        let run = piece / parts * parts
        let start = bound(ofPart: run)
        let middle = bound(ofPart: run + parts / 2)
        let low = UnsafeBufferPointer(start: numbers.address(of: start), count: middle - start)
        let high = UnsafeBufferPointer(
            start: numbers.address(of: middle), count: bound(ofPart: run + parts) - middle)
        let first = bound(ofPart: piece) - start
        let end = bound(ofPart: piece + 1) - start
        let target = others.address(of: start)
        var fromLow = Self.split(low, high, at: first)
        var fromHigh = first - fromLow
        for place in first..<end {
            let takesLow =
                fromHigh == high.count || (fromLow < low.count && low[fromLow] <= high[fromHigh])
            target[place] = takesLow ? low[fromLow] : high[fromHigh]
            fromLow += takesLow ? 1 : 0
            fromHigh += takesLow ? 0 : 1
        }
    }

    /// How many of the `place` smallest numbers of two runs are in the first run.
    private static func split(
        _ low: UnsafeBufferPointer<UInt64>, _ high: UnsafeBufferPointer<UInt64>, at place: Int
    ) -> Int {
        var least = max(0, place - high.count)
        var most = min(place, low.count)
        while least < most {
            let middle = (least + most) / 2
            if low[middle] <= high[place - middle - 1] { least = middle + 1 } else { most = middle }
        }
        return least
    }

    func swap() { Swift.swap(&numbers, &others) }

    /// 0, which is a wrong result, if two neighbours are out of order.
    var checksum: UInt64 {
        let values = numbers.values
        let isSorted = zip(values, values.dropFirst()).allSatisfy { $0 <= $1 }
        return isSorted ? values.reduce(0) { $0 &+ Workload.worth(ofSorted: $1) } : 0
    }
}
