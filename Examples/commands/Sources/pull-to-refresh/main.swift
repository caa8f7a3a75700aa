// Pull to refresh: two pulls before the first refresh has ended, one while offline, and one whose loader takes no time.

import Commands

@MainActor
func demonstrate() async {
    let loader = Loader([.held, .atOnce, .offline, .atOnce])
    let (shown, screen) = AsyncStream<String>.makeStream()
    var lines = shown.makeAsyncIterator()
    let list = ConversationList(queue: SerialInvoker(), load: { try await loader.load() }) {
        screen.yield($0)
    }

    list.pullToRefresh()
    list.pullToRefresh()
    await loader.goOn()
    print(await lines.next() ?? "", await lines.next() ?? "", separator: "\n")

    for _ in 0..<2 {
        list.pullToRefresh()
        print(await lines.next() ?? "")
    }
}

await demonstrate()
