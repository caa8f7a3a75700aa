// OrderTests - the order of turns, without threads and clocks.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import Admission

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct OrderTests {
    /// The turns of flows that always have requests waiting; the costs are drawn from `costs`.
    private func turns(_ weights: [Int], _ count: Int, from start: UInt64 = 0, costs: [Int] = [1])
        -> [(number: Int, cost: Int)]
    {
        var order = FairOrder(virtualTime: start)
        for weight in weights { order.wait(order.add(weight: weight)) }
        return (0..<count).map { turn in
            let number = order.next!
            let cost = costs[turn % costs.count]
            order.take(number, cost: cost)
            return (number, cost)
        }
    }

    @Test func `turns are by weight, and interleaved`() {
        let turns = turns([1, 2, 7], 1_000).map(\.number)
        for first in stride(from: 0, to: 1_000, by: 10) {
            let ten = turns[first..<first + 10]
            #expect((0..<3).map { number in ten.count { $0 == number } } == [1, 2, 7])
        }
        // The heaviest flow does not get its seven turns in a row.
        #expect(turns.split { $0 != 2 }.map(\.count).max()! <= 5)
    }

    /// Goyal, Vin and Cheng, theorem 1.
    @Test func `the weighted shares of two flows differ by no more than one turn of each`() async {
        let all = Generator.zip(
            Generator.int(in: 1...100).array(count: 1...8), Generator.int(in: 1...50).array(count: 1...30))
        await forAll(all, cases: 100) { weights, costs in
            let turns = self.turns(weights, 600, costs: costs)
            let most = Double(costs.max()!)
            for one in weights.indices {
                for other in weights.indices where other < one {
                    var difference = 0.0
                    var (least, greatest) = (0.0, 0.0)
                    for turn in turns {
                        if turn.number == one { difference += Double(turn.cost) / Double(weights[one]) }
                        if turn.number == other { difference -= Double(turn.cost) / Double(weights[other]) }
                        least = min(least, difference)
                        greatest = max(greatest, difference)
                    }
                    let bound = most / Double(weights[one]) + most / Double(weights[other])
                    #expect(greatest - least <= bound + 0.001)
                }
            }
        }
    }

    @Test func `a new waiter begins after at most one turn of each waiting flow`() async {
        let all = Generator.zip(
            Generator.int(in: 1...1_000).array(count: 1...60), .zip(.int(in: 0...500), .int(in: 1...1_000)))
        await forAll(all, cases: 100) { weights, rest in
            let (before, weight) = rest
            var order = FairOrder()
            for weight in weights { order.wait(order.add(weight: weight)) }
            let silent = order.add(weight: weight)
            for _ in 0..<before { order.take(order.next!, cost: 1) }
            order.wait(silent)
            var turns = Array(repeating: 0, count: weights.count)
            while let number = order.next, number != silent {
                turns[number] += 1
                order.take(number, cost: 1)
            }
            #expect(turns.allSatisfy { $0 <= 1 })
        }
    }

    @Test func `silence saves up no turns`() {
        var order = FairOrder()
        let (one, other) = (order.add(weight: 1), order.add(weight: 1))
        order.wait(one)
        for _ in 0..<1_000 { order.take(one, cost: 1) }
        order.wait(other)
        let turns = (0..<100).map { _ in
            let number = order.next!
            order.take(number, cost: 1)
            return number
        }
        #expect(turns.count { $0 == other } == 50)
    }

    @Test func `a moment of silence does not erase past usage`() {
        var order = FairOrder()
        let (one, other) = (order.add(weight: 1), order.add(weight: 1))
        order.wait(one)
        order.wait(other)
        order.take(one, cost: 100)
        order.leave(one)
        order.wait(one)
        var turns = 0
        while order.next == other {
            turns += 1
            order.take(other, cost: 1)
        }
        #expect(turns == 100 || turns == 101)
    }

    @Test func `a turn's estimated cost is corrected`() {
        var order = FairOrder()
        let (one, other) = (order.add(weight: 1), order.add(weight: 1))
        order.wait(one)
        order.wait(other)
        order.take(one, cost: 10)
        order.correct(one, by: -9)  // the actual cost was 1
        order.take(other, cost: 1)
        order.correct(other, by: 49)  // the actual cost was 50
        let turns = (0..<49).map { _ in
            let number = order.next!
            order.take(number, cost: 1)
            return number
        }
        #expect(turns.allSatisfy { $0 == one })
    }

    @Test func `renumbering the tags keeps the order`() {
        let weights = [3, 1, 4, 1, 5, 926]
        let here = turns(weights, 5_000, costs: [2, 7, 1, 8]).map(\.number)
        for before in [1, 1_000, 1_000_000] as [UInt64] {
            let there = turns(
                weights, 5_000, from: FairOrder.horizon - before * 1_000, costs: [2, 7, 1, 8]
            ).map(\.number)
            #expect(there == here)
        }
    }

    @Test func `the greatest weight and the greatest cost do not overflow`() {
        let turns = turns([FairOrder.most, 1], 3_000, costs: [FairOrder.most]).map(\.number)
        #expect(turns.count { $0 == 1 } == 1)
        #expect(turns.count { $0 == 0 } == 2_999)
    }

    /// Compared with a list that is searched linearly.
    @Test func `the heap yields the least waiter, whatever comes and goes`() async {
        let steps = Generator.zip(.int(in: 0...5), .int(in: 0...1_000)).array(count: 0...200)
        await forAll(steps, cases: 200) { steps in
            var order = FairOrder()
            var known: [Int] = []
            var waiting: Set<Int> = []
            var gone: Set<Int> = []
            for (step, value) in steps {
                let here = known.filter { !gone.contains($0) }
                switch step {
                case 0:
                    let number = order.add(weight: 1 + value % 9)
                    gone.remove(number)
                    if !known.contains(number) { known.append(number) }
                case 1:
                    guard let number = here.filter({ !waiting.contains($0) }).at(value) else { continue }
                    order.wait(number)
                    waiting.insert(number)
                case 2:
                    guard let number = waiting.sorted().at(value) else { continue }
                    order.leave(number)
                    waiting.remove(number)
                case 3:
                    guard let number = order.next else { continue }
                    order.take(number, cost: 1 + value % 20)
                case 4:
                    guard let number = here.at(value) else { continue }
                    order.correct(number, by: value % 21 - 10)
                default:
                    guard let number = here.filter({ !waiting.contains($0) }).at(value) else { continue }
                    order.remove(number)
                    gone.insert(number)
                }
                #expect(order.waitingCount == waiting.count)
                #expect(order.next == order.leastBySearch)
                #expect(order.next.map { waiting.contains($0) } != false)
            }
        }
    }
}

extension Array {
    fileprivate func at(_ value: Int) -> Element? { isEmpty ? nil : self[value % count] }
}
