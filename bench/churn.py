"""Compares the policies under arrivals and departures on an openb list, and says what the loop costs.

    python bench/churn.py [--trace FOLDER] [--workload default] [--load 0.95] [--seeds 3] [--policy ID ...]
        [--preemption] [--queue backfill|fifo] [--gang-fraction 0.0]

One line for each policy: means over the seeds of allocated %, fragment % of idle, waiting and stuck GPUs, p95 of the
wait by job size (minutes), 8-GPU jobs started, jobs sent away and work lost, and seconds of the loop without compiling.
The jobs of a seed are the same for every policy. --plain runs the loop over NumPy as well, on the first seed, checks
that it is equal and says how much slower it is.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import fields
from pathlib import Path
from statistics import fmean

from gpuwatch.model.churn import ChurnRun
from gpuwatch.placement.churn.replay import churn_field, replay_churn
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.placement.policy import POLICIES
from gpuwatch.placement.replay import Field
from gpuwatch.traces.trace_format import read_trace

FIRST_SEED = 42
SIZES = ("share", "1", "2", "4", "8", "gang")


def main() -> None:
    options = _options()
    field = churn_field(read_trace(Path(options.trace) / "openb", options.workload))
    settings = ChurnSettings(
        load=options.load,
        queue=options.queue,
        preemption=options.preemption,
        gang_fraction=options.gang_fraction,
    )
    print(f"{options.workload}, load {options.load:g}, {options.queue}, preemption {options.preemption}")
    print(
        f"{'policy':20}{'alloc %':>9}{'frag %':>8}{'waiting':>9}{'stuck':>8}"
        + "".join(f"{f'p95 {size}':>10}" for size in SIZES)
        + f"{'8 began %':>10}{'away':>7}{'lost GPU-h':>11}{'s':>7}"
    )
    for policy in options.policy or POLICIES.ids():
        seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
        runs = [replay_churn(field, policy, seed=seed, settings=settings) for seed in seeds]
        print(_line(policy, runs), flush=True)
        if options.plain:
            _compare(field, policy, settings, runs[0])


def _line(policy: str, runs: list[ChurnRun]) -> str:
    waits = [_mean(_of(run, size, "wait_p95_seconds") for run in runs) for size in SIZES]
    eights = [(_of(run, "8", "started"), _of(run, "8", "arrived")) for run in runs]
    began = _mean(100 * started / came if came else None for started, came in eights)
    fragment = _mean(None if run.fragment_ratio is None else 100 * run.fragment_ratio for run in runs)
    waiting, stuck = (
        fmean(each) / 1000 for each in zip(*((r.waiting_milligpu, r.stuck_milligpu) for r in runs), strict=True)
    )
    return (
        f"{policy:20}{100 * fmean(run.utilization_ratio for run in runs):9.2f}{_text(fragment, 8, 1)}"
        f"{waiting:9.1f}{stuck:8.1f}"
        + "".join(_text(None if wait is None else wait / 60, 10, 1) for wait in waits)
        + f"{_text(began, 10, 1)}{fmean(run.preempted_jobs for run in runs):7.0f}"
        f"{fmean(run.lost_gpu_hours for run in runs):11.1f}{fmean(run.seconds for run in runs):7.2f}"
    )


def _compare(field: Field, policy: str, settings: ChurnSettings, fast: ChurnRun) -> None:
    plain = replay_churn(field, policy, seed=FIRST_SEED, settings=settings, compiled=False)
    for each in fields(ChurnRun):
        if each.name != "seconds" and getattr(plain, each.name) != getattr(fast, each.name):
            raise SystemExit(f"{policy}: {each.name} differs between numba and NumPy")
    print(f"{'':20}equal over NumPy in {plain.seconds:.1f} s, {plain.seconds / fast.seconds:.0f} times as long")


def _of(run: ChurnRun, size: str, measure: str):
    return next(getattr(each, measure) for each in run.sizes if each.size == size)


def _mean(measures) -> float | None:
    known = [each for each in measures if each is not None]
    return fmean(known) if known else None


def _text(amount: float | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if amount is None else f"{amount:{width}.{digits}f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", default=os.environ.get("GPUWATCH_TRACES"), help="folder that holds openb/")
    parser.add_argument("--workload", default="default")
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--policy", action="append", choices=POLICIES.ids())
    parser.add_argument("--queue", default="backfill", choices=("backfill", "fifo"))
    parser.add_argument("--preemption", action="store_true")
    parser.add_argument("--gang-fraction", type=float, default=0.0)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    if not options.trace:
        parser.error("name the traces with --trace or GPUWATCH_TRACES")
    return options


if __name__ == "__main__":
    main()
