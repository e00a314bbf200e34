"""Replays the published arrival protocol under fgd the plain way: the reference for what a fast replay costs.

    python bench/plain_replay.py [--trace FOLDER] [--workload default] [--inflate 1.3] [--seeds 3]

For each arrival every node that fits is scored anew from the definition, one shape of the mix after the other; nothing
is kept between arrivals but the fragment that each node has before. Prints one line per seed: seconds without
compilation, microseconds per arrival, and allocated % at 100% arrival and at the end.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np

from gpuwatch.demand.mix import demand_mix
from gpuwatch.model.jobs import DemandShape, Job
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import JobTrace, empty_snapshot

MILLI = 1000
FIRST_SEED = 42


@dataclass(frozen=True)
class Cluster:
    """N nodes of at most W devices, all of one model on one node."""

    left: np.ndarray  # (N, W) milligpu, 0 on padding
    devices: np.ndarray  # (N,)
    cpu: np.ndarray  # (N,) millicores
    memory: np.ndarray  # (N,) bytes
    model: np.ndarray  # (N,) position in the sorted models


@dataclass(frozen=True)
class Shapes:
    """M shapes, the mix or the stream."""

    gpus: np.ndarray  # (M,)
    share: np.ndarray  # (M,) milligpu of each device
    cpu: np.ndarray  # (M,) millicores
    memory: np.ndarray  # (M,) bytes
    accepts: np.ndarray  # (M, models)


def main() -> int:
    options = _options()
    trace = read_openb(Path(options.trace) / "openb", options.workload)
    replay_plainly(trace, FIRST_SEED, inflate=0.02)  # compiles
    for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
        arrived, allocated, seconds = replay_plainly(trace, seed, options.inflate)
        at_100 = allocated[np.rint(arrived) == 100].mean()
        print(
            f"{options.workload} seed {seed}: {len(arrived):,} arrivals, {seconds:7.3f} s, "
            f"{seconds / len(arrived) * 1e6:6.1f} us each, allocated {at_100:.2f}% at 100%, {allocated[-1]:.2f}% at end"
        )
    return 0


def replay_plainly(trace: JobTrace, seed: int, inflate: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Arrived % and allocated % after each arrival, and the seconds of the placement loop alone."""
    models = sorted({gpu.model or "" for node in trace.nodes for gpu in node.gpus})
    cluster = _cluster(trace, models)
    mix = demand_mix(empty_snapshot(trace), AnalysisSettings())
    capacity = int(cluster.left.sum())
    rng = random.Random(seed)
    stream = _shapes([job.shape for job in _stream(trace.jobs, int(inflate * capacity), rng)], models)
    order = list(range(len(trace.nodes)))
    rng.shuffle(order)
    weight = np.array([entry.share_ratio for entry in mix.shapes])
    typical = _shapes([entry.shape for entry in mix.shapes], models)
    started = time.perf_counter()
    granted = _replay(
        cluster.left, cluster.devices, cluster.cpu, cluster.memory, cluster.model, np.array(order),
        stream.gpus, stream.share, stream.cpu, stream.memory, stream.accepts,
        typical.gpus, typical.share, typical.cpu, typical.accepts, weight,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    percent = 100 / capacity
    return (stream.gpus * stream.share).cumsum() * percent, granted.cumsum() * percent, seconds


def _stream(jobs: tuple[Job, ...], milligpu: int, rng: random.Random) -> list[Job]:
    """The jobs in a random order, then drawn anew up to `milligpu`; or thinned out when they ask for more."""
    stream = sorted(jobs, key=lambda job: job.name)
    rng.shuffle(stream)
    drawn = list(stream)
    asked = sum(job.shape.milligpu for job in stream)
    while asked > milligpu:
        asked -= stream.pop(rng.randrange(len(stream))).shape.milligpu
    while len(stream) >= len(drawn):
        job = rng.choice(drawn)
        asked += job.shape.milligpu
        if asked > milligpu:
            break
        stream.append(job)
    return stream


def _cluster(trace: JobTrace, models: list[str]) -> Cluster:
    devices = np.array([len(node.gpus) for node in trace.nodes])
    return Cluster(
        left=np.where(np.arange(devices.max()) < devices[:, None], MILLI, 0),
        devices=devices,
        cpu=np.array([node.cpu_allocatable_millicores or 0 for node in trace.nodes]),
        memory=np.array([node.memory_allocatable_bytes or 0 for node in trace.nodes]),
        model=np.array([models.index(node.gpus[0].model or "") for node in trace.nodes]),
    )


def _shapes(shapes: list[DemandShape], models: list[str]) -> Shapes:
    return Shapes(
        gpus=np.array([shape.gpus for shape in shapes]),
        share=np.array([shape.milligpu_per_gpu for shape in shapes]),
        cpu=np.array([shape.cpu_millicores for shape in shapes]),
        memory=np.array([shape.memory_bytes for shape in shapes]),
        accepts=np.array([[not s.gpu_models or model in s.gpu_models for model in models] for s in shapes]),
    )


@numba.njit(cache=False)
def _fragment(left, devices, cpu, model, gpus, share, needs, accepts, weight):
    """The published F of one node: what each shape of the mix could not use of it, weighted."""
    total = 0.0
    idle = 0
    for device in range(devices):
        idle += left[device]
    for m in range(len(gpus)):
        roomy = 0
        low = 0
        for device in range(devices):
            if left[device] >= share[m]:
                roomy += 1
            else:
                low += left[device]
        runs = gpus[m] > 0 and accepts[m, model] and roomy >= gpus[m] and cpu >= needs[m]
        total += weight[m] * (low if runs else idle)
    return total


@numba.njit(cache=False)
def _score(before, after):
    return int(100 / (1 + math.exp(-(before - after) / 1000)))


@numba.njit(cache=False)
def _replay(
    left, devices, cpu, memory, model, order,
    job_gpus, job_share, job_cpu, job_memory, job_accepts,
    gpus, share, needs, accepts, weight,
):  # fmt: skip
    nodes = len(devices)
    granted = np.zeros(len(job_gpus), np.int64)
    before = np.empty(nodes)
    for n in range(nodes):
        before[n] = _fragment(left[n], devices[n], cpu[n], model[n], gpus, share, needs, accepts, weight)
    tried = np.empty(left.shape[1], np.int64)
    for at in range(len(job_gpus)):
        k, g, c = job_gpus[at], job_share[at], job_cpu[at]
        best_node, best_device, best_score = -1, -1, -1
        for n in range(nodes):
            roomy = 0
            for device in range(devices[n]):
                roomy += left[n, device] >= g
            if cpu[n] < c or memory[n] < job_memory[at] or (k > 0 and (roomy < k or not job_accepts[at, model[n]])):
                continue
            for first in range(devices[n] if k == 1 else 1):
                if k == 1 and left[n, first] < g:
                    continue
                tried[:] = left[n]
                taken = 0
                for device in range(first, devices[n]):
                    if taken < k and tried[device] >= g:
                        tried[device] -= g
                        taken += 1
                after = _fragment(tried, devices[n], cpu[n] - c, model[n], gpus, share, needs, accepts, weight)
                score = _score(before[n], after)
                if score > best_score or (score == best_score and order[n] < order[best_node]):
                    best_node, best_device, best_score = n, first, score
        if best_node < 0:
            continue
        taken = 0
        for device in range(best_device, devices[best_node]):
            if taken < k and left[best_node, device] >= g:
                left[best_node, device] -= g
                taken += 1
        cpu[best_node] -= c
        memory[best_node] -= job_memory[at]
        before[best_node] = _fragment(
            left[best_node], devices[best_node], cpu[best_node], model[best_node], gpus, share, needs, accepts, weight
        )
        granted[at] = k * g
    return granted


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=os.environ.get("GPUWATCH_TRACES"), help="folder that holds openb/")
    parser.add_argument("--workload", default="default")
    parser.add_argument("--inflate", type=float, default=1.3)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.trace is None:
        parser.error("--trace FOLDER (or GPUWATCH_TRACES) is needed")
    return options


if __name__ == "__main__":
    sys.exit(main())
