import Commands

/// Creates commands, and passes them to an invoker, which decides when they run.
struct VehicleClient {
    let isOnline: Bool
    let show: @Sendable (String) -> Void

    init(isOnline: Bool, show: @escaping @Sendable (String) -> Void) {
        self.isOnline = isOnline
        self.show = show
    }

    func run() async {
        let invoker = BatchInvoker(size: 5)
        let vehicle = Vehicle(name: "first vehicle")
        let send = SendVehicle(api: VehicleAPI(vehicle: vehicle, isOnline: isOnline, show: show))
        let save = SaveVehicle(dao: VehicleDAO(vehicle: vehicle, show: show))
        let log = LogVehicle(logger: VehicleLogger(vehicle: vehicle, show: show))

        invoker.addCommand(command: send)
        invoker.addCommand(command: save)
        invoker.addCommand(command: log)
        invoker.addCommand(
            command: TransactionCommand(
                commands: [log, save, send, log], options: TransactionOptions(observer: observe)))
        let other = Vehicle(name: "Another Vehicle")
        invoker.addCommand(command: LogVehicle(logger: VehicleLogger(vehicle: other, show: show)))

        await invoker.shutdown(.run)
    }

    private var observe: @Sendable (TransactionEvent) -> Void {
        { [show] event in
            switch event {
            case .started: show("Transaction started")
            case .failed(_, let error): show("Transaction failed: failure(\(String(reflecting: error)))")
            default: break
            }
        }
    }
}

// MARK: Commands, which know receivers

struct SendVehicle: UndoableCommand {
    let api: VehicleAPI

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> {
        try api.sendToBackend()
        return Performed()
    }

    func undo(_ undo: Void, _ context: CommandContext) async throws { api.deleteFromBackend() }
}

struct SaveVehicle: UndoableCommand {
    let dao: VehicleDAO

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> {
        dao.save()
        return Performed()
    }

    func undo(_ undo: Void, _ context: CommandContext) async throws { dao.delete() }
}

struct LogVehicle: UndoableCommand {
    let logger: VehicleLogger

    var undoability: Undoability { .irreversible("a log is never shortened") }

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> {
        logger.appendToLogfile()
        return Performed()
    }

    func undo(_ undo: Void, _ context: CommandContext) async throws {
        logger.show("Cannot undo a logging operation")
    }
}

// MARK: Receivers, which know no commands

struct Vehicle: Sendable {
    let name: String
}

enum VehicleAPIError: Error {
    case APIError
}

struct VehicleAPI: Sendable {
    let vehicle: Vehicle
    let isOnline: Bool
    let show: @Sendable (String) -> Void

    func sendToBackend() throws {
        show("Sending the vehicle '\(vehicle.name)' to backend!")
        show(isOnline ? "Success" : "Failure")
        if !isOnline { throw VehicleAPIError.APIError }
    }

    func deleteFromBackend() { show("Deleted the vehicle '\(vehicle.name)' from the backend") }
}

struct VehicleDAO: Sendable {
    let vehicle: Vehicle
    let show: @Sendable (String) -> Void

    func save() { show("Saved the vehicle '\(vehicle.name)' to DB!") }
    func delete() { show("Deleted the vehicle '\(vehicle.name)' from database") }
}

struct VehicleLogger: Sendable {
    let vehicle: Vehicle
    let show: @Sendable (String) -> Void

    func appendToLogfile() {
        show("This class will append the logfile with a vehicle '\(vehicle.name)'")
    }
}
