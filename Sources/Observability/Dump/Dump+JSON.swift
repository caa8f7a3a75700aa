// Dump+JSON.swift - a dump as JSON, without Foundation: the same as a JSONEncoder gives, in the order of the declarations.

extension Dump {
    /// What a `JSONDecoder` makes a dump of again.
    public var json: String {
        var object = JSON()
        object.add("limit", "\(limit)")
        object.add("isOn", "\(isOn)")
        object.add("problems", JSON.array(problems.map(\.json)))
        object.add("trees", trees.json)
        object.add("queues", queues.json)
        object.add("invokers", invokers.json)
        object.add("transactions", transactions.json)
        object.add("actions", actions.json)
        object.add("waits", JSON.array(waits.map(\.json)))
        object.add("omittedWaits", "\(omittedWaits)")
        object.add("schedulers", JSON.array(schedulers.map(\.json)))
        return object.text
    }
}

extension Dump.Section {
    fileprivate var json: String {
        var object = JSON()
        object.add("nodes", JSON.array(nodes.map(\.json)))
        object.add("omitted", "\(omitted)")
        return object.text
    }
}

extension Dump.Node {
    fileprivate var json: String {
        var object = JSON()
        object.add("depth", "\(depth)")
        object.add("kind", JSON.string(kind))
        if let name { object.add("name", JSON.string(name)) }
        object.add("id", JSON.string(id))
        object.add("state", JSON.string(state))
        if let age { object.add("age", "\(age)") }
        object.add("notes", JSON.array(notes.map(JSON.string)))
        object.add("waitsFor", JSON.array(waitsFor.map(\.json)))
        object.add("omitted", "\(omitted)")
        return object.text
    }
}

extension Dump.Reason {
    fileprivate var json: String {
        var object = JSON()
        object.add("why", JSON.string(why))
        object.add("id", JSON.string(id))
        return object.text
    }
}

extension Dump.Wait {
    fileprivate var json: String {
        var object = JSON()
        if let waiter { object.add("waiter", JSON.string(waiter)) }
        if let thread { object.add("thread", "\(thread)") }
        object.add("id", JSON.string(id))
        object.add("hasLimit", "\(hasLimit)")
        object.add("age", "\(age)")
        return object.text
    }
}

extension Dump.Problem {
    fileprivate var json: String {
        var object = JSON()
        object.add("kind", JSON.string(kind.rawValue))
        object.add("text", JSON.string(text))
        object.add("ids", JSON.array(ids.map(JSON.string)))
        return object.text
    }
}

extension SchedulerState {
    fileprivate var json: String {
        var object = JSON()
        object.add("id", "\(id)")
        object.add("name", JSON.string(name))
        object.add("isSuspended", "\(isSuspended)")
        object.add("isClosing", "\(isClosing)")
        object.add("queues", JSON.array(queues.map(\.json)))
        object.add("workers", JSON.array(workers.map(\.json)))
        return object.text
    }
}

extension SchedulerState.Queue {
    fileprivate var json: String {
        var object = JSON()
        object.add("priority", JSON.string(priority))
        object.add("waiting", "\(waiting)")
        object.add("submitted", "\(submitted)")
        return object.text
    }
}

extension SchedulerState.Worker {
    fileprivate var json: String {
        var object = JSON()
        object.add("index", "\(index)")
        object.add("thread", "\(thread)")
        object.add("activity", JSON.string(activity.rawValue))
        object.add("isReplaced", "\(isReplaced)")
        object.add("executed", "\(executed)")
        object.add("stolen", "\(stolen)")
        object.add("parked", "\(parked)")
        object.add("waiting", "\(waiting)")
        if let body { object.add("body", body.json) }
        if let stack { object.add("stack", stack.json) }
        return object.text
    }
}

extension SchedulerState.Body {
    fileprivate var json: String {
        var object = JSON()
        if let function { object.add("function", JSON.string(function)) }
        object.add("age", "\(age)")
        return object.text
    }
}

extension ThreadStack {
    fileprivate var json: String {
        var object = JSON()
        object.add("functions", JSON.array(functions.map(JSON.string)))
        if let reason { object.add("reason", JSON.string(reason)) }
        return object.text
    }
}
