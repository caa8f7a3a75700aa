// StepOperation.swift - a step that is given the value of an earlier one. A class of its own, so that it is one object
// beside the user's closure, without another closure around that.

/// A leaf of a cascade whose block takes the value of an earlier step.
@usableFromInline
final class StepOperation<Input: Sendable, Success: Sendable>: COOperation<Success>, @unchecked Sendable {
    // Unchecked: as in `AnyOperation`; what is below is a block of I3.

    @exclusivity(unchecked) private var step: OperationHandle<Input>?
    @exclusivity(unchecked) private var block: (@Sendable (Input) throws -> Success)?

    @usableFromInline
    init(
        plainChildOf composite: __shared AnyOperation, using step: OperationHandle<Input>,
        _ block: @escaping @Sendable (Input) throws -> Success
    ) {
        self.step = step
        self.block = block
        super.init(.none, plainChildOf: composite)
    }

    @usableFromInline
    init(
        within composite: AnyOperation, using step: OperationHandle<Input>, on target: (any ExecutionTarget)?,
        options: OperationOptions, _ block: @escaping @Sendable (Input) throws -> Success
    ) {
        self.step = step
        self.block = block
        super.init(body: .none, on: target, options: options, within: composite, admission: nil)
    }

    @usableFromInline
    override var hasBlock: Bool { block != nil || super.hasBlock }

    @usableFromInline
    override func releaseBlock() {
        super.releaseBlock()
        if keepsBlock { return }
        block = nil
        step = nil
    }

    @usableFromInline
    override func execute(_ number: Int32) {
        // A block that was set since goes first.
        guard !super.hasBlock, let block, let step else { return super.execute(number) }
        do {
            finishByReturn(try block(step.finishedValue), number)
        } catch {
            returned(number, .threw(error))
        }
    }

    @usableFromInline
    override var bodyForCopy: Body {
        guard !super.hasBlock, let block, let step else { return super.bodyForCopy }
        return .value({ try block(step.finishedValue) })
    }
}
