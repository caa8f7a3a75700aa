// Exports.swift - what users need from the module below: where code runs, and who is told of events.

@_exported public import Runs
