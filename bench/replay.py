"""Times replays: fgd against the plain numba reference in the same run, every policy, and growth with the nodes.

    python bench/replay.py [--trace FOLDER] [--workload default] [--rounds 3]

Prints seconds per run without compilation, the ratio to bench/plain_replay.py on the same stream length, and the time
per decision on ten times the nodes and jobs. Exits 1 when fgd costs more than the reference, or when ten times the
nodes cost more than twelve times as much per decision.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the reference beside this file

from bench.plain_replay import replay_plainly
from gpuwatch.placement.policy import POLICIES
from gpuwatch.placement.replay import Field, field_of, replay_arrivals
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import JobTrace

SEED = 42
INFLATE = 1.3
TIMES = 10
MOST_GROWTH = 12.0


def main() -> int:
    options = _options()
    trace = read_openb(Path(options.trace) / "openb", options.workload)
    field = field_of(trace)
    replay_plainly(trace, SEED, inflate=0.02)  # compiles
    plain = min(replay_plainly(trace, SEED, INFLATE)[2] for _ in range(options.rounds))
    print(f"{len(field.columns.names):,} nodes, {field.capacity_milligpu // 1000:,} GPUs, workload {options.workload}")
    print(f"{'plain numba reference (fgd)':30} {plain:8.3f} s")
    seconds = {}
    for policy in POLICIES.ids():
        seconds[policy], per_decision = _timed(field, policy, options.rounds)
        ratio = f"{seconds[policy] / plain:6.3f} of the reference" if policy == "fgd" else ""
        print(f"{policy:30} {seconds[policy]:8.3f} s  {per_decision:8.1f} us a decision  {ratio}")
    _, before = _timed(field, "fgd", options.rounds)
    large = field_of(_times(trace, TIMES))
    _, after = _timed(large, "fgd", 1)
    growth = after / before
    print(f"{TIMES} x the nodes: {after:.1f} us a decision, {growth:.2f} x as much (bar {MOST_GROWTH:g})")
    met = seconds["fgd"] <= plain and growth <= MOST_GROWTH
    print("bars met" if met else "BARS MISSED")
    return 0 if met else 1


def _timed(field: Field, policy: str, rounds: int) -> tuple[float, float]:
    """Median seconds of one run, and microseconds per arrival."""
    runs = [replay_arrivals(field, policy, seed=SEED, inflate=INFLATE) for _ in range(rounds)]
    median = statistics.median(run.seconds for run in runs)
    return median, median / runs[0].arrivals * 1e6


def _times(trace: JobTrace, times: int) -> JobTrace:
    """The trace beside copies of itself."""
    return replace(
        trace,
        nodes=tuple(replace(node, name=f"{node.name}-{copy}") for copy in range(times) for node in trace.nodes),
        jobs=tuple(replace(job, id=f"{job.id}-{copy}") for copy in range(times) for job in trace.jobs),
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=os.environ.get("GPUWATCH_TRACES"), help="folder that holds openb/")
    parser.add_argument("--workload", default="default")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.trace is None:
        parser.error("--trace FOLDER (or GPUWATCH_TRACES) is needed")
    return options


if __name__ == "__main__":
    sys.exit(main())
