// swift-tools-version: 6.3

// A program whose tasks run on a scheduler of this repository, without a word about it in the tasks.

import PackageDescription

let package = Package(
    name: "default-executor",
    dependencies: [.package(name: "CompositeOperations", path: "../..", traits: [])],
    targets: [
        .executableTarget(
            name: "default-executor",
            dependencies: [
                .product(name: "Scheduling", package: "CompositeOperations"),
                .product(name: "SchedulingDefaultExecutor", package: "CompositeOperations"),
            ],
            exclude: ["expected.txt"])
    ],
    swiftLanguageModes: [.v6]
)
