import ConformanceTesting

#if canImport(NIOPosix)
    import NIOCore
    import NIOPosix

    extension Subject {
        /// SwiftNIO's pool of threads.
        static let nioThreadPool = Subject("NIOThreadPool") {
            let pool = NIOThreadPool(numberOfThreads: 3)
            pool.start()
            var instance = Instance(claims: [.asynchronous, .fair]) { body in
                pool.submit { state in if state == .active { body() } }
            } end: {
                try? pool.syncShutdownGracefully()
            }
            instance.width = 3
            instance.shutDown = { try? pool.syncShutdownGracefully() }
            return instance
        }

        /// SwiftNIO's event loop, which runs one closure at a time.
        static let eventLoop = Subject("EventLoop") {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let loop = group.next()
            var instance = Instance(claims: [.asynchronous, .fifo, .fair]) {
                loop.execute($0)
            } end: {
                try? group.syncShutdownGracefully()
            }
            instance.width = 1
            instance.isHere = { loop.inEventLoop }
            instance.submitAfter = { time, body in
                loop.scheduleTask(in: .nanoseconds(Int64(time / .nanoseconds(1))), body)
            }
            return instance
        }

        /// The schedulers of other packages.
        static var others: [Subject] { [nioThreadPool, eventLoop] }
    }
#else
    extension Subject {
        /// The schedulers of other packages.
        static var others: [Subject] { [] }
    }
#endif
