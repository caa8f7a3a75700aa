// NoticesTests - the queue with a single drainer that lanes, mailboxes, handlers and observers use.

@testable @_spi(Faces) import CompositeOperationsBasics
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
@testable @_spi(Faces) import Runs
import Testing

private enum Step: Hashable, Sendable {
    case append(Int)
    case pop(Int)
    case takeAll
    /// Removes the element at this index, if there is one.
    case remove(Int)
    case removeEven
}

private let steps = Generator<Step>.frequency([
    (4, Generator<Int>.int(in: 1...90).map { Step.append($0) }),
    (4, Generator<Int>.int(in: 1...90).map { Step.pop($0) }),
    (2, Generator<Int>.int(in: 0...20).map { Step.remove($0) }),
    (1, Generator<Step>.element(of: [.takeAll, .removeEven])),
])

@Suite(.watched(testLimit), .leavesNothing) struct NoticesTests {
    @Test func `a queue is an array that pops from the front and frees its memory`() async {
        await forAll(.array(of: steps, count: 1...40), cases: scaled(300)) { program in
            var (queue, model, last) = (FIFO<Int>(), [Int](), 0)
            for step in program {
                switch step {
                case .append(let count):
                    for _ in 0..<count {
                        last += 1
                        queue.append(last)
                        model.append(last)
                    }
                case .pop(let count):
                    for _ in 0..<count {
                        let expected = model.isEmpty ? nil : model.removeFirst()
                        #expect(queue.first == expected)
                        let popped = queue.popFirst()
                        #expect(popped == expected)
                    }
                case .takeAll:
                    let all = queue.takeAll()
                    #expect(all == model)
                    model = []
                case .remove(let place):
                    let number = place < model.count ? model[place] : 0
                    let removed = queue.remove { $0 == number }
                    #expect(removed == (place < model.count ? model.remove(at: place) : nil))
                case .removeEven:
                    let gone = queue.removeAll { $0.isMultiple(of: 2) }
                    #expect(gone == model.filter { $0.isMultiple(of: 2) })
                    model.removeAll { $0.isMultiple(of: 2) }
                }
                #expect(queue.count == model.count && queue.all == model)
                // The array holds at most as many taken elements as remaining ones, plus a few. An empty queue keeps no
                // large buffer.
                #expect(queue.elements.count <= 2 * queue.count + 16)
                if case .pop = step, model.isEmpty { #expect(queue.elements.capacity <= 64) }
            }
        }
    }

    @Test func `listeners are kept in order of arrival; a removed listener leaves no gap`()
        async
    {
        await forAll(
            .array(of: .frequency([(3, .int(in: -3 ... -1)), (2, .int(in: 0...30))]), count: 1...200),
            cases: scaled(200)
        ) { program in
            var registrations = Registrations<Int>()
            var model: [(number: Int, registration: Registration)] = []
            var last = 0
            for step in program {
                if step < 0 {
                    last += 1
                    model.append((last, Registration()))
                    registrations.append(last, model.last!.registration)
                } else if step < model.count {
                    let (number, registration) = model.remove(at: step)
                    let (removed, again) = (
                        registrations.remove(registration), registrations.remove(registration)
                    )
                    #expect(removed == number && again == nil)
                }
                var each: [Int] = []
                registrations.forEach { each.append($0) }
                #expect(each == model.map(\.number) && registrations.all == each)
                #expect(registrations.count == each.count && registrations.isEmpty == each.isEmpty)
                #expect(registrations.entries.count <= 2 * each.count + 8)
            }
        }
    }

    /// I1, I2.
    @Test func `one thread at a time delivers all, in order`() {
        var notices = Notices<Int>()
        let nothing = notices.claim()
        notices.append(1)
        let claims = [notices.claimEmpty(), notices.claim(), notices.claim(), notices.claimEmpty()]
        #expect(!nothing && claims == [false, true, false, false])
        notices.append(2)
        #expect(notices.first == 1)
        let (one, isOver) = (notices.next(), notices.isOver())
        notices.append(3)
        let (rest, again) = (notices.takeAll(), notices.claim())
        let none = notices.takeAll()
        #expect(one == 1 && !isOver && rest == [2, 3] && !again && none.isEmpty)
        notices.append(4)
        let isMine = notices.claim()
        let (four, end) = (notices.next(), notices.next())
        #expect(isMine && four == 4 && end == nil)
        let early = [notices.claimEmpty(), notices.claimEmpty()]
        notices.append(5)
        let late = [notices.claim(), notices.isOver()]
        let five = notices.next()
        let last = [notices.isOver(), notices.claimEmpty()]
        #expect(early == [true, false] && late == [false, false] && five == 5 && last == [true, true])
    }
}
