/// A substitute for a network: the outcome of each load is scripted.
actor Loader {
    struct Offline: Error {}

    enum Answer {
        /// Answers when `goOn` is called.
        case held
        case atOnce
        case offline
    }

    private var answers: [Answer]
    private var mayGoOn = false
    private var waiting: CheckedContinuation<Void, Never>?

    init(_ answers: [Answer]) { self.answers = answers }

    func load() async throws {
        switch answers.removeFirst() {
        case .held:
            if !mayGoOn { await withCheckedContinuation { waiting = $0 } }
        case .atOnce: break
        case .offline: throw Offline()
        }
    }

    func goOn() {
        mayGoOn = true
        waiting?.resume()
        waiting = nil
    }
}
