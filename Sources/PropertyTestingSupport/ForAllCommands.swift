public import PropertyTesting
public import Testing

/// Checks in a test that a state machine answers as its model does, for commands that run one after another, and then
/// concurrently.
///
/// ```swift
/// @Test func theStackIsAStack() async {
///     await forAllCommands(of: Stack(), branches: 2)
/// }
/// ```
///
/// - Parameters:
///   - count: the number of commands that run one after another.
///   - branches: the number of tasks that run commands concurrently after that; 0: none.
///   - each: the number of commands that each task runs.
///   - repetitions: how often concurrent commands are run: in a single run they may not overlap.
///
/// Otherwise as ``forAll(_:cases:covering:examples:sourceLocation:_:)``.
public func forAllCommands<Machine: StateMachine>(
    of machine: Machine, count: ClosedRange<Int> = 0...20, branches: Int = 0, each: ClosedRange<Int> = 0...5,
    cases: Int = 100, repetitions: Int = 10, examples: ExampleDatabase? = .ofProcess,
    sourceLocation: SourceLocation = #_sourceLocation
) async {
    await forAll(
        CommandProgram.all(count: count, branches: branches, each: each), cases: cases, examples: examples,
        sourceLocation: sourceLocation
    ) { commands in
        for _ in 0..<(branches > 0 ? max(1, repetitions) : 1) {
            if let fault = await checkCommands(commands, of: machine) {
                Issue.record("\(fault)", sourceLocation: sourceLocation)
                return
            }
        }
    }
}
