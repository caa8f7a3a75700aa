// ContextOfTests.swift - the testing library runs tests with its own task-local values. So each operation would have a
// context, and would not be a plain one, as most operations are. These values are therefore disregarded, unless
// OPERATIONS_CONTEXT is in the environment.

import Glibc

/// Whether each operation of a test has a context.
package let allHaveContexts = getenv("OPERATIONS_CONTEXT") != nil
