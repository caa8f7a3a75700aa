import BenchmarkCore
import Testing

@Suite struct LeftoversTests {
    /// Returns the leftovers of successive runs that leave `bytes`, and how many runs are needed.
    private func leftovers(_ bytes: (Int) -> Int) -> (ofEachRun: Int, runs: Int) {
        var leftovers = Leftovers()
        var runs = 0
        repeat {
            leftovers.add(bytes(runs))
            runs += 1
        } while leftovers.isOpen
        return (leftovers.ofEachRun, runs)
    }

    @Test func `a run that leaves nothing needs no other`() {
        #expect(leftovers { _ in 0 } == (0, 1))
    }

    @Test func `storage that grows, and shrinks to a size that it had, is not lost`() {
        let sizes = [0, 10_240, 30_720, 71_680, 153_600, 30_720]
        #expect(leftovers { sizes[$0 + 1] - sizes[$0] } == (0, 5))
        #expect(leftovers { [-153_600, 10_240, 0][$0] } == (0, 3))
    }

    @Test func `a single object that each run loses is found, whatever the storage does`() {
        #expect(leftovers { _ in 64 }.ofEachRun == 64)
        let sizes = [0, 71_680, 10_240, 153_600, 30_720]
        func size(_ run: Int) -> Int { sizes[run / 2 % sizes.count] }
        #expect(leftovers { 64 + size($0 + 1) - size($0) } == (64, 25))
    }
}
