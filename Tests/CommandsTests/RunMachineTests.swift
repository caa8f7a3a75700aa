// RunMachineTests - the states of a run, against a plain description of them, under random calls.

@testable import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// A call that can be made on a run.
private enum Call: Hashable, Sendable {
    case accept, begin, claim
    case end(finished: Bool, RunMachine.Origin?)
    case endAgain(finished: Bool, isRolledBack: Bool)
    case beginUndo(goesOn: Bool)
    case endUndo(succeeded: Bool)
}

private let calls = Generator<Call>.frequency([
    (3, Generator<Call>.element(of: [.accept, .begin, .claim, .claim])),
    (
        2,
        Generator<Call>.element(
            of: [true, false].flatMap { finished in
                [
                    .end(finished: finished, nil), .end(finished: finished, .ready),
                    .end(finished: finished, .beforeStart),
                ]
            })
    ),
    (
        1,
        Generator<Call>.element(of: [
            .endAgain(finished: true, isRolledBack: true), .endAgain(finished: false, isRolledBack: true),
            .endAgain(finished: false, isRolledBack: false),
        ])
    ),
    (
        2,
        Generator<Call>.element(of: [
            .beginUndo(goesOn: false), .beginUndo(goesOn: true), .endUndo(succeeded: true),
            .endUndo(succeeded: false),
        ])
    ),
])

@Suite(.watched(testLimit), .leavesNothing) struct RunMachineTests {
    /// I1 to I3.
    @Test func `a run begins once, has one outcome, and runs again only after an undo`() async {
        await forAll(.array(of: calls, count: 1...40), cases: 1_000) { program in
            var machine = RunMachine()
            var (begun, outcomes) = (0, 0)
            for call in program {
                let before = machine
                switch call {
                case .accept:
                    let accepted = machine.accept()
                    #expect(accepted == (before.state == .ready) && (accepted || machine == before))
                case .begin:
                    let begins = machine.begin()
                    #expect(begins == (before.state == .accepted) && (begins || machine == before))
                    if begins { begun += 1 }
                case .claim:
                    let claim = try? machine.claim()
                    switch before.state {
                    case .ready, .accepted:
                        #expect(claim == .first)
                        begun += 1
                    case .undone: #expect(claim == .again && machine.hasOutcome)
                    default: #expect(claim == nil && machine == before)
                    }
                    if claim != nil { #expect(machine.state == .executing) }
                case .end(let finished, let origin):
                    let isOutcome = machine.end(finished: finished, from: origin)
                    let mayEnd =
                        switch origin {
                        case nil: before.state == .executing
                        case .ready: before.state == .ready
                        case .beforeStart: before.state == .ready || before.state == .accepted
                        }
                    #expect(isOutcome == (mayEnd && !before.hasOutcome) && (isOutcome || machine == before))
                    if isOutcome { outcomes += 1 }
                case .endAgain(let finished, let isRolledBack):
                    // Called only on a run that was claimed again.
                    guard before.state == .executing, before.hasOutcome else { continue }
                    machine.endAgain(finished: finished, isRolledBack: isRolledBack)
                    #expect(machine.state == (finished ? .finished : isRolledBack ? .undone : .broken))
                case .beginUndo(let goesOn):
                    let refusal: CommandUsageError?
                    do throws(CommandUsageError) {
                        try machine.beginUndo(goesOn: goesOn)
                        refusal = nil
                    } catch { refusal = error }
                    let mayBegin = before.state == .finished || goesOn && before.state == .broken
                    #expect((refusal == nil) == mayBegin)
                    #expect(machine.state == (mayBegin ? .undoing : before.state))
                case .endUndo(let succeeded):
                    guard before.state == .undoing else { continue }
                    machine.endUndo(succeeded: succeeded)
                    #expect(machine.state == (succeeded ? .undone : .broken))
                }
                #expect(machine.hasOutcome == (outcomes == 1) && begun <= 1 && outcomes <= 1)
                #expect(!before.hasOutcome || machine.hasOutcome)
            }
        }
    }
}
