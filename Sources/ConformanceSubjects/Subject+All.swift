public import ConformanceTesting

extension Subject {
    /// Those of this package.
    public static let ours: [Subject] = [
        .scheduler, .serialLane, .operationQueueOfOurs, .serialOperationQueueOfOurs,
    ]
    /// Those of others that need no further package.
    public static let peers: [Subject] = [
        .dispatchQueue, .serialDispatchQueue, .operationQueue, .serialOperationQueue, .taskGroup,
        .defaultExecutor, .plainPool,
    ]
}
