// The examples of the article in Scheduling.docc: Scripts/documentation looks for every block of Swift in it
// here. To change one is to change the other.

import PropertyTestingSupport
import Scheduling
import Testing

private struct Empty: Error {}

// Scheduling.md
func histogram(of words: [String]) throws -> [Int] {
    let lengths = try Scheduler.shared.map(words) { $0.count }
    return (0...12).map { length in lengths.count { $0 == length } }
}
// end of the example

@Suite(.inTurn) struct DocumentationExamples {
    private let text = "the quick brown fox jumps over the lazy dog"
    private let inserted = InsertedWords()

    @Test func `a closure, and loops`() async throws {
        let scheduler = Scheduler.shared
        let text = text
        let words = text.split(separator: " ").map(String.init)
        let inserted = inserted
        @Sendable func check(_ word: String) throws { if word.isEmpty { throw Empty() } }
        @Sendable func insert(_ words: ArraySlice<String>) { inserted.add(words) }
        // Scheduling.md
        let longest = try await scheduler.run { text.split(separator: " ").map(\.count).max() ?? 0 }
        // end of the example
        #expect(longest == 5)
        // Scheduling.md
        try await scheduler.forEach(words) { word in try check(word) }
        let lengths = try await scheduler.map(words) { word in word.count }
        let total = try await scheduler.reduce(lengths, 0, +)
        try await scheduler.forEach(words, chunksOf: 100) { chunk in insert(chunk) }
        // end of the example
        #expect(lengths == [3, 5, 5, 3, 5, 4, 3, 4, 3] && total == 35)
        #expect(inserted.sorted == words.sorted())
        // Scheduling.md
        let counts = try await scheduler.reduce(words, into: [Int: Int]()) { counts, word in
            counts[word.count, default: 0] += 1
        } combine: { counts, others in
            counts.merge(others, uniquingKeysWith: +)
        }
        // end of the example
        #expect(counts == [3: 4, 4: 2, 5: 3])
        let found = try blocking { try histogram(of: words) }
        #expect(found == [0, 0, 0, 4, 2, 3, 0, 0, 0, 0, 0, 0, 0])
    }

    @Test func `operations in a group`() async throws {
        let words = text.split(separator: " ").map(String.init)
        let inserted = inserted
        @Sendable func insert(_ words: ArraySlice<String>) { inserted.add(words) }
        // Scheduling.md
        let counter = try CompletionCounter()
        for word in words { Scheduler.submit(in: counter) { insert([word]) } }
        try await counter.completed()
        // end of the example
        #expect(inserted.sorted == words.sorted())
    }

    @Test func `time, and blocking`() async throws {
        let scheduler = Scheduler.shared
        let counter = try CompletionCounter()
        let (reminded, sent, done) = (Count(), Count(), Count())
        @Sendable func remind() { reminded.add() }
        @Sendable func send() { sent.add() }
        @Sendable func compact() { done.add() }
        @Sendable func answer() { done.add() }
        // Scheduling.md
        try scheduler.submit(after: .milliseconds(1), in: counter) { remind() }
        let heartbeat = try scheduler.submit(every: .seconds(1)) { remind() }
        try await scheduler.sleep(for: .milliseconds(2))
        heartbeat.cancel()
        try scheduler.submit(context: .inherited, in: counter) { Scheduler.blocking { send() } }
        try scheduler.submit(priority: .background, in: counter) { compact() }
        try scheduler.submit(priority: .high, in: counter) { answer() }
        // end of the example
        try await counter.completed()
        #expect(reminded.value >= 1 && sent.value == 1 && done.value == 2)
    }
}

private final class InsertedWords: Sendable {
    private let words = Locked<[String]>([])

    func add(_ more: ArraySlice<String>) { words.withLock { $0 += more } }
    var sorted: [String] { words.withLock { $0.sorted() } }
}
