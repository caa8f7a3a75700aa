// Pull to refresh: two pulls before the first refresh has ended, one while offline, and one whose loader takes no time.

import Commands

let loader = Loader([.held, .atOnce, .offline, .atOnce])
let (shown, screen) = AsyncStream<String>.makeStream()
let list = ConversationList(queue: SerialInvoker(), load: { try await loader.load() }) { screen.yield($0) }
var lines = shown.makeAsyncIterator()

/// Waits for the list to show so many lines.
@MainActor func printLines(_ count: Int) async {
    for _ in 0..<count { if let line = await lines.next(isolation: MainActor.shared) { print(line) } }
}

list.pullToRefresh()
list.pullToRefresh()
await loader.goOn()
await printLines(2)
list.pullToRefresh()
await printLines(1)
list.pullToRefresh()
await printLines(1)
