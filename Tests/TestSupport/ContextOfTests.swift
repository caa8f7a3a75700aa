// ContextOfTests.swift - the testing library runs tests with task-local values of its own, so that each operation would have a
// context, and be none of the plain ones that most are. So these values are disregarded; with OPERATIONS_CONTEXT in the
// environment they are not.

import Glibc

/// Whether each operation of a test has a context.
package let allHaveContexts = getenv("OPERATIONS_CONTEXT") != nil
