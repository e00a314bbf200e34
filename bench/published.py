"""Our replays against the published results, cell by cell; or the lead of one policy over another in the same table.

    python bench/published.py [--resume runs.jsonl] [--workload NAME ...] [--seeds 10] [--jobs 2]
    python bench/published.py --against fgd --policy gpuwatch [--resume runs.jsonl]

Runs the published policies on the published workloads (about 1,000 replays; with --resume what the file holds is not
run again), compares means over seeds with openb/expected_results in the folder of traces, and prints what differs, the
worst cell of each column and the bars. Exits 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the module beside this file

from bench.lead import lead_sections
from gpuwatch.errors import GpuwatchError
from gpuwatch.experiment.experiment import run_tasks
from gpuwatch.experiment.journal import Journal
from gpuwatch.experiment.task import tasks_of
from gpuwatch.experiment.workers import cpus, run_local
from gpuwatch.model.replay import ReplayRun
from gpuwatch.placement.replay_summary import PolicySummary, Spread, spread, summarize
from gpuwatch.render.report import FORMATS, Column, Lines, Report, Row, Section, Style, Table

POLICIES = {
    "01-Random": "random",
    "02-DotProd": "dot_product",
    "03-GpuClustering": "gpu_clustering",
    "04-GpuPacking": "gpu_packing",
    "05-BestFit": "best_fit",
    "06-FGD": "fgd",
}
OWN = "gpuwatch"
FIRST_SEED, INFLATE = 42, 1.3


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of the comparison: where it is published, and how far a mean may be off, in points."""

    key: str
    title: str
    file: str
    percent: int
    bar: float
    bar_of_fgd: float

    def bar_for(self, policy: str) -> float:
        return self.bar_of_fgd if policy == "fgd" else self.bar


_ALLOCATION, _FRAGMENT = "analysis_allo_discrete.csv.gz", "analysis_frag_ratio_discrete.csv.gz"
MEASURES = (
    Measure("allocation_100", "Allocated at 100", _ALLOCATION, 100, 0.5, 0.2),
    Measure("allocation_130", "Allocated at 130", _ALLOCATION, 130, 0.5, 0.2),
    Measure("fragment_40", "Fragment of idle at 40", _FRAGMENT, 40, 1.0, 0.5),
    Measure("fragment_80", "at 80", _FRAGMENT, 80, 2.5, 0.5),
    Measure("fragment_95", "at 95", _FRAGMENT, 95, 3.5, 1.5),
)

Cell = tuple[str, str]  # workload, policy
Percents = dict[str, Spread]  # by the key of a measure


@dataclass(frozen=True, slots=True)
class Difference:
    """Own minus published, in points."""

    points: float
    error: float | None  # one standard error of this difference of two means: what chance alone makes of it


Differences = dict[str, Difference]  # by the key of a measure


def main() -> int:
    options = _options()
    folder = Path(options.trace) / "openb"
    known = published(folder / "expected_results")
    workloads = options.workload or sorted({workload for workload, _ in known})
    policies = list(POLICIES.values())
    if options.against:
        own = (options.policy or [OWN])[0]
        policies += [each for each in (options.against, own) if each not in policies]
    elif options.policy:
        policies = options.policy
    summaries = summarize(_runs(folder, workloads, policies, options))
    if options.against:
        sections, met = lead_sections(summaries, own, options.against, list(POLICIES.values()))
    else:
        sections, met = _compared(ours(summaries), known)
    report = Report(title="", document={}, sections=sections, flat=Table(title="", columns=()))
    print(FORMATS.get("table")(report, Style()), end="")
    return 0 if met else 1


