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

extension SchedulerDump {
    fileprivate var json: String {
        var object = JSON()
        object.add("name", JSON.string(name))
        object.add("threads", "\(threads)")
        object.add("running", "\(running)")
        object.add("pending", "\(pending)")
        object.add("executed", "\(executed)")
        object.add("replaced", "\(replaced)")
        object.add("exhausted", "\(exhausted)")
        return object.text
    }
}

/// An object on its way to text.
private struct JSON {
    private var members: [String] = []

    var text: String { "{" + members.joined(separator: ",") + "}" }

    mutating func add(_ key: String, _ value: String) { members.append("\"\(key)\":\(value)") }

    static func array(_ elements: [String]) -> String { "[" + elements.joined(separator: ",") + "]" }

    static func string(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
