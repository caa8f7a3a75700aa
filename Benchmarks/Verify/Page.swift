import ConformanceTesting
import Mustache
import PropertyTesting

extension Matrix {
    /// As a page: laws by subjects, and each counterexample drawn with a column for each thread.
    func page() throws -> String {
        let rows = laws.map { law -> [String: Any] in
            let cells = subjects.map { subject -> [String: Any] in
                let verdict = entry(law, subject)?.verdict
                return [
                    "kind": verdict.map { $0.word.replacing(" ", with: "-") } ?? "none",
                    "text": verdict?.short ?? "", "title": verdict?.description ?? "not checked",
                ]
            }
            return [
                "id": law.id, "sentence": law.sentence.replacing("`", with: ""),
                "saboteur": law.saboteur.name,
                "cells": cells,
            ]
        }
        let counterexamples = entries.compactMap { entry -> [String: Any]? in
            guard let found = entry.verdict.counterexample else { return nil }
            var drawn: [String: Any] = [
                "law": entry.law.id, "sentence": entry.law.sentence, "subject": entry.subject,
                "reason": found.reason, "load": found.load.description, "before": found.casesBefore,
                "replay": "verify replay --subject '\(entry.subject)' --law \(entry.law.id) \(found.tape)",
            ]
            if let trace = found.trace {
                drawn["threads"] = trace.threads
                drawn["events"] = trace.events.map { event -> [String: Any] in
                    ["cells": trace.threads.indices.map { $0 == event.thread ? event.text : "" }]
                }
            }
            return drawn
        }
        let template = try MustacheTemplate(string: Self.template)
        return template.render(
            [
                "subjects": subjects, "rows": rows, "counterexamples": counterexamples,
                "counts": counts, "cases": cases, "seconds": Int(seconds), "seed": seed,
            ] as [String: Any])
    }

    private static let template = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Laws of scheduling</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <style>
        :root { color-scheme: light dark; --line: #8884; --good: #2a7d46; --bad: #c0392b; --dim: #888 }
        body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem }
        .wide { overflow-x: auto }
        table { border-collapse: collapse }
        th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
        th.law, td.law { text-align: left; white-space: normal; min-width: 22rem }
        thead th { vertical-align: bottom; font-weight: 600 }
        .holds { color: var(--good) } .violated, .failed { color: #fff; background: var(--bad); font-weight: 700 }
        .blind { color: var(--bad) } .not-claimed, .none { color: var(--dim) }
        .saboteur { color: var(--dim); font-size: .85em; display: block }
        .trace td, .trace th { text-align: left; border-left: 1px solid var(--line); font-family: ui-monospace, monospace;
          font-size: .85em; padding: .1rem .7rem; border-bottom: 0 }
        .trace td:not(:empty) { background: #4a90d922 }
        code { font-size: .9em }
        </style></head><body>
        <h1>Laws of scheduling</h1>
        <p>{{counts}}; {{cases}} cases in {{seconds}} s, seed {{seed}}. A number says in how many cases the law held, after it had
        detected its saboteur on that subject. A dash means that the subject does not claim it.</p>
        <div class="wide"><table><thead><tr><th></th><th class="law">Law</th>{{#subjects}}<th>{{.}}</th>{{/subjects}}</tr></thead>
        <tbody>{{#rows}}<tr><td>{{id}}</td><td class="law">{{sentence}}<span class="saboteur">Its saboteur {{saboteur}}.</span></td>
        {{#cells}}<td class="{{kind}}" title="{{title}}">{{text}}</td>{{/cells}}</tr>{{/rows}}</tbody></table></div>
        {{#counterexamples}}
        <h2>{{law}} of {{subject}}</h2>
        <p><b>{{sentence}}</b> {{reason}}. {{load}}; {{before}} cases held before.<br><code>{{replay}}</code></p>
        <div class="wide"><table class="trace"><thead><tr>{{#threads}}<th>{{.}}</th>{{/threads}}</tr></thead>
        <tbody>{{#events}}<tr>{{#cells}}<td>{{.}}</td>{{/cells}}</tr>{{/events}}</tbody></table></div>
        {{/counterexamples}}
        </body></html>
        """
}
