// swift-tools-version: 6.3

// A chart whose parts change together or not at all, as two programs that print the same.

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A program, with its expected output next to it.
func program(_ name: String) -> Target {
    .executableTarget(
        name: name, dependencies: [.product(name: "Transactions", package: "CompositeOperations")],
        exclude: ["expected.txt"], swiftSettings: settings)
}

let package = Package(
    name: "pie-chart",
    dependencies: [.package(name: "CompositeOperations", path: "../..", traits: [])],
    targets: [program("by-hand"), program("logged")],
    swiftLanguageModes: [.v6]
)
