"""How the pages look."""

STYLESHEET = """
:root { color-scheme: light dark; --text: #1f2328; --quiet: #59636e; --line: #d1d9e0; --back: #fff; --soft: #f6f8fa;
  --link: #0969da; --open: #1a7f37; --closed: #cf222e; --merged: #8250df; --draft: #59636e; --pending: #9a6700; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --quiet: #9198a1; --line: #3d444d; --back: #0d1117; --soft: #151b23;
    --link: #4493f8; --open: #238636; --closed: #da3633; --merged: #8957e5; --draft: #656c76; --pending: #9e6a03; }
}
body { margin: 0 auto; max-width: 56rem; padding: 1.5rem 1rem 4rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
a { color: var(--link); }
header p, .quiet { color: var(--quiet); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; }
.state { display: inline-block; padding: .1rem .7rem; border-radius: 1rem; color: #fff; background: var(--open); }
.closed { background: var(--closed); }
.merged { background: var(--merged); }
.draft { background: var(--draft); }
.label { display: inline-block; padding: 0 .6rem; border: 1px solid var(--line); border-radius: 1rem;
  font-size: .85rem; }
.failed { background: var(--closed); }
.pending { background: var(--pending); }
article { margin: 1rem 0; border: 1px solid var(--line); border-radius: .4rem; }
article > h2 { margin: 0; padding: .4rem 1rem; background: var(--soft); border-bottom: 1px solid var(--line);
  border-radius: .4rem .4rem 0 0; color: var(--quiet); font-size: .9rem; font-weight: normal; }
article > div { padding: .2rem 1rem; }
pre, code { font-family: ui-monospace, monospace; font-size: .85rem; background: var(--soft); }
pre { padding: .8rem; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: .2rem .6rem; border: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
li { margin: .3rem 0; }
"""
