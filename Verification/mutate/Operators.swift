/// A version of the core with one defect.
struct Mutant {
    /// File, function, the change, and the changed text: stable when lines move.
    var id: String
    let file: String
    let operation: String
    let text: String
}

/// One way to break C, wherever it can be applied.
struct MutationOperator: Sendable {
    let name: String
    let places: @Sendable (CSource) -> [(range: Range<Int>, of: Range<Int>, replacement: String)]

    func mutants(of source: CSource) -> [Mutant] {
        places(source).compactMap { place in
            guard let function = source.function(at: place.range.lowerBound) else { return nil }
            return Mutant(
                id: "\(source.name):\(function): \(name): \(source.oneLine(place.of))",
                file: source.name, operation: name,
                text: source.replacing(place.range, with: place.replacement))
        }
    }

    static let all = [relax, unfence, unwake, once, tear, unlock, forget, never, always, offByOne, compare]

    private static let orders: Set = ["acquire", "release", "acq_rel", "seq_cst"]
    private static let atomics: Set = [
        "csched_load", "csched_store", "csched_exchange", "csched_fetch_add", "csched_fetch_sub",
        "csched_fetch_or",
        "csched_fetch_and", "csched_cas", "csched_cas_weak",
    ]
    private static let wakes: Set = [
        "csched_futex_wake", "csched_idle_wake_one", "csched_idle_wake", "csched_idle_wake_all",
        "csched_idle_after_submit", "csched_idle_after_push", "csched_capacity_interrupt",
        "csched_watch_hurry",
        "csched_watch_note_reserve",
        "csched_capacity_leave", "unpark", "wake", "end_if_drained", "stop_searching", "give_places_back",
    ]

    /// Every memory order becomes relaxed. The order of a success becomes that of the failure, since C11 does not
    /// allow the latter to be stronger.
    static let relax = MutationOperator(name: "relaxed") { source in
        source.calls(where: atomics.contains).flatMap { call in
            let arguments = source.arguments(of: call.range)
            let isExchange = ["csched_cas", "csched_cas_weak"].contains(call.name)
            return arguments.indices.filter { orders.contains(source.string(arguments[$0])) }.compactMap {
                index in
                let isSuccess = isExchange && index + 1 < arguments.endIndex
                let weakest = isSuccess ? source.string(arguments[index + 1]) : "relaxed"
                return weakest == source.string(arguments[index])
                    ? nil : (arguments[index], call.range, weakest)
            }
        }
    }

    /// Every fence is removed.
    static let unfence = MutationOperator(name: "no fence") { source in
        source.calls { $0 == "csched_fence" || $0 == "csched_fence_heavy" }
            .compactMap { call in source.statement(of: call.range).map { ($0, call.range, ";") } }
    }

    /// Every wake-up is removed.
    static let unwake = MutationOperator(name: "no wake") { source in
        source.calls(where: wakes.contains)
            .compactMap { call in source.statement(of: call.range).map { ($0, call.range, ";") } }
    }

    /// Every loop that may wait or retry runs once.
    static let once = MutationOperator(name: "once") { source in
        source.words("while").compactMap { word in
            let open = source.skippingBlanks(from: word.upperBound)
            guard source.function(at: word.lowerBound) != nil, let close = source.closing(open) else {
                return nil
            }
            let next = source.code[source.skippingBlanks(from: close + 1)]
            return next == UInt8(ascii: ";")
                ? (
                    open..<close + 1, word.lowerBound..<close + 1,
                    "(false && \(source.string(open..<close + 1)))"
                )
                : (word, word.lowerBound..<close + 1, "if")
        }
    }

    /// Every compare-exchange succeeds, and every read-modify-write is a load and a store.
    static let tear = MutationOperator(name: "not atomic") { source in
        source.calls { atomics.contains($0) && $0 != "csched_load" && $0 != "csched_store" }.map { call in
            let name = call.range.lowerBound..<call.range.lowerBound + call.name.utf8.count
            return (name, call.range, call.name.replacing("csched_", with: "csched_torn_"))
        }
    }

