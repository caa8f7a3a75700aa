extension Page {
    /// Mustache: two braces write text, three write what is markup already.
    static let template = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Benchmarks</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <style>
        :root{color-scheme:light dark;--paper:#fff;--ink:#222;--soft:#666;--line:#ddd}
        @media(prefers-color-scheme:dark){:root{--paper:#161616;--ink:#ddd;--soft:#999;--line:#333}}
        body{font:15px/1.5 system-ui,sans-serif;max-width:920px;margin:2rem auto;padding:0 1rem;background:var(--paper);\
        color:var(--ink)}
        h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}
        svg{max-width:100%;height:auto}
        table{border-collapse:collapse;font-size:13px;width:100%}
        th,td{text-align:right;padding:.25rem .6rem;border-bottom:1px solid var(--line)}
        th:first-child,td:first-child{text-align:left}
        .soft{color:var(--soft);font-size:13px}.warning{border-left:3px solid #d55e00;padding-left:.6rem}
        details{margin:.5rem 0}
        </style></head><body>
        <h1>{{headline}}</h1>
        {{#isPartial}}<p class="warning">The run was ended early; what is shown was measured.</p>{{/isPartial}}
        {{#forests}}{{{.}}}
        {{/forests}}
        <p>{{verdict}}</p>
        {{#warnings}}<p class="warning">{{.}}</p>{{/warnings}}
        <details><summary>How to read this</summary>
        <p>Every peer runs in a process of its own; the processes are asked in turn, in shuffled order, and the whole set is \
        started anew several times. A dot is the median over the restarts of the median paired ratio, its line the \
        exact order-statistic interval. Right of 1 ours is faster. The first dot of each row compares ours with \
        a second process of ours: where it is not at 1, the row is not to be trusted that far. The floor makes the \
        same allocations and calls without scheduling anything.</p>
        <p>Where there is no library to compare with, the peers are written by hand. They do less; what each does, and \
        what it leaves out, stands below its table.</p></details>
        <details><summary>Machine and build</summary><table>
        {{#facts}}<tr><td>{{name}}</td><td>{{value}}</td></tr>
        {{/facts}}</table></details>
        {{#cards}}
        <h2>{{id}} {{title}}</h2>
        <p>{{sentence}} <strong>{{verdict}}</strong> {{floor}}</p>
        <table><tr><th>n = {{n}}</th><th>figure</th><th>over ours</th><th>CPU ns/op</th><th>allocations/op</th>\
        <th>switches/op</th></tr>
        {{#lines}}<tr><td><a href="../{{source}}">{{name}}</a></td><td>{{figure}}</td><td>{{ratio}}</td><td>{{cpu}}</td><td>{{allocations}}</td>\
        <td>{{switches}}</td></tr>
        {{/lines}}</table>
        {{#forms}}<p class="soft"><strong>{{name}}</strong>: {{form}}</p>
        {{/forms}}
        {{{curve}}}
        <p class="soft">Ours: {{costs}}</p>
        {{/cards}}
        <h2>What we lose</h2>
        {{#losses}}<p>{{.}}</p>{{/losses}}
        {{^losses}}<p>Nothing in this run beyond the noise.</p>{{/losses}}
        <h2>What is missing</h2>
        {{#absences}}<p class="soft">{{.}}</p>{{/absences}}
        </body></html>
        """
}
