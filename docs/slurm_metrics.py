"""The generated part of docs/exporters/slurm.md: every family of the Slurm exporter, by topic."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from gpuwatch_exporters.slurm import families
from gpuwatch_exporters.slurm.family import CLUSTER_LABEL, Family

PAGE = Path(__file__).parent / "exporters" / "slurm.md"
BEGIN, END = "<!-- metrics: begin (docs/build.py writes what follows) -->\n", "<!-- metrics: end -->"


def slurm_page() -> str:
    """The page with its generated part written anew; the text around it is kept."""
    head, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE}: the marks around the metrics are missing")
    return f"{head}{begin}\n{_catalogue()}\n{end}{tail}"


def _catalogue() -> str:
    parts = []
    for name in sorted(info.name for info in pkgutil.iter_modules(families.__path__)):
        module = importlib.import_module(f"{families.__name__}.{name}")
        declared = sorted((each for each in vars(module).values() if isinstance(each, Family)), key=lambda f: f.name)
        told = (module.__doc__ or "").strip().splitlines()[0]
        rows = "\n".join(_row(each) for each in declared)
        parts.append(f"### {name}\n{told}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def _row(each: Family) -> str:
    identity = (CLUSTER_LABEL,) if each.scope == "cluster" else ()
    labels = ", ".join((*identity, *(f"**{name}**" for name in each.labels)))
    return f"| `{each.name}` | {each.kind} | {labels or '–'} | {each.help} |"