    /// Every read section and every mutex is removed; removing only one end is a separate mutant.
    static let unlock = MutationOperator(name: "no section") { source in
        let pairs = [
            "csched_reclaim_enter": "csched_reclaim_exit", "pthread_mutex_lock": "pthread_mutex_unlock",
        ]
        let calls = source.calls { pairs.keys.contains($0) || pairs.values.contains($0) }
        return calls.indices.compactMap { index in
            let call = calls[index]
            guard let end = pairs[call.name], let first = source.statement(of: call.range),
                let partner = calls[index...].first(where: { $0.name == end }),
                source.function(at: partner.range.lowerBound) == source.function(at: first.lowerBound),
                let last = source.statement(of: partner.range)
            else { return nil }
            return (
                first.lowerBound..<last.upperBound, call.range,
                ";" + source.string(first.upperBound..<last.lowerBound) + ";"
            )
        }
    }

    /// Every store is removed, and every read-modify-write whose result is unused.
    static let forget = MutationOperator(name: "left out") { source in
        source.calls { atomics.contains($0) && $0 != "csched_load" || $0 == "csched_reclaim_retire" }
            .compactMap { call in source.statement(of: call.range).map { ($0, call.range, ";") } }
    }

    /// Every condition that reads shared memory is never true.
    static let never = MutationOperator(name: "never") { source in
        conditions(of: source).map {
            ($0.condition, $0.statement, "(\(source.string($0.condition)) && false)")
        }
    }

    /// Every such condition is always true.
    static let always = MutationOperator(name: "always") { source in
        conditions(of: source).map {
            ($0.condition, $0.statement, "(\(source.string($0.condition)) || true)")
        }
    }

    private static func conditions(of source: CSource) -> [(condition: Range<Int>, statement: Range<Int>)] {
        let shared = [
            "csched_load(", "csched_cas(", "csched_cas_weak(", "csched_exchange(", "csched_fetch_",
            "_is_empty(",
            "_is_quiet(", "csched_deque_depth(", "csched_is_", "done(", "outstanding(", "generation(",
            "csched_idle_found(", "control",
        ]
        return source.words("if").compactMap { word in
            let open = source.skippingBlanks(from: word.upperBound)
            guard source.function(at: word.lowerBound) != nil, let close = source.closing(open) else {
                return nil
            }
            let condition = source.string(open..<close + 1)
            guard shared.contains(where: condition.contains) else { return nil }
            return (open..<close + 1, word.lowerBound..<close + 1)
        }
    }

    /// Every step by one becomes a step by zero.
    static let offByOne = MutationOperator(name: "off by one") { source in
        ["+ 1", "- 1"].flatMap { step in
            source.words("1").compactMap { word in
                let range = word.lowerBound - 2..<word.upperBound
                guard range.lowerBound > 0, source.string(range) == step,
                    source.function(at: word.lowerBound) != nil
                else { return nil }
                return (word, line(of: word, in: source), "0")
            }
        }
    }

    /// Every comparison that includes its bound excludes it, and conversely.
    static let compare = MutationOperator(name: "bound") { source in
        let others = [" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "]
        return others.sorted { $0.key < $1.key }.flatMap { operand, other in
            source.ranges(of: operand)
                .filter { source.function(at: $0.lowerBound) != nil }
                .map { ($0, line(of: $0, in: source), other) }
        }
    }

    private static func line(of range: Range<Int>, in source: CSource) -> Range<Int> {
        let newline = UInt8(ascii: "\n")
        let start = source.text[..<range.lowerBound].lastIndex(of: newline).map { $0 + 1 } ?? 0
        let end = source.code[range.upperBound...].firstIndex(of: newline) ?? source.text.count
        let comment = source.code[start..<end].lastIndex { $0 != UInt8(ascii: " ") } ?? end
        return start..<comment + 1
    }
}

extension [Mutant] {
    /// Numbers the mutants of one function that have the same name.
    func numbered() -> [Mutant] {
        var seen: [String: Int] = [:]
        return map { mutant in
            var mutant = mutant
            let count = seen[mutant.id, default: 0] + 1
            seen[mutant.id] = count
            if count > 1 { mutant.id += " #\(count)" }
            return mutant
        }
    }
}
