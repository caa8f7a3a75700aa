// Six attempts to change a chart. Refused attempts leave it unchanged.

import Transactions

let chart = PieChart()

@MainActor func attempt(_ change: () throws -> Void) {
    do { try chart.transaction { try change() } } catch { print(error) }
    let parts = chart.elements.values.sorted { $0.label < $1.label }.map { "\($0.label), \($0.percentage)%" }
    print(parts.isEmpty ? "empty" : parts.joined(separator: "; "))
}

@MainActor func set(_ first: Int, _ second: Int) {
    chart.elements["Part #1"]?.percentage = first
    chart.elements["Part #2"]?.percentage = second
}

attempt {
    chart.addElement(label: "Part #1", percentage: 60)
    chart.addElement(label: "Part #2", percentage: 50)
}
attempt {
    chart.addElement(label: "Part #1", percentage: 50)
    chart.addElement(label: "Part #2", percentage: 50)
}
attempt { set(0, 100) }
attempt { set(120, -20) }  // both are wrong: the change made first is named, in every run
attempt {
    chart.elements["Part #1"]?.percentage = -5
    try chart.removeElement(label: "Part #1")
    chart.elements["Part #2"]?.percentage = 100
}
attempt { try chart.removeElement(label: "Part #2") }
