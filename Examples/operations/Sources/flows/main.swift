// The four operations of the README of 2013, and how they combine.

import CompositeOperations
import Dispatch
import Synchronization

/// A sum to which several operations add.
final class Sum: Sendable {
    private let sum = Mutex(0)
    var value: Int { sum.withLock { $0 } }
    @discardableResult func add(_ number: Int) -> Int {
        sum.withLock {
            $0 += number
            return $0
        }
    }
}

// MARK: operation - one block with one explicit end

print("operation")
let simple = operation(on: concurrentQueue()) { operation in
    print("  does its work")
    operation.finish()
}
simple.wait()
print("  finished: \(simple.isFinished)")

// MARK: syncOperation - the caller waits until finish is called

print("syncOperation")
syncOperation { sync in
    DispatchQueue.global().async {
        print("  in another queue")
        sync.finish()
    }
}
print("  the flow goes on")

// MARK: transactionalOperation - all children at once, one handler when all are done

COSetDefaultQueue(concurrentQueue())

print("transactionalOperation")
syncOperation { sync in
    let sum = Sum()
    transactionalOperation { transaction in
        for number in 1...3 {
            transaction.operation { operation in
                sum.add(number)
                operation.finish()
            }
        }
    } completion: {
        print("  all three are done: \(sum.value)")
        sync.finish()
    } cancellation: { _ in
        print("  not called")
    }
}

// MARK: ... one of which is cancelled: the handler decides

print("transactionalOperation, one child of which is cancelled twice")
syncOperation { sync in
    let tries = Sum()
    transactionalOperation { transaction in
        transaction.operation { operation in operation.finish() }
        transaction.operation { operation in
            if tries.add(1) < 3 { operation.cancel() } else { operation.finish() }
        }
    } completion: {
        print("  completed with attempt \(tries.value)")
        sync.finish()
    } cancellation: { transaction in
        print("  attempt \(transaction.attempt): child \(transaction.causes[0].index!) was cancelled")
        transaction.awake()  // what has finished is kept
    }
}

// MARK: cascadeOperation - one step after another, each on its own queue

print("cascadeOperation")
let queue1 = serialQueue("first")
let queue2 = DispatchQueue(label: "second")
let queue3 = COOperationQueue(runningLimit: 1)
syncOperation { sync in
    cascadeOperation { cascade in
        cascade.operation(on: queue1) { operation in
            print("  first job")
            operation.finish()
        }
        cascade.operation(on: queue2) { operation in
            print("  second job")
            operation.finish()
        }
        cascade.operation(on: queue3) { operation in
            print("  third job")
            operation.finish()
        }
        cascade.operation { operation in
            print("  fourth job")
            operation.finish()
        }
        print("  all jobs are registered")
    } completion: {
        print("  completion")
        sync.finish()
    }
}

// MARK: Combined, with values

print("combined")
let squares = cascadeOperation { cascade in
    let numbers = cascade.transactionalOperation { group in
        .values(of: (1...4).map { number in group.operation { number * number } })
    }
    let sum = cascade.operation(using: numbers) { numbers in
        print("  in the order of registration: \(numbers)")
        return numbers.reduce(0, +)
    }
    return .value(of: sum)
}
if case .finished(let sum)? = squares.wait() { print("  their sum: \(sum)") }
