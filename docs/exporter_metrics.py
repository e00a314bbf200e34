"""The generated parts of docs/exporters.md: features of the NVML exporter, what exporters tell of themselves, and every
family that they declare."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from gpuwatch_exporters.device import families
from gpuwatch_exporters.device.family import DEVICE_LABELS, NODE_LABELS, Family
from gpuwatch_exporters.nvml.group import GROUPS
from gpuwatch_exporters.serving.cycles import Cycles, Tally
from gpuwatch_exporters.serving.exporter import Exporter
from gpuwatch_exporters.serving.self_metrics import SelfMetrics

PAGE = Path(__file__).parent / "exporters.md"
_CADENCES = {"cycle": "each cycle", "slow": "once a minute", "static": "once per driver load or change of MIG"}


class _Idle(Exporter):
    """One with no metrics but those that serving adds."""

    def cycle(self) -> str:
        return ""


def exporters_page() -> str:
    """The page with its generated parts written anew; the text around them is kept."""
    text = PAGE.read_text(encoding="utf-8")
    for name, part in (("features", _features()), ("own", _own()), ("metrics", _catalogue())):
        head, begin, rest = text.partition(f"<!-- {name}: begin (docs/build.py writes what follows) -->\n")
        _, end, tail = rest.partition(f"<!-- {name}: end -->")
        if not begin or not end:
            raise ValueError(f"{PAGE}: the marks around {name} are missing")
        text = f"{head}{begin}\n{part}\n{end}{tail}"
    return text


def _features() -> str:
    rows = (
        f"| `{name}` | {group.help} | {_CADENCES[group.cadence]} | {'on request' if group.detail else 'yes'} |"
        for name, group in GROUPS.items()
    )
    return "| feature | what | read | by default |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _own() -> str:
    """The families that serving adds, as a page on which none is missing has them."""
    cycles = Cycles(_Idle(), 10.0, lambda _: None)
    cycles.tally = Tally(1, 0, 0.0, 0.0)
    metrics = SelfMetrics("nvml", cycles)
    metrics.reloaded(good=True)
    told: dict[str, list[str]] = {}
    for line in metrics.text(0).splitlines():
        if line.startswith("# "):  # HELP, then TYPE
            _, _, name, text = line.split(" ", 3)
            told.setdefault(name, []).append(text)
    rows = (f"| `{name}` | {kind} | {meaning} |" for name, (meaning, kind) in told.items())
    return "| metric | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _catalogue() -> str:
    parts = []
    for name in sorted(info.name for info in pkgutil.iter_modules(families.__path__)):
        module = importlib.import_module(f"{families.__name__}.{name}")
        declared = sorted({each.name: each for each in _declared(module)}.items())
        if declared:
            told = (module.__doc__ or "").strip().splitlines()[0]
            rows = "\n".join(_row(each) for _, each in declared)
            head = f"### {name.replace('_', ' ')}\n{told}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
            parts.append(f"{head}{rows}\n")
    return "\n".join(parts)


def _declared(module: object) -> list[Family]:
    """The families among a module's constants, in tables too."""
    found: list[Family] = []
    for each in vars(module).values():
        many = each.values() if isinstance(each, dict) else each if isinstance(each, (tuple, list)) else (each,)
        found += [one for one in many if isinstance(one, Family)]
    return found


def _row(each: Family) -> str:
    identity = NODE_LABELS if each.scope == "node" else DEVICE_LABELS
    labels = ", ".join((*identity, *(f"**{name}**" for name in each.labels)))
    return f"| `{each.name}` | {each.kind} | {labels} | {each.help} |"
