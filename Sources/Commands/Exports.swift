// Exports.swift - what users need from `Runs`: execution places, and delivery of notices.

@_exported public import Runs
