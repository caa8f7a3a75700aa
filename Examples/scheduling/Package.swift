// swift-tools-version: 6.3

// First steps with the scheduler, at the top level of a program.

import PackageDescription

let package = Package(
    name: "scheduling",
    dependencies: [.package(name: "CompositeOperations", path: "../..", traits: [])],
    targets: [
        .executableTarget(
            name: "first-steps",
            dependencies: [.product(name: "Scheduling", package: "CompositeOperations")],
            exclude: ["expected.txt"],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
