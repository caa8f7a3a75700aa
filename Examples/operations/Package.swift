// swift-tools-version: 6.3

// Examples of the operations of this repository: programs that print what happened.

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A program, with its expected output next to it.
func program(_ name: String, with products: [String] = ["CompositeOperations"]) -> Target {
    .executableTarget(
        name: name, dependencies: products.map { .product(name: $0, package: "CompositeOperations") },
        exclude: ["expected.txt"], swiftSettings: settings)
}

let package = Package(
    name: "operations",
    dependencies: [.package(name: "CompositeOperations", path: "../..", traits: [])],
    targets: [
        program("flows"),
        program("download"),
        program("sync"),
        program("run-loop", with: ["CompositeOperations", "CompositeOperationsFoundation"]),
        program("main-thread", with: ["CompositeOperations", "CompositeOperationsFoundation"]),
    ],
    swiftLanguageModes: [.v6]
)
