// BlocksOnStack.swift - in debug builds: the blocks on a thread's stack, so that a wait for one of them is detected.
//
// A wait may run blocks on the stack of the waiting block. No block below can return before those above it have, and an
// operation is settled only when its blocks have returned: so a wait above for an operation below could never end.

internal import Runs

/// The blocks of operations that have not returned to this thread, the innermost first.
enum BlocksOnStack {
    #if DEBUG
        static let areKnown = true

        private struct Frame {
            /// For a plain child, its composite.
            unowned(unsafe) let operation: AnyOperation
            let child: PlainNode?
            let below: UnsafeMutablePointer<Frame>?
        }

        private static let value = ThreadValue()

        private static var innermost: UnsafeMutablePointer<Frame>? {
            value.here?.assumingMemoryBound(to: Frame.self)
        }

        /// Calls a block of an operation, which the caller holds meanwhile.
        static func with(_ operation: AnyOperation, _ block: () -> Void) {
            push(Unmanaged.passUnretained(operation), nil, block)
        }

        /// Calls the block of a plain child of a composite.
        static func with<Answer>(
            _ composite: Unmanaged<AnyOperation>, _ child: PlainNode, _ block: () -> Answer
        ) -> Answer {
            push(composite, child, block)
        }

        private static func push<Answer>(
            _ operation: Unmanaged<AnyOperation>, _ child: PlainNode?, _ block: () -> Answer
        ) -> Answer {
            let below = innermost
            var frame = Frame(operation: operation.takeUnretainedValue(), child: child, below: below)
            return withUnsafeMutablePointer(to: &frame) { frame in
                value.set(frame)
                defer { value.set(below) }
                return block()
            }
        }

        /// Waits may nest deeply, and each walks the stack: this far at most.
        private static let most = 100

        /// Stops the process before a wait without a time limit for an operation that has a block on this stack, or is a
        /// composite around one.
        static func check(waitFor operation: AnyOperation) {
            var blocks: [AnyOperation] = []
            var next = innermost
            while let frame = next?.pointee, blocks.count < most {
                let block = frame.child.flatMap { child in frame.operation.look { child.object } }
                blocks.append(block ?? frame.operation)
                if block === operation || frame.operation.isPart(of: operation) {
                    let names = blocks.map { "\($0)" }.joined(separator: ", above ")
                    fatalError(
                        "CompositeOperations: a wait for \(operation), whose block is on the waiter's stack, could "
                            + "never end. On that stack: \(names)")
                }
                next = frame.below
            }
        }
    #else
        static let areKnown = false

        @inline(__always)
        static func with(_ operation: AnyOperation, _ block: () -> Void) { block() }

        @inline(__always)
        static func with<Answer>(
            _ composite: Unmanaged<AnyOperation>, _ child: PlainNode, _ block: () -> Answer
        ) -> Answer {
            block()
        }

        @inline(__always)
        static func check(waitFor operation: AnyOperation) {}
    #endif
}
