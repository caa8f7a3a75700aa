public import ConformanceTesting

extension Subject {
    /// The schedulers of this package.
    public static let ours: [Subject] = [
        .scheduler, .serialLane, .operationQueueOfOurs, .serialOperationQueueOfOurs,
    ]
    /// Other schedulers, which need no further package.
    public static let peers: [Subject] = [
        .dispatchQueue, .serialDispatchQueue, .operationQueue, .serialOperationQueue, .taskGroup,
        .defaultExecutor, .plainPool,
    ]
}
