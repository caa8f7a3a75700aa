// Helpers shared by the tests of this module, in addition to the helpers of all tests: sizes, and an error.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

/// A debug build is five to ten times slower, so it runs a fifth of the cases. A release build runs all of them.
#if DEBUG
    private let buildScale = 0.2
#else
    private let buildScale = 1.0
#endif

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * stressScale * buildScale)) }

struct TestError: Error, Equatable {
    var number = 0
}
