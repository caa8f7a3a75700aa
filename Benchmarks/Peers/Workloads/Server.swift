#if canImport(NIOPosix)
    import BenchmarkCore
    import Dispatch
    import Glibc
    import NIOCore
    import NIOPosix

    /// Why R4 cannot be run; nil when it can.
    let withoutServer: String? = nil

    /// R4: an event-loop server on loopback, a task for each connection, and a client on the calling thread
    /// that keeps one request per connection in flight.
    ///
    /// - Parameters:
    ///   - executor: where the tasks of the connections run; nil: the default executor.
    ///   - isMixed: whether some of the handlers block.
    func requests(
        connections: Int, eventLoops: Int, on executor: (any TaskExecutor)?, isMixed: Bool
    ) throws -> Sample {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: eventLoops)
        let port = ChainEnd()
        let ended = DispatchSemaphore(value: 0)
        let server = Task.detached(executorPreference: executor) {
            do {
                try await serve(on: group, isMixed: isMixed) { port.reach(UInt64($0)) }
            } catch is CancellationError {}
            ended.signal()
        }
        port.wait()
        let sample = try Client(connections: connections, port: UInt16(port.value)).run()
        server.cancel()
        ended.wait()
        try group.syncShutdownGracefully()
        return sample
    }

    /// A request is a number in a frame; the answer is a frame that holds the number's mark.
    private let frame_bytes = 64

    private func serve(
        on group: MultiThreadedEventLoopGroup, isMixed: Bool, _ tellPort: @Sendable (Int) -> Void
    ) async throws {
        let server = try await ServerBootstrap(group: group)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(Frames()))
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        tellPort(server.channel.localAddress?.port ?? 0)
        try await withThrowingDiscardingTaskGroup { connections in
            try await server.executeThenClose { accepted in
                for try await connection in accepted {
                    connections.addTask { try? await answer(connection, isMixed: isMixed) }
                }
            }
        }
    }

    private func answer(
        _ connection: NIOAsyncChannel<ByteBuffer, ByteBuffer>, isMixed: Bool
    ) async throws {
        try await connection.executeThenClose { requests, answers in
            for try await request in requests { try await answers.write(handle(request, isMixed: isMixed)) }
        }
    }

    /// The handler: a few microseconds of work.
    private func handle(_ request: ByteBuffer, isMixed: Bool) async -> ByteBuffer {
        let number = request.getInteger(at: request.readerIndex, endianness: .little, as: Int.self) ?? -1
        if isMixed && number % Workload.betweenBlockingRequests == 0 {
            usleep(UInt32(Workload.blockingRequest_us))
        }
        var hash: UInt64 = 14_695_981_039_346_656_037
        for _ in 0..<32 {
            for byte in request.readableBytesView { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
        }
        var answer = ByteBuffer()
        answer.reserveCapacity(frame_bytes)
        answer.writeInteger(Workload.mark(number), endianness: .little)
        answer.writeInteger(hash, endianness: .little)
        answer.writeRepeatingByte(0, count: frame_bytes - 16)
        return answer
    }

    private struct Frames: ByteToMessageDecoder {
        typealias InboundOut = ByteBuffer

        func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) -> DecodingState {
            guard let frame = buffer.readSlice(length: frame_bytes) else { return .needMoreData }
            context.fireChannelRead(wrapInboundOut(frame))
            return .continue
        }
    }

    /// A client of one thread, which waits for all its sockets with `poll`.
    private struct Client {
        private let sockets: [Int32]

        init(connections: Int, port: UInt16) throws {
            sockets = try (0..<connections).map { _ in try Self.connect(to: port) }
        }

        func run() throws -> Sample {
            defer { for socket in sockets { close(socket) } }
            var events = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            var sent = [Int](repeating: 0, count: sockets.count)  // times, in ns
            var latencies_ns: [UInt64] = []
            latencies_ns.reserveCapacity(Workload.requests)
            var (next, sum) = (0, UInt64(0))
            func ask(_ connection: Int) throws {
                guard next < Workload.requests else { return }
                sent[connection] = now_ns()
                try Self.send(next, on: sockets[connection])
                next += 1
            }
            let start = startClock()
            for connection in sockets.indices { try ask(connection) }
            while latencies_ns.count < Workload.requests {
                guard poll(&events, nfds_t(events.count), -1) > 0 else { continue }
                for connection in events.indices where events[connection].revents != 0 {
                    sum &+= try Self.receive(on: sockets[connection])
                    latencies_ns.append(UInt64(now_ns() - sent[connection]))
                    try ask(connection)
                }
            }
            let stop = stopClock()
            var sample = Sample(from: start, to: stop, operations: Workload.requests, checksum: sum)
            sample.latencies_ns = latencies_ns
            sample.extra["requests_per_s"] = Double(Workload.requests) * 1e9 / Double(stop - start)
            return sample
        }

        private static func connect(to port: UInt16) throws -> Int32 {
            let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var isOn: Int32 = 1
            setsockopt(
                socket, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
            let status = withUnsafeBytes(of: &address) { bytes in
                Glibc.connect(
                    socket, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                    socklen_t(bytes.count))
            }
            guard status == 0 else { throw PeerError("The server on port \(port) cannot be reached.") }
            return socket
        }

        private static func send(_ number: Int, on socket: Int32) throws {
            var frame = [UInt8](repeating: 0, count: frame_bytes)
            withUnsafeBytes(of: number.littleEndian) { frame.replaceSubrange(0..<8, with: $0) }
            guard Glibc.send(socket, frame, frame.count, 0) == frame.count else {
                throw PeerError("A request cannot be sent.")
            }
        }

        private static func receive(on socket: Int32) throws -> UInt64 {
            var frame = [UInt8](repeating: 0, count: frame_bytes)
            guard recv(socket, &frame, frame.count, Int32(MSG_WAITALL)) == frame.count else {
                throw PeerError("The server ended before answering.")
            }
            return frame.withUnsafeBytes { UInt64(littleEndian: $0.load(as: UInt64.self)) }
        }
    }
#else
    import BenchmarkCore

    /// Why R4 cannot be run.
    let withoutServer: String? = "It was built without the package trait NIO."

    func requests(
        connections: Int, eventLoops: Int, on executor: (any TaskExecutor)?, isMixed: Bool
    ) throws -> Sample {
        throw PeerError("R4 was built without the package trait NIO.")
    }
#endif
