// Downloads: a cascade of transactional operations. A file is requested again when the connection is lost, after a
// growing pause. A file that cannot be loaded fails the whole download; and a user may lose patience.

import CompositeOperations

/// Loads files concurrently.
@discardableResult
func load(_ files: [RemoteFile], in scope: CascadeScope) -> COTransaction<[Int]> {
    scope.transactionalOperation { group in
        .values(
            of: files.map { file in
                let again = COOperationResolver(
                    maxAttempts: 4,
                    backoff: .exponential(first: .seconds(1), factor: 2, limit: .seconds(3), jitter: 0),
                    clock: file.clock)
                return group.operation(options: OperationOptions(name: file.name, resolver: again)) {
                    try await file.load()
                }
            })
    }
}

/// Loads previews, then pictures, and counts the bytes.
func download(previews: [RemoteFile], pictures: [RemoteFile]) -> COCascade<Int> {
    cascadeOperation { cascade in
        let first = load(previews, in: cascade)
        let second = load(pictures, in: cascade)
        let bytes = cascade.operation(using: second) { second in
            try await (first.value + second).reduce(0, +)
        }
        return .value(of: bytes)
    }
}

func report(_ title: String, _ outcome: Outcome<Int>, _ files: [RemoteFile]) {
    print(title)
    for file in files {
        let history = file.history.isEmpty ? "not asked for" : file.history.joined(separator: ", ")
        print("  \(file.name): \(history)")
    }
    switch outcome {
    case .finished(let bytes): print("  finished: \(bytes) bytes")
    case .failed(let error): print("  failed: \(error)")
    case .cancelled(let reason): print("  cancelled: \(reason.kind)")
    }
}

// Connections are lost, but not too often.
let previews = [RemoteFile("a.preview", size: 10, losses: 1), RemoteFile("b.preview", size: 20)]
let pictures = [
    RemoteFile("a.picture", size: 1000, losses: 3), RemoteFile("b.picture", size: 2000, losses: 2),
]
let good = download(previews: previews, pictures: pictures)
report("a bad line", await good.outcome, previews + pictures)

// One file's connection is lost too often: the pictures are not even requested.
let lost = RemoteFile("c.preview", size: 1, losses: 9)
let never = RemoteFile("c.picture", size: 1)
let bad = download(previews: [lost], pictures: [never])
report("no line", await bad.outcome, [lost, never])

// One server never answers. The user cancels when the other file has arrived.
let quick = RemoteFile("d.preview", size: 5)
let silent = RemoteFile("e.preview", size: 5, isSilent: true)
let endless = download(previews: [quick, silent], pictures: [never])
for await note in quick.notes where note.hasSuffix("bytes") { break }
for await _ in silent.notes { break }
print("cancelled by this call: \(endless.cancel())")
report("a user without patience", await endless.outcome, [quick, silent, never])
