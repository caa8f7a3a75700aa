// swift-tools-version: 6.3

// Examples of the scheduler of this repository: programs that print what happened.

import PackageDescription

/// A program, with its expected output next to it.
func program(_ name: String, with products: [String] = ["Scheduling"]) -> Target {
    .executableTarget(
        name: name, dependencies: products.map { .product(name: $0, package: "CompositeOperations") },
        exclude: ["expected.txt"],
        swiftSettings: [
            .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
        ])
}

let package = Package(
    name: "scheduling",
    dependencies: [.package(name: "CompositeOperations", path: "../..", traits: [])],
    targets: [
        program("default-executor", with: ["Scheduling", "SchedulingDefaultExecutor"]),
        program("first-steps"),
        program("tracing"),
    ],
    swiftLanguageModes: [.v6]
)
