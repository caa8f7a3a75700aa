extension Page {
    /// Mustache: two braces insert text, three insert markup.
    static let template = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Benchmarks</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <style>
        {{{style}}}
        :root{color-scheme:light dark;--paper:#fff;--ink:#1d2126;--soft:#59616b;--line:#dfe3e8;--card:#f6f7f9}
        @media(prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e3e6ea;--soft:#9ba4ae;--line:#2b3138;\
        --card:#1b1f24}}
        *{box-sizing:border-box}
        body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:0 auto;padding:1.2rem 1rem 4rem;\
        background:var(--paper);color:var(--ink)}
        h1{font-size:1.5rem;line-height:1.25;margin:.2rem 0 .4rem}
        h2{font-size:1.2rem;margin:2.6rem 0 .4rem;padding-top:.9rem;border-top:1px solid var(--line)}
        h3{font-size:1rem;margin:1.4rem 0 .3rem}
        p{margin:.35rem 0}a{color:inherit}
        svg{max-width:100%;height:auto;display:block}
        .soft,.fine{color:var(--soft)}.fine{font-size:13px}
        .warning{border-left:3px solid #d0480a;padding-left:.6rem}
        .grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:1.4rem 2.2rem}
        .grid>*{min-width:0}.grid svg{width:100%;max-width:430px}
        .panel h3{font-size:1.1rem;margin:.6rem 0 0}.panel .answer{font-weight:600;min-height:4.5em}
        .panel .fine{min-height:2.9em}
        nav{font-size:13px;margin:.6rem 0}nav a{margin-right:1rem;display:inline-block}
        table{border-collapse:collapse;font-size:13px;width:100%;font-variant-numeric:tabular-nums}
        th{font-weight:500;color:var(--soft)}
        th,td{text-align:right;padding:.2rem .45rem;border-bottom:1px solid var(--line);white-space:nowrap}
        th:first-child,td:first-child{text-align:left;padding-left:0}td.wrap{white-space:normal;text-align:left}
        .losses td{vertical-align:top}.losses .peer{display:inline-block;margin-right:1.1rem;white-space:nowrap}
        .losses svg{display:inline-block;vertical-align:-1px}.losses td:first-child{width:24rem}
        .square{display:inline-block;width:.7em;height:.7em;margin-right:.5em}
        .square.ahead{background:#007f5f}.square.level{background:#9aa2ab}.square.behind{background:#d0480a}\
        .square.unknown{background:#d5d9de}
        .key{display:inline-block;white-space:nowrap;margin-right:.8rem}
        .wide svg{width:100%;max-width:1040px}.narrow svg{width:100%;max-width:520px}
        .legend{font-size:12px;color:var(--soft);display:flex;flex-wrap:wrap;gap:.1rem .9rem;margin:.5rem 0 .9rem}
        .legend span{display:inline-flex;align-items:center;gap:.25rem}.legend svg{width:12px}
        .narrow{display:none}@media(max-width:760px){.narrow{display:block;width:100%}.wide{display:none}\
        .panel .answer,.panel .fine{min-height:0}body{padding:1rem .8rem 3rem}}
        details{margin:.3rem 0}summary{cursor:pointer;padding:.15rem 0}
        .card{border-bottom:1px solid var(--line)}.card .body{padding:.4rem 0 1rem}
        .tables{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(430px,100%),1fr));gap:1rem 2.2rem}
        .tables>*{min-width:0}
        td svg{margin-left:auto}
        .bar{display:block;height:3px;margin-top:2px;background:currentColor;border-radius:2px;margin-left:auto}
        @media(max-width:480px){th,td{padding:.2rem .25rem;font-size:12px}.few{display:none}.losses td:first-child{width:auto}}
        </style></head><body>
        <header><h1>{{headline}}</h1>
        <p class="soft">Ours is this package; a peer is an alternative to it. {{machine}}.\
        {{#isTrusted}} {{#verdict}}{{.}}{{/verdict}}{{/isTrusted}}</p>
        {{^isTrusted}}{{#verdict}}<p class="warning">{{.}}</p>{{/verdict}}
        {{/isTrusted}}        {{#warnings}}<p class="warning">{{.}}</p>
        {{/warnings}}</header>
        <section class="grid" id="answer">
        {{#panels}}<div class="panel"><h3>{{title}}</h3><p class="fine">{{scope}}</p><p class="answer">{{sentence}}</p>
        {{{drawing}}}
        {{#leftOut}}<p class="fine">{{.}}</p>{{/leftOut}}</div>
        {{/panels}}
        </section>
        <p class="fine">Geometric mean, over the workloads that both run, of a peer's time over ours: 2× means that \
        the peer takes twice as long. The range next to a number, and the line in the picture, contain the mean with \
        a confidence of 95 % or more. <a href="#how">How that is measured</a>.</p>
        <nav><a href="#losses">What we lose</a><a href="#all">All workloads</a>{{#hasFloors}}<a href="#floor">The floor</a>{{/hasFloors}}\
        {{#hasCosts}}<a href="#costs">Costs</a>{{/hasCosts}}{{#hasCurves}}<a href="#sizes">Sizes</a>{{/hasCurves}}{{#hasThreads}}<a href="#threads">Threads</a>{{/hasThreads}}{{#hasGrains}}<a href="#grain">Grain</a>{{/hasGrains}}\
        {{#hasLatencies}}<a href="#latency">Latency</a>{{/hasLatencies}}{{#hasOrder}}<a href="#order">The run over time</a>{{/hasOrder}}\
        <a href="#cards">Figures</a><a href="#machine">Machine and build</a><a href="#missing">What is missing</a></nav>

        <h2 id="losses">What we lose</h2>
        {{#hasLosses}}<p class="fine">Each workload in which a peer is certainly ahead: its time over ours, the interval, \
        and in how many restarts it was ahead.</p>{{/hasLosses}}
        {{^hasLosses}}{{#withoutLosses}}<p>{{.}}</p>{{/withoutLosses}}{{/hasLosses}}
        {{#losses}}<details{{#isOpen}} open{{/isOpen}}><summary><strong>{{title}}</strong>: {{count}} of {{all}} workloads</summary>
        <table class="losses">
        {{#lines}}<tr><td><a href="#{{id}}">{{id}}</a> <span class="few">{{title}}</span></td><td class="wrap">\
        {{#peers}}<span class="peer">{{{mark}}} {{name}} <strong>{{ratio}}</strong> \
        <span class="soft">{{interval}}, {{sure}}</span></span> {{/peers}}</td></tr>
        {{/lines}}</table></details>
        {{/losses}}

        <h2 id="all">All workloads</h2>
        <p class="fine">A mark is the median over the restarts, its line the interval. The grey band of a row is ours against \
        a second process of ours: the noise. The nearest peer is at the end of the row. \
        <span class="key"><span class="square ahead"></span>ahead of every peer</span> \
        <span class="key"><span class="square level"></span>level with the best</span> \
        <span class="key"><span class="square behind"></span>behind one or more</span> \
        <span class="key"><span class="square unknown"></span>no verdict</span></p>
        {{#forests}}<h3>{{title}}</h3>
        <div class="wide">{{{wide}}}</div><div class="narrow">{{{narrow}}}</div>
        {{/forests}}

        <h2 id="how">How to read this</h2>
        <p>Every peer runs in its own process. The processes take turns, in shuffled order, and the whole set is \
        restarted several times; every result is checked. A figure is the median, over the restarts, of the median \
        paired ratio, with the exact order-statistic interval; the only assumption is that restarts are independent. \
        A mean is taken of the logarithms, for each restart, over all rows; it describes these workloads, not others. \
        A row in which ours differs from a second process of ours (A/A) has no verdict, and is in no mean.</p>
        <p>By construction, about one interval in thirty misses the true value: among hundreds, some do.</p>
        <p>The floor makes the same allocations and calls without scheduling anything. Where there is no library to compare with, the \
        peers are written by hand. They do less; what each does, and what it leaves out, is stated below its figures.</p>
        <h2 id="machine">Machine and build</h2>
        <details><summary>{{machine}}</summary><table>
        {{#facts}}<tr><td>{{name}}</td><td class="wrap">{{value}}</td></tr>
        {{/facts}}</table></details>

        {{#hasFloors}}<h2 id="floor">Distance to the floor</h2>
        <p class="fine">The room for improvement: 1 is the same work without scheduling. The number is ours.</p>
        <div class="grid">{{#floors}}<div>{{{drawing}}}<div class="legend">{{#legend}}<span>{{{mark}}}{{name}}</span>{{/legend}}\
        </div></div>
        {{/floors}}</div>{{/hasFloors}}

        {{#hasCosts}}<h2 id="costs">Costs</h2>
        <p class="fine">Per operation, at the largest size of each workload; less is better. The number is ours.</p>
        {{#costs}}<h3>{{title}}</h3>
        <div class="legend">{{#legend}}<span>{{{mark}}}{{name}}</span>{{/legend}}</div>
        <div class="grid">{{#drawings}}<div>{{{.}}}</div>
        {{/drawings}}</div>
        {{/costs}}{{/hasCosts}}

        {{#hasCurves}}<h2 id="sizes">Sizes</h2>
        <p class="fine">A flat line means that total time grows no faster than the number of operations. A curve that ends with \
        a bar was cut: the next size would take too long.</p>
        {{#curves}}<details{{#isOpen}} open{{/isOpen}}><summary><strong>{{title}}</strong></summary>
        <div class="grid">{{#drawings}}<div>{{{.}}}</div>
        {{/drawings}}</div></details>
        {{/curves}}{{/hasCurves}}

        {{#hasThreads}}<h2 id="threads">Threads</h2>
        <p class="fine">The same work with more worker threads. Peers that use the process's own threads are left out. With more \
        threads than CPUs, nothing can become faster, but it should not become much slower.</p>
        <div class="grid">{{#threads}}<div>{{{.}}}</div>
        {{/threads}}</div>{{/hasThreads}}

        {{#hasGrains}}<h2 id="grain">Grain</h2>
        <p class="fine">How long operations must be for half, or nine tenths, of the time to be spent on them \
        (METG(50 %), METG(90 %)). Below METG(50 %), scheduling costs more than the work. Less is better.</p>
        <div class="grid">{{#grains}}<div>{{{drawing}}}</div>
        <div><table><tr><th></th><th>METG(50 %)</th><th>METG(90 %)</th></tr>
        {{#lines}}<tr><td>{{name}}</td><td>{{half}}</td><td>{{most}}</td></tr>
        {{/lines}}</table></div>
        {{/grains}}</div>{{/hasGrains}}

        {{#hasLatencies}}<h2 id="latency">Latency</h2>
        <p class="fine">Percentiles of how late something starts, measured from when it was due; means over the samples.</p>
        <div class="grid">{{#latencies}}<div>{{{.}}}</div>
        {{/latencies}}</div>{{/hasLatencies}}

        {{#hasOrder}}<h2 id="order">The run over time</h2>
        <p class="fine">A change in the machine's speed moves all lines together, but no ratio. Each round is below, in the figures.</p>
        <div class="grid">{{#order}}<div>{{{.}}}</div>
        {{/order}}</div>{{/hasOrder}}

        <h2 id="cards">Figures</h2>
        {{#parts}}<h3>{{title}}</h3>
        {{#cards}}<details class="card"><summary><span class="square {{standing}}"></span><strong>{{id}}</strong> {{title}} \
        <span class="fine">{{verdict}}</span></summary><div class="body">
        <p id="{{id}}">{{sentence}} {{floor}}</p>
        <div class="tables"><table><tr><th>N = {{n}}</th><th>figure</th><th>over ours</th><th></th><th class="few">rounds</th></tr>
        {{#lines}}<tr><td>{{#link}}<a href="{{.}}">{{/link}}{{name}}{{#link}}</a>{{/link}}</td><td>{{figure}}</td>\
        <td>{{ratio}}</td><td class="fine">{{interval}}</td><td class="few">{{{rounds}}}</td></tr>
        {{/lines}}</table>
        {{#hasCosts}}<table><tr><th>per operation</th>{{#kinds}}<th>{{.}}</th>{{/kinds}}</tr>
        {{#costs}}<tr><td>{{name}}</td>{{#cells}}<td class="k{{hue}}"><span style="color:var(--ink)">{{text}}</span>\
        <span class="bar" style="width:{{width}}%"></span></td>{{/cells}}</tr>
        {{/costs}}</table>{{/hasCosts}}</div>
        {{#forms}}<p class="fine"><strong>{{name}}</strong>: {{form}}</p>
        {{/forms}}
        {{#others}}<p class="fine">Ours: {{.}}.</p>{{/others}}</div></details>
        {{/cards}}
        {{/parts}}

        <h2 id="missing">What is missing</h2>
        {{#absences}}<p class="fine">{{.}}</p>
        {{/absences}}{{^absences}}<p class="fine">Nothing: every peer ran every workload.</p>{{/absences}}
        </body></html>
        """
}
