"""Times the fragmentation report on a large random cluster against a bare loop over the mix's groups in NumPy.

    python -m bench.index [--nodes 10000] [--shapes 100] [--rounds 5]

The bare loop computes the index of the whole cluster and nothing else: one pass over (nodes, devices) for each group
of shapes with equal share and accepted models, then one comparison per node for each shape. The report gives the
index, its causes per pool and model, and how often each shape fits. Both read the same columns. Then the same on a
tenth of the nodes: the report's time must grow no faster than the cluster.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from bench.random_cluster import random_snapshot
from gpuwatch.demand.mix import demand_mix
from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import Columns, columns_of
from gpuwatch.fragmentation.report import fragmentation_report, report_on
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.settings import AnalysisSettings

RATIO_BAR, GROWTH_BAR = 2.0, 12.0


def main() -> int:
    options = _options()
    seconds, ratio = _measure(options.nodes, options)
    tenth, _ = _measure(options.nodes // 10, options)
    growth = seconds / tenth
    print(f"against the bare loop   {ratio:8.2f}    bar {RATIO_BAR:.0f}: {_verdict(ratio, RATIO_BAR)}")
    print(f"x10 nodes, times        {growth:8.1f}    bar {GROWTH_BAR:.0f}: {_verdict(growth, GROWTH_BAR)}")
    return 0 if ratio <= RATIO_BAR and growth <= GROWTH_BAR else 1


def _measure(nodes: int, options: argparse.Namespace) -> tuple[float, float]:
    """(seconds of the report on columns, the same over the seconds of the bare loop)."""
    snapshot = random_snapshot(nodes, shapes=options.shapes)
    booking = book(snapshot)
    mix = demand_mix(snapshot, AnalysisSettings(mix_coverage_ratio=1.0))
    columns = columns_of(booking)
    ours = _best_of(options.rounds, lambda: report_on(columns, mix))
    bare = _best_of(options.rounds, lambda: bare_index(columns, mix))
    whole = _best_of(options.rounds, lambda: fragmentation_report(booking, mix))
    told, plain = report_on(columns, mix).overall.fragmentation_index, bare_index(columns, mix)
    assert told is not None
    assert abs(told - plain) < 1e-6, f"the report says {told}, the bare loop {plain}"
    print(
        f"{nodes:,} nodes x {columns.left.shape[1]} devices x {len(mix.shapes)} shapes, index {told:.3f}: report "
        f"{ours * 1e3:.1f} ms, bare loop {bare * 1e3:.1f} ms, from the booking on {whole * 1e3:.1f} ms"
    )
    return ours, ours / bare


def bare_index(columns: Columns, mix: DemandMix) -> float:
    """The index of the whole cluster, group by group, with nothing kept between groups."""
    groups: dict[tuple[int, tuple[str, ...]], list[tuple[int, int, float]]] = {}
    for entry in mix.shapes:
        shape = entry.shape
        if shape.gpus:
            key = (shape.milligpu_per_gpu, shape.gpu_models)
            groups.setdefault(key, []).append((shape.gpus, shape.cpu_millicores, entry.share_ratio))
    free = columns.left.sum(axis=1)
    stranded, weights = 0.0, 0.0
    for (share, models), shapes in groups.items():
        accepted = columns.left * columns.accepted(models) if models else columns.left
        roomy = accepted >= share
        count, room = roomy.sum(axis=1), (accepted * roomy).sum(axis=1)
        for gpus, cpu, weight in shapes:
            runs = (count >= gpus) & (columns.cpu_free >= cpu)
            stranded += weight * float((free - room * runs).sum())
            weights += weight
    return 100 * stranded / weights / float(free.sum())


def _best_of(rounds: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _verdict(found: float, bar: float) -> str:
    return "met" if found <= bar else "MISSED"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
