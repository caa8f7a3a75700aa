// Exports.swift - the module below this one, which users need: execution targets, outcomes and diagnostics.

@_exported public import Runs
