// Exports.swift - what users need from the module below: execution places, and delivery of notices.

@_exported public import Runs
