"""Times one evaluation, stage by stage, on a full cluster of the published trace's size, and the memory it peaks at.

    python bench/evaluate.py [--trace FOLDER] [--policy fgd] [--load 0.9] [--rounds 3]

Without --trace (and without GPUWATCH_TRACES) a synthetic cluster of the same size is placed. Prints one line per stage,
then the fragmentation kernel against its plain twin on the same states, and the bars. Times taken
while the load is above the number of CPUs are not the code's.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the twins under tests/

from gpuwatch.demand.mix import demand_mix
from gpuwatch.engine import evaluate
from gpuwatch.fit.booking import BookedNode, book
from gpuwatch.fit.columns import columns_of
from gpuwatch.fragmentation.kernel import fragment_of_nodes
from gpuwatch.fragmentation.report import fragmentation_report, table_of
from gpuwatch.model.cluster import Gpu, Node
from gpuwatch.model.jobs import DemandShape, Job, Member
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.arrivals import place_stream
from gpuwatch.placement.what_if.answer import WhatIf
from gpuwatch.simulate.cluster import simulate
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import TRACE_START, JobTrace, empty_snapshot
from tests.reference.fragmentation import Device, Task, expected_fragment

SECONDS_BAR, MEGABYTES_BAR = 2.0, 500.0
TWIN_NODES = 200  # the twin is too slow for all nodes; both sides get these
MIB = 2**20


def main() -> int:
    options = _options()
    trace = read_openb(Path(options.trace) / "openb") if options.trace else _synthetic()
    empty = empty_snapshot(trace)
    capacity = 1000 * sum(len(node.gpus) for node in trace.nodes)
    until = int(options.load * capacity) if options.load else None
    started = time.perf_counter()
    snapshot = place_stream(empty, trace.jobs, options.policy, until_milligpu=until, seed=7)
    print(
        f"{'openb' if options.trace else 'synthetic'}: {len(snapshot.nodes):,} nodes, {capacity // 1000:,} GPUs, "
        f"{len(snapshot.jobs):,} jobs; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    )
    print(f"place_stream ({options.policy})  {time.perf_counter() - started:8.3f} s")
    total = _time_stages(snapshot, options.rounds)
    _time_what_if(snapshot)
    _against_the_twin(snapshot)
    peak = _peak_megabytes()
    print(f"evaluate                {total:8.3f} s   bar {SECONDS_BAR} s: {_verdict(total, SECONDS_BAR)}")
    print(f"peak RSS                {peak:8.0f} MB  bar {MEGABYTES_BAR:.0f} MB: {_verdict(peak, MEGABYTES_BAR)}")
    return 0 if total < SECONDS_BAR and peak < MEGABYTES_BAR else 1


def _time_stages(snapshot: ClusterSnapshot, rounds: int) -> float:
    stages: dict[str, list[float]] = defaultdict(list)
    totals = []
    history = simulate(taken_at=snapshot.taken_at).history  # a trace brings none; two generated weeks stand in
    print(f"  history: {len(history.series)} series of {max(len(s.values) for s in history.series)} hours")
    for _ in range(rounds):
        started = time.perf_counter()
        evaluation = evaluate(
            snapshot, history, AnalysisSettings(), observe=lambda stage, took: stages[stage].append(took)
        )
        totals.append(time.perf_counter() - started)
    for stage, took in stages.items():
        print(f"  {stage:20s}  {statistics.median(took):8.3f} s   first {took[0]:.3f} s")
    told = statistics.median(totals)
    print(f"  {'all, first round':20s}  {totals[0]:8.3f} s   (imports and caches are cold)")
    print(f"  {'beside the stages':20s}  {told - sum(statistics.median(took) for took in stages.values()):8.3f} s")
    for failure in evaluation.failures:
        print(f"  FAILED {failure.stage}: {failure.code} {failure.detail}")
    return told


def _time_what_if(snapshot: ClusterSnapshot) -> None:
    booking, mix = book(snapshot), demand_mix(snapshot, AnalysisSettings())
    for name, gpus, members in (("1 x 1 GPU", 1, 1), ("8 x 8 GPUs", 8, 8), ("1 x 64 GPUs", 64, 1)):
        request = PlacementRequest(shape=DemandShape(gpus=gpus, cpu_millicores=4000 * gpus), members=members)
        started = time.perf_counter()
        advice = WhatIf(booking, mix).answer(request, "bench")
        took = time.perf_counter() - started
        print(f"place {name:16s}  {took:8.3f} s   feasible {advice.feasible}, {len(advice.choices)} choices")


def _against_the_twin(snapshot: ClusterSnapshot) -> None:
    booking, mix = book(snapshot), demand_mix(snapshot, AnalysisSettings())
    columns = columns_of(booking)
    table = table_of(columns, mix)
    tasks = [
        (Task(s.shape.gpus, s.shape.milligpu_per_gpu, s.shape.cpu_millicores, s.shape.gpu_models), s.share_ratio)
        for s in mix.shapes
    ]
    rows = slice(0, TWIN_NODES)
    nodes = [(booked.cpu_free_millicores or 0, _devices(booked)) for booked in list(booking.nodes.values())[rows]]
    started = time.perf_counter()
    slow = [expected_fragment(cpu, devices, tasks) for cpu, devices in nodes]
    twin_seconds = time.perf_counter() - started
    kernel_seconds = _best_of(
        5, lambda: fragment_of_nodes(table, columns.left[rows], columns.model[rows], columns.cpu_free[rows])
    )
    fast = fragment_of_nodes(table, columns.left[rows], columns.model[rows], columns.cpu_free[rows])
    off = max((abs(a - b) for a, b in zip(slow, fast, strict=True)), default=0.0)
    print(
        f"kernel, {len(nodes)} nodes x {len(tasks)} shapes: {kernel_seconds * 1e3:.2f} ms against "
        f"{twin_seconds * 1e3:.1f} ms of the plain twin = {twin_seconds / kernel_seconds:.0f} x, worst gap {off:.1e}"
    )
    print(f"report, all nodes       {_best_of(5, lambda: fragmentation_report(booking, mix)):8.3f} s   bar 0.2 s")


def _devices(booked: BookedNode) -> list[Device]:
    free = zip(booked.node.gpus, booked.free_milligpu, strict=True)
    return [Device(gpu.model, left) for gpu, left in free]


def _best_of(rounds: int, work) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _synthetic() -> JobTrace:
    """A cluster and a list of the published size, from a seed; the shares of sizes follow the published list."""
    rng = random.Random(7)
    kinds = [("G2", 8, 96_000, 549), ("T4", 2, 64_000, 387), ("T4", 4, 64_000, 17), ("P100", 2, 64_000, 131)]
    kinds += [("P100", 1, 64_000, 3), ("V100-16", 4, 64_000, 35), ("V100-16", 3, 64_000, 15), ("V100-16", 2, 64_000, 5)]
    kinds += [("V100-32", 8, 96_000, 24), ("V100-32", 2, 96_000, 6), ("G3", 8, 128_000, 39), ("A10", 1, 128_000, 2)]
    sizes = [(model, gpus, cpu) for model, gpus, cpu, nodes in kinds for _ in range(nodes)]
    nodes = tuple(
        Node(
            name=f"node-{at:04d}",
            gpus=tuple(Gpu(index=index, model=model, health="healthy") for index in range(count)),
            cpu_allocatable_millicores=cpu,
            memory_allocatable_bytes=512 * 2**30,
        )
        for at, (model, count, cpu) in enumerate(sizes)
    )
    jobs = []
    for at in range(8152):
        gpus = rng.choices((0, 1, 2, 4, 8), (13.3, 85.8, 0.2, 0.2, 0.5))[0]
        share = rng.choice((160, 320, 470, 650, 810)) if gpus == 1 and rng.random() < 0.44 else 1000
        shape = DemandShape(
            gpus=gpus, milligpu_per_gpu=share, cpu_millicores=rng.choice((3152, 8000, 11_300, 12_000)), memory_bytes=MIB
        )
        name = f"job-{at:04d}"
        jobs.append(Job(id=name, name=name, shape=shape, members=(Member(name=name),), submitted_at=TRACE_START))
    return JobTrace(nodes=nodes, jobs=tuple(jobs), workload="synthetic")


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def _verdict(found: float, bar: float) -> str:
    return "met" if found < bar else "MISSED"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=os.environ.get("GPUWATCH_TRACES"), help="folder that holds openb/")
    parser.add_argument("--policy", default="best_fit")
    parser.add_argument("--load", type=float, default=None, help="stop once this share of the GPUs has been asked for")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
