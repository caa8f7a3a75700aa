// swift-tools-version: 6.3

// Examples of actions: a program that prints what happened.

import PackageDescription

let package = Package(
    name: "actions",
    dependencies: [.package(name: "CompositeOperations", path: "../..", traits: [])],
    targets: [
        .executableTarget(
            name: "bound-search",
            dependencies: [
                .product(name: "Actions", package: "CompositeOperations"),
                .product(name: "Commands", package: "CompositeOperations"),
            ],
            exclude: ["expected.txt"],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
