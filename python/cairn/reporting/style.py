"""The style of the page: light or dark as the reader prefers, for widths of 320 pixels and more."""

# Each pair of ink and ground has a contrast of at least 4.5; a test checks that.
LIGHT = {"ground": "#f6f7f9", "panel": "#ffffff", "ink": "#1b2430", "faint": "#556170", "line": "#d5dae1",
         "good": "#17693f", "bad": "#b3261e", "start": "#8b95a1", "rebuild": "#7a4fc0", "fetch": "#2f6fd0",
         "restart": "#63a4e8", "compute": "#8ea5bd", "write": "#e39b2d", "encode": "#b85c12", "flush": "#16866f",
         "failed": "#c8372d", "other": "#e4e8ed", "scavenge": "#8a6d1f"}
DARK = {"ground": "#12171d", "panel": "#1b222b", "ink": "#e7ecf2", "faint": "#a3b0be", "line": "#323c48",
        "good": "#6fd09b", "bad": "#ff8a80", "start": "#77828e", "rebuild": "#a98be6", "fetch": "#5b94ea",
        "restart": "#93c0f3", "compute": "#5a7089", "write": "#f0b14e", "encode": "#d9803a", "flush": "#3fb89d",
        "failed": "#f0625a", "other": "#2a333e", "scavenge": "#c9ab5a"}


def _variables(colours: "dict[str, str]") -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


RULES = """
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"DejaVu Sans",sans-serif;-webkit-text-size-adjust:100%}
main{max-width:1100px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 4px}
h2{font-size:1.2rem;margin:0 0 4px}
h3{font-size:1rem;margin:24px 0 8px}
p{margin:0 0 12px;max-width:75ch}
.faint,caption,.axis{color:var(--faint);font-size:.875rem}
section,.card{background:var(--panel);border:1px solid var(--line);border-radius:10px}
section{padding:20px;margin:16px 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,155px),1fr));gap:12px;margin:20px 0;padding:0;
list-style:none}
.card{padding:12px 14px}
.card b{display:block;white-space:nowrap;font-size:1.35rem;line-height:1.25;font-weight:650}
.card span{color:var(--faint);font-size:.875rem}
.name{overflow-wrap:anywhere}
.wide{overflow-x:auto}
.wide:focus-visible{outline:2px solid var(--fetch);outline-offset:4px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;padding-bottom:6px}
th,td{padding:6px 16px 6px 0;border-top:1px solid var(--line);text-align:left;vertical-align:top}
thead th{border-top:0;color:var(--faint);font-weight:500;font-size:.875rem}
th{font-weight:500}
tbody th{min-width:11.8rem}
.number{text-align:right;white-space:nowrap}
td:last-child,th:last-child{padding-right:0}
svg{display:block;width:100%}
.bar{height:26px;border-radius:5px}
.meter{height:10px;border-radius:5px;margin-top:8px;min-width:80px;background:var(--other)}
.steps{height:120px;margin-top:4px;border-bottom:1px solid var(--line)}
.tiny{height:26px;min-width:90px;max-width:160px}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:10px 0 0;padding:0;list-style:none;font-size:.875rem}
.legend i,.key{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.run{margin:14px 0 0}
.run p{display:flex;flex-wrap:wrap;gap:0 12px;margin:0 0 3px;font-size:.875rem}
.lane{position:relative;padding-bottom:4px}
.mark{position:absolute;top:2px;transform:translateX(-50%);font-weight:700;line-height:1.35;color:var(--ink);
background:var(--panel);border:1px solid var(--bad);border-radius:50%;width:22px;height:22px;text-align:center;
font-size:.8rem}
.axis{display:flex;justify-content:space-between}
.good{color:var(--good)}
.bad{color:var(--bad);font-weight:600}
@media (max-width:560px){section{padding:16px 14px}th,td{padding-right:10px}h1{font-size:1.4rem}}
@media print{body{background:#fff}section,.card{break-inside:avoid}}
"""

CSS = (f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
       f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
       + "".join(f".p-{name}{{fill:var(--{name})}}i.p-{name}{{background:var(--{name})}}" for name in LIGHT) + RULES)
