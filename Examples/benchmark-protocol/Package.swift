// swift-tools-version: 6.3

// A benchmark that `benchmarks ab` can compare between two commits. It has no dependencies.

import PackageDescription

let package = Package(
    name: "benchmark-protocol",
    targets: [.executableTarget(name: "checksum-benchmark")],
    swiftLanguageModes: [.v6]
)
