// FairOrder.swift - whose turn is next: start-time fair queueing.
//
// Each flow has a tag, the virtual time at which its next turn begins; the least tag is next. A turn moves the flow's tag on by
// its cost over its weight, and the virtual time to the tag that it had.
//
// Invariants:
//   I1  the tag of a flow that begins to wait is not before the virtual time: silence saves up no turns, and what was taken
//       beyond the share is not forgotten by a moment of silence.
//   I2  of flows with the same tag, the one that has waited longer is next. So one that begins to wait comes after at most one
//       turn of each flow that waits already, whatever their weights are.
//   I3  while two flows wait, the turns that they get differ, each over its weight, by no more than the greatest cost of one
//       turn of each over its weight.
//
// Deficit round robin (Shreedhar and Varghese, 1995) shares as well, but gives a flow of weight 7 its seven turns in a row, and
// one that begins to wait comes after a whole round.
//
// Source: Goyal, Vin and Cheng, Start-time Fair Queueing (1996).

/// Flows by weight, of which some wait for turns. To take a turn is O(log n) of those that wait.
struct FairOrder: Sendable {
    /// By so much one turn of cost 1 moves the tag of a flow of weight 1 on.
    static let unit: UInt64 = 1 << 20
    /// The greatest weight, and the greatest cost.
    static let most = 1 << 20
    /// From here on all tags are counted anew, long before they overflow.
    static let horizon: UInt64 = 1 << 62

    private struct Flow {
        var weight: UInt64
        var tag: UInt64 = 0
        /// Orders those with the same tag.
        var arrival: UInt64 = 0
        /// Where it is in `heap`; nil: it does not wait.
        var place: Int?
    }

    private var flows: [Flow] = []
    private var heap: [Int] = []
    private var free: [Int] = []
    private var lastArrival: UInt64 = 0
    /// The tag of the turn that began last.
    private var virtualTime: UInt64

    /// - Parameter virtualTime: where it begins; for tests.
    init(virtualTime: UInt64 = 0) { self.virtualTime = virtualTime }

    /// How many wait.
    var waitingCount: Int { heap.count }

    /// Adds a flow that does not wait.
    ///
    /// - Returns: its number; that of one that was removed may come again.
    mutating func add(weight: Int) -> Int {
        let flow = Flow(weight: UInt64(weight), tag: virtualTime)
        if let number = free.popLast() {
            flows[number] = flow
            return number
        }
        flows.append(flow)
        return flows.count - 1
    }

    /// Removes a flow that does not wait.
    mutating func remove(_ number: Int) { free.append(number) }

    /// From the next turn on.
    mutating func setWeight(_ weight: Int, of number: Int) { flows[number].weight = UInt64(weight) }

    /// The flow begins to wait; it does not yet.
    mutating func wait(_ number: Int) {
        flows[number].tag = max(flows[number].tag, virtualTime)  // I1
        flows[number].place = heap.count
        heap.append(number)
        arrive(number)
        rise(heap.count - 1)
    }

    /// The flow waits no more.
    mutating func leave(_ number: Int) {
        guard let place = flows[number].place else { return }
        flows[number].place = nil
        let last = heap.removeLast()
        guard last != number else { return }
        put(last, place)
        rise(place)
        sink(flows[last].place!)
    }

    /// The flow whose turn is next; nil: none waits.
    var next: Int? { heap.first }

    /// As `next`, found by a search; for tests.
    var leastBySearch: Int? { heap.min(by: comesBefore) }

    /// The flow's surplus beyond its share, over its weight: 0, or how far its tag is ahead of the virtual time.
    func lead(of number: Int) -> Double {
        let tag = flows[number].tag
        return tag > virtualTime ? Double(tag - virtualTime) / Double(Self.unit) : 0
    }

    /// The flow takes a turn, whether or not it had to wait for that; it waits still, until it leaves.
    mutating func take(_ number: Int, cost: Int) {
        if flows[number].place == nil { flows[number].tag = max(flows[number].tag, virtualTime) }  // I1
        virtualTime = max(virtualTime, flows[number].tag)
        if virtualTime > Self.horizon { countAnew() }
        flows[number].tag += UInt64(cost) * Self.unit / flows[number].weight
        arrive(number)
        move(number)
    }

    /// A turn that the flow has taken cost more, or less, than was thought.
    mutating func correct(_ number: Int, by cost: Int) {
        let shift = UInt64(cost.magnitude) * Self.unit / flows[number].weight
        let tag = flows[number].tag
        flows[number].tag = cost < 0 ? tag - min(tag, shift) : tag + shift
        move(number)
    }

    // MARK: The heap

    private mutating func countAnew() {
        for number in flows.indices { flows[number].tag -= min(flows[number].tag, virtualTime) }
        virtualTime = 0
    }

    private mutating func arrive(_ number: Int) {
        lastArrival += 1
        flows[number].arrival = lastArrival
    }

    private mutating func move(_ number: Int) {
        guard let place = flows[number].place else { return }
        rise(place)
        sink(flows[number].place!)
    }

    private mutating func put(_ number: Int, _ place: Int) {
        heap[place] = number
        flows[number].place = place
    }

    private func comesBefore(_ one: Int, _ other: Int) -> Bool {
        (flows[one].tag, flows[one].arrival) < (flows[other].tag, flows[other].arrival)  // I2
    }

    private mutating func rise(_ place: Int) {
        var place = place
        let number = heap[place]
        while place > 0, comesBefore(number, heap[(place - 1) / 2]) {
            put(heap[(place - 1) / 2], place)
            place = (place - 1) / 2
        }
        put(number, place)
    }

    private mutating func sink(_ place: Int) {
        var place = place
        let number = heap[place]
        while 2 * place + 1 < heap.count {
            var child = 2 * place + 1
            if child + 1 < heap.count, comesBefore(heap[child + 1], heap[child]) { child += 1 }
            guard comesBefore(heap[child], number) else { break }
            put(heap[child], place)
            place = child
        }
        put(number, place)
    }
}
