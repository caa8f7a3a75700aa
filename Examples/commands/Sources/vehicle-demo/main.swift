// Saves vehicles to a backend, a database and a log, in batches of five; with --fail, the backend fails.
//
// Source: the article Design Patterns in Swift: Command Pattern, whose rollback ran in forward order.

let isOnline = !CommandLine.arguments.contains("--fail")
await VehicleClient(isOnline: isOnline) { print($0) }.run()
