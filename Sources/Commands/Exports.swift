// Exports.swift - what users need of the module below this one: where code runs, and who is told.

@_exported public import Runs