def _runs(folder: Path, workloads: list[str], policies: list[str], options: argparse.Namespace) -> list[ReplayRun]:
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    tasks = tasks_of(folder, "arrivals", workloads, policies, seeds, {"inflate": INFLATE})
    opened = nullcontext() if options.resume is None else Journal(options.resume, tasks)

    def told(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {len(tasks)} replays", end="\n" if done == len(tasks) else "", file=sys.stderr)

    with opened as journal:
        return run_tasks(tasks, partial(run_local, jobs=options.jobs), journal, told)


# -- against what is published ----------------------------------------------------------------------------------------


def published(folder: Path) -> dict[Cell, Percents]:
    """The published means and deviations over seeds, in percent, by our names of workloads and policies."""
    found: dict[Cell, Percents] = defaultdict(dict)
    for file in (_ALLOCATION, _FRAGMENT):
        own = [measure for measure in MEASURES if measure.file == file]
        values: dict[tuple[Cell, str], list[float]] = defaultdict(list)
        with gzip.open(folder / file, "rt", encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text):
                cell = row["workload"].removeprefix("openb_pod_list_"), POLICIES[row["sc_policy"]]
                for measure in own:
                    values[cell, measure.key].append(float(row[str(measure.percent)]))
        for (cell, key), each in values.items():
            told = spread(each)
            assert told is not None
            found[cell][key] = told
    return found


def ours(summaries: Iterable[PolicySummary]) -> dict[Cell, Percents]:
    """The same of our runs; what no run has is left out."""
    out: dict[Cell, Percents] = {}
    for each in summaries:
        spreads: dict[str, Spread | None] = {
            "allocation_100": each.allocation_ratio_at_100,
            "allocation_130": each.allocation_ratio_at_130,
            **{f"fragment_{point.arrived_percent}": point.ratio for point in each.fragment},
        }
        out[each.workload, each.policy] = {key: _percent(found) for key, found in spreads.items() if found}
    return out


def _percent(found: Spread) -> Spread:
    deviation = None if found.deviation is None else 100 * found.deviation
    return Spread(mean=100 * found.mean, deviation=deviation, runs=found.runs)


def differences(own: dict[Cell, Percents], known: dict[Cell, Percents]) -> dict[Cell, Differences]:
    """Own minus published. A cell or a measure that only one side has is left out."""
    return {
        cell: {key: _difference(mean, known[cell][key]) for key, mean in found.items() if key in known[cell]}
        for cell, found in own.items()
        if cell in known
    }


def _difference(own: Spread, known: Spread) -> Difference:
    error = None
    if own.deviation is not None and known.deviation is not None:
        error = math.sqrt(own.deviation**2 / own.runs + known.deviation**2 / known.runs)
    return Difference(points=own.mean - known.mean, error=error)


def missed(apart: dict[Cell, Differences]) -> list[tuple[Cell, Measure]]:
    """What is beyond its bar, or has no mean to compare."""
    return [
        (cell, measure)
        for cell, found in apart.items()
        for measure in MEASURES
        if measure.key not in found or abs(found[measure.key].points) > measure.bar_for(cell[1])
    ]


def _compared(own: dict[Cell, Percents], known: dict[Cell, Percents]) -> tuple[tuple[Section, ...], bool]:
    """What is printed, and whether every bar is met."""
    apart = differences(own, known)
    beyond = missed(apart)
    names = {(cell, measure.key) for cell, measure in beyond}
    rows = [
        {
            "workload": cell[0],
            "policy": cell[1],
            **{key: each.points for key, each in found.items()},
            "missed": ", ".join(measure.key for measure in MEASURES if (cell, measure.key) in names) or None,
        }
        for cell, found in apart.items()
    ]
    columns = (
        *(Column("workload", "Workload"), Column("policy", "Policy")),
        *(Column(each.key, each.title, "points", digits=2) for each in MEASURES),
        Column("missed", "Missed"),
    )
    told = f"{len(apart)} means of policy and workload compared; {len(beyond)} beyond a bar."
    sections = (
        Table(title="Ours minus published, means over seeds", columns=columns, rows=tuple(rows)),
        Table(title="The worst of each column", columns=_worst_columns(), rows=tuple(_worst(apart))),
        Lines(title="", lines=(told,)),
    )
    return sections, bool(apart) and not beyond


def _worst_columns() -> tuple[Column, ...]:
    return (
        Column("measure", "Measure"),
        Column("policies", "Policies"),
        Column("workload", "Workload"),
        Column("policy", "Policy"),
        Column("points", "Off by", "points", digits=2),
        Column("error", "Standard error", "points", digits=2),
        Column("bar", "Bar", "points", digits=2),
        Column("verdict", "Verdict"),
    )


def _worst(apart: dict[Cell, Differences]) -> Iterable[Row]:
    for measure in MEASURES:
        for fgd in (True, False):
            cells = [cell for cell in apart if (cell[1] == "fgd") == fgd and measure.key in apart[cell]]
            if not cells:
                continue
            worst = max(cells, key=lambda cell: abs(apart[cell][measure.key].points))
            off, bar = apart[worst][measure.key], measure.bar_for(worst[1])
            yield {
                "measure": measure.key,
                "policies": "fgd" if fgd else "the others",
                "workload": worst[0],
                "policy": worst[1],
                "points": off.points,
                "error": off.error,
                "bar": bar,
                "verdict": "met" if abs(off.points) <= bar else "MISSED",
            }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=os.environ.get("GPUWATCH_TRACES", "."), help="folder that holds openb/")
    parser.add_argument("--workload", action="append", help="only this one (may be repeated)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=cpus())
    parser.add_argument("--resume", type=Path, help="keep results there, and do not run again what it holds")
    parser.add_argument("--policy", action="append", help=f"only this one; with --against whose lead it is ({OWN})")
    parser.add_argument("--against", help="the lead over this policy instead of the published results")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GpuwatchError as err:
        sys.exit("\n".join(err.lines()))
