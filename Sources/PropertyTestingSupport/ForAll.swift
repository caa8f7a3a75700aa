import Glibc
public import PropertyTesting
public import Testing

/// A label that enough of the cases must have, so a property is not checked only on trivial cases.
public struct Coverage<Value> {
    let percent: Int
    let label: String
    let applies: (Value) -> Bool

    /// Requires that `applies` is true for at least `percent` of the cases; not checked when that is less than five cases.
    public static func cover(_ percent: Int, _ label: String, _ applies: @escaping (Value) -> Bool)
        -> Coverage
    {
        Coverage(percent: percent, label: label, applies: applies)
    }
}

/// Checks in a test that `property` holds for the values of a generator. A counterexample is shrunk, and recorded as one
/// issue with the line that replays it.
///
/// Inside, a failed `#expect` or `#require` and a thrown error all mean that a case does not hold. The seed comes from the
/// test's name, so a test that passed passes again; `PROPERTY_SEED`, `PROPERTY_CASES` and `PROPERTY_REPLAY` in the
/// environment override this.
///
/// - Parameter examples: The database of counterexamples; those of earlier runs are checked first. nil: none are kept.
public nonisolated(nonsending) func forAll<Value>(
    _ generator: Generator<Value>, cases: Int = 100, covering: [Coverage<Value>] = [],
    examples: ExampleDatabase? = .ofProcess, sourceLocation: SourceLocation = #_sourceLocation,
    _ property: (Value) async throws -> Void
) async {
    let name = Test.current.map(stableName) ?? "no test"
    // A test may check properties of several types.
    let kept = "\(name) \(Value.self)"
    let known = examples?.tapes(of: kept) ?? []
    let options = PropertyOptions(
        cases: environment("PROPERTY_CASES").flatMap { Int($0) } ?? cases,
        seed: environment("PROPERTY_SEED").flatMap { UInt64($0) } ?? hash(of: name),
        replay: environment("PROPERTY_REPLAY").flatMap { Tape($0) },
        examples: known)
    let outcome = await check(
        generator, options: options,
        classify: { value in covering.filter { $0.applies(value) }.map(\.label) },
        { value in await reason(value, property) })
    if let examples, options.replay == nil { keep(outcome, known, in: examples, as: kept) }
    switch outcome {
    case .failed(let counterexample):
        Issue.record("\(counterexample)", sourceLocation: sourceLocation)
    case .gaveUp(let cases, let discarded):
        Issue.record(
            "\(discarded) cases were discarded, and only \(cases) counted: the generator is too narrow.",
            sourceLocation: sourceLocation)
    case .held(let cases, let labels):
        // A percentage of few cases says nothing: at least five should have the label.
        for coverage in covering where options.replay == nil && cases * coverage.percent >= 500 {
            let percent = 100 * (labels[coverage.label] ?? 0) / max(1, cases)
            if percent < coverage.percent {
                Issue.record(
                    "Only \(percent) % of the cases are '\(coverage.label)'; at least \(coverage.percent) % should be.",
                    sourceLocation: sourceLocation)
            }
        }
    }
}

private func keep<Value>(
    _ outcome: PropertyOutcome<Value>, _ known: [Tape], in examples: ExampleDatabase, as name: String
) {
    var found: Tape?
    var held = known
    if case .failed(let counterexample) = outcome {
        found = counterexample.tape
        if let example = counterexample.example { held = Array(known.prefix { $0 != example }) }
    }
    do { try examples.note(found, held: held, of: name) } catch {
        warn(
            "forAll: counterexamples are not kept: \(error). Set PROPERTY_EXAMPLES to another folder or 'off'."
        )
    }
}

/// Warns once per process.
private func warn(_ sentence: String) {
    let isFirst = hasWarned.withLock { hasWarned in
        defer { hasWarned = true }
        return !hasWarned
    }
    let line = "\(sentence)\n"
    if isFirst { _ = write(STDERR_FILENO, line, line.utf8.count) }
}

private let hasWarned = Locked(false)

/// Runs the property once; the first issue or error is the reason why it does not hold.
private nonisolated(nonsending) func reason<Value>(_ value: Value, _ property: (Value) async throws -> Void)
    async -> String?
{
    let found = FirstReason()
    await swallowingIssues(into: found) {
        do { try await property(value) } catch { found.note("threw \(error)") }
    }
    return found.take()
}

/// The module, the suites and the function. A test's ID ends with its position in the file, which is left out: a new line
/// above the test must not change its seed.
private func stableName(_ test: Test) -> String {
    "\(test.id)".split(separator: "/").filter { !$0.contains(".swift:") }.joined(separator: "/")
}

/// FNV-1a: the same in every process, unlike `Hasher`.
private func hash(of text: String) -> UInt64 {
    text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
}
