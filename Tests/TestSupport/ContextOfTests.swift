// ContextOfTests.swift - the testing library runs tests with its own task-local values. So each operation of a test
// would have a context, whereas most operations elsewhere are plain. These values are therefore disregarded, unless
// OPERATIONS_CONTEXT is in the environment.

import Glibc

/// Whether each operation of a test has a context.
package let allHaveContexts = getenv("OPERATIONS_CONTEXT") != nil
