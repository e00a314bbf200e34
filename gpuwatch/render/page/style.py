"""The page's style sheet. Colors are named by what they mean and follow the reader's light or dark preference."""

STYLE = """
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b222c;--soft:#5c6675;--line:#dfe3e9;--link:#1a5fb4;
--active:#1f8a70;--idle:#e0a100;--unknown:#9aa3af;--free:#7fb2e5;--stranded:#a05cc4;--blocked:#c9504a;
--info:#44618c;--warning:#9a6700;--critical:#c0302a;--band:#7fb2e5;--shade:#eef1f5}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1a2029;--ink:#e4e9f0;--soft:#99a5b5;--line:#2c3542;
--link:#7fb2e5;--active:#35b394;--idle:#e6b422;--unknown:#6c7685;--free:#4b86c2;--stranded:#b67fd6;--blocked:#e0736d;
--info:#8fb0de;--warning:#e6b422;--critical:#f08a84;--band:#4b86c2;--shade:#232b36}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif}
main,header,footer{max-width:1200px;margin:0 auto;padding:0 20px}
header{padding-top:22px;display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline}
h1{font-size:22px;margin:0}h2{font-size:16px;margin:0 0 10px}h3{font-size:14px;margin:14px 0 6px}
p{margin:6px 0}.soft,small{color:var(--soft)}a{color:var(--link)}
.meta{margin-left:auto;font-size:13px;color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(135px,1fr));gap:12px;margin:16px 0}
.tile,section{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:12px 14px}.tile b{display:block;font-size:25px;font-weight:650;font-variant-numeric:tabular-nums}
.tile small{display:block;font-size:12.5px}
section{padding:16px 18px;margin:0 0 16px}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(430px,100%),1fr));gap:0 16px}
.two>*{min-width:0}.two>section{align-self:start}
.bar{display:flex;height:16px;border-radius:4px;overflow:hidden;background:var(--shade);min-width:90px}
.bar i{display:block;height:100%}
.fall{display:grid;grid-template-columns:92px 1fr 62px;gap:7px 10px;align-items:center;font-size:14px}
.fall b{text-align:right;font-variant-numeric:tabular-nums}
.fall .why{grid-column:2/4;color:var(--soft);font-size:12.5px;margin-top:-5px}
.key{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12.5px;color:var(--soft);margin-top:12px}
.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.active{background:var(--active)}.idle{background:var(--idle)}.unknown{background:var(--unknown)}
.free{background:var(--free)}.stranded{background:var(--stranded)}.blocked{background:var(--blocked)}
.count{background:var(--info)}.scope{white-space:nowrap}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:middle}
th{font-weight:600;color:var(--soft);white-space:nowrap}tr:last-child td{border-bottom:0}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}td.n:last-child,th.n:last-child{padding-right:0}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(260px,100%),1fr));gap:14px}
.charts figure{margin:0}.charts figcaption{font-size:13px}.charts small{display:block;font-size:12px}
svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:10px}
.mean{fill:none;stroke:var(--link);stroke-width:1.8}.past{fill:none;stroke:var(--soft);stroke-width:1.4}
.b0{fill:var(--band);opacity:.22}.b1{fill:var(--band);opacity:.38}.axis{stroke:var(--line)}
.advice{border-top:1px solid var(--line);padding:12px 0}.advice:first-of-type{border-top:0;padding-top:0}
.advice .top{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline}
.advice .sum{flex:1 1 320px;min-width:0;overflow-wrap:anywhere}.price{font-size:13px;color:var(--soft)}
.chip{font-size:11.5px;font-weight:650;padding:1px 8px;border-radius:99px;border:1px solid currentColor;
white-space:nowrap}
.info{color:var(--info)}.warning{color:var(--warning)}.critical{color:var(--critical)}.good{color:var(--active)}
details{margin-top:4px;font-size:13.5px}.more{font-size:15px}.more>.advice:first-of-type{margin-top:8px}summary{cursor:pointer;color:var(--link);font-size:13px}
pre{background:var(--shade);border-radius:6px;padding:8px 10px;margin:6px 0;white-space:pre-wrap;overflow-wrap:anywhere;
font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}
td code{display:block;min-width:230px;font:12px/1.4 ui-monospace,SFMono-Regular,Menlo,monospace;overflow-wrap:anywhere}
footer{color:var(--soft);font-size:13px;padding-bottom:30px}
@media (max-width:600px){main,header,footer{padding-left:12px;padding-right:12px}section{padding:13px 12px}
.meta{margin-left:0}.tiles{grid-template-columns:repeat(2,1fr);gap:8px}.tile b{font-size:21px}
.fall{grid-template-columns:84px 1fr 50px}}
"""
