// StepOperation.swift - a step that takes the value of an earlier one. A separate class, so that a step is one object
// in addition to the user's closure, which is not wrapped in another closure.

internal import Runs

/// A leaf of a cascade whose block takes the value of an earlier step.
@usableFromInline
final class StepOperation<Input: Sendable, Success: Sendable>: COOperation<Success>, @unchecked Sendable {
    // Unchecked: as in `AnyOperation`; the field below is accessed like the block (I3).

    /// Set, with a reference, as long as the block is of the kind `step`.
    @exclusivity(unchecked) private var step: Unmanaged<OperationHandle<Input>>?

    private struct StepBlock { let call: @Sendable (Input) throws -> Success }

    @usableFromInline
    init(
        plainChildOf composite: __shared AnyOperation, using step: __shared OperationHandle<Input>,
        _ block: consuming @escaping @Sendable (Input) throws -> Success
    ) {
        self.step = .passRetained(step)
        super.init(.step, AnyClosure(StepBlock(call: block)), plainChildOf: composite)
    }

    /// Same as above.
    init(
        plainChildOf composite: __shared AnyOperation, using step: __shared OperationHandle<Input>,
        block: consuming AnyClosure
    ) {
        self.step = .passRetained(step)
        super.init(.step, block, plainChildOf: composite)
    }

    @usableFromInline
    init(
        within composite: AnyOperation, using step: OperationHandle<Input>, on target: (any ExecutionTarget)?,
        options: OperationOptions, _ block: @escaping @Sendable (Input) throws -> Success
    ) {
        self.step = .passRetained(step)
        super.init(body: .none, on: target, options: options, within: composite, admission: nil)
        (blockKind, self.block) = (.step, AnyClosure(StepBlock(call: block)))
        _ = setContext(.here(options))
    }

    /// A copy, whose block reads the value itself.
    private init(copyWith body: Body) {
        step = nil
        super.init(body: .none, on: nil, options: nil)
        self.body = body
    }

    /// Only an operation that keeps its block still has a step here, and such operations may form a chain.
    deinit { if let step { Releases.release([step.takeRetainedValue()]) } }

    @inline(__always)
    private func dropStep() {
        step?.release()
        step = nil
    }

    @usableFromInline
    override func releaseBlock() {
        super.releaseBlock()
        if !keepsBlock { dropStep() }
    }

    @usableFromInline
    override func takeBlock() -> [Any] {
        let block = block
        defer { dropStep() }
        return super.takeBlock() + [block, step?.takeUnretainedValue() as Any]
    }

    @usableFromInline
    override func execute(_ number: Int32) {
        guard blockKind == .step, let step else { return super.execute(number) }
        do {
            let input = step._withUnsafeGuaranteedRef { $0.finishedValue }
            finishByReturn(try block.typed(StepBlock.self).call(input), number)
        } catch {
            threw(error, number)
        }
    }

    @usableFromInline
    override var bodyForCopy: Body {
        guard blockKind == .step, let step = step?.takeUnretainedValue() else { return super.bodyForCopy }
        let call = block.typed(StepBlock.self).call
        return .value({ try call(step.valueForStep()) })
    }

    override func makeBlank(_ body: Body) -> COOperation<Success> {
        let copy = StepOperation(copyWith: body)
        copyPlace(to: copy)
        return copy
    }
}
