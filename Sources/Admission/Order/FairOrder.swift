// FairOrder.swift - whose turn is next: start-time fair queueing.
//
// Each flow has a tag, the virtual time at which its next turn begins; the least tag is next. A turn advances the flow's tag by
// its cost over the flow's weight, and the virtual time to the tag's former value.
//
// Invariants:
//   I1  the tag of a flow that begins to wait is not less than the virtual time: an idle flow saves up no turns, and a brief
//       pause does not erase what the flow took beyond its share.
//   I2  of flows with the same tag, the one that has waited longer is next. Hence a flow that begins to wait comes after at
//       most one turn of each flow that already waits, whatever their weights are.
//   I3  while two flows wait, the costs of the turns that they get, each divided by the flow's weight, differ by no more than
//       the sum of the greatest cost of one turn of each, divided likewise.
//
// Deficit round robin (Shreedhar and Varghese, 1995) shares equally well, but gives a flow of weight 7 its seven turns in a
// row, and a flow that begins to wait comes after a whole round.
//
// Source: Goyal, Vin and Cheng, Start-time Fair Queueing (1996).

/// Weighted flows, some of which wait for turns. Taking a turn is O(log n) in the number of waiting flows.
struct FairOrder: Sendable {
    /// How far one turn of cost 1 advances the tag of a flow of weight 1.
    static let unit: UInt64 = 1 << 20
    /// The greatest weight, and the greatest cost.
    static let most = 1 << 20
    /// Beyond this value all tags are rebased, long before they overflow.
    static let horizon: UInt64 = 1 << 62

    private struct Flow {
        var weight: UInt64
        var tag: UInt64 = 0
        /// Orders flows with the same tag.
        var arrival: UInt64 = 0
        /// Its index in `heap`; nil: it does not wait.
        var place: Int?
    }

    private var flows: [Flow] = []
    private var heap: [Int] = []
    private var free: [Int] = []
    private var lastArrival: UInt64 = 0
    /// The tag of the turn that began last.
    private var virtualTime: UInt64

    /// - Parameter virtualTime: its initial value; for tests.
    init(virtualTime: UInt64 = 0) { self.virtualTime = virtualTime }

    /// How many flows wait.
    var waitingCount: Int { heap.count }

    /// Adds a flow that does not wait.
    ///
    /// - Returns: its number; the number of a removed flow may be reused.
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

    /// Takes effect from the next turn on.
    mutating func setWeight(_ weight: Int, of number: Int) { flows[number].weight = UInt64(weight) }

    /// The flow begins to wait; it must not wait already.
    mutating func wait(_ number: Int) {
        flows[number].tag = max(flows[number].tag, virtualTime)  // I1
        flows[number].place = heap.count
        heap.append(number)
        arrive(number)
        rise(heap.count - 1)
    }

    /// The flow no longer waits.
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

    /// Like `next`, but found by a search; for tests.
    var leastBySearch: Int? { heap.min(by: comesBefore) }

    /// The flow's surplus beyond its share, divided by its weight: 0, or how far its tag is ahead of the virtual time.
    func lead(of number: Int) -> Double {
        let tag = flows[number].tag
        return tag > virtualTime ? Double(tag - virtualTime) / Double(Self.unit) : 0
    }

    /// The flow takes a turn, whether or not it had to wait for it. A waiting flow keeps waiting until it leaves.
    mutating func take(_ number: Int, cost: Int) {
        if flows[number].place == nil { flows[number].tag = max(flows[number].tag, virtualTime) }  // I1
        virtualTime = max(virtualTime, flows[number].tag)
        if virtualTime > Self.horizon { countAnew() }
        flows[number].tag += UInt64(cost) * Self.unit / flows[number].weight
        arrive(number)
        move(number)
    }

    /// Corrects the cost of a turn that the flow has taken: the turn cost more, or less, than estimated.
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
