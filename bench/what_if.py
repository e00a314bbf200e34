"""Times what-ifs on a large random cluster, by kind of request, against working everything out anew.

    python -m bench.what_if [--nodes 10000] [--requests 50] [--plain 1]

Every request is different and none has been asked before. The warm-up asks one of each kind, with other numbers. The
plain way is the twin under tests/reference, which gives equal answers; `--plain` requests of some kinds are given to
it. The bar is on the time that an answer works on a CPU (it runs in one thread and waits for nothing): while the load
is above the number of CPUs the clock tells the other programs' time too. Then the same requests on a tenth of the
nodes: the time of an answer must grow no faster than the cluster.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator

from bench.random_cluster import CARDS, random_snapshot
from gpuwatch.demand.mix import demand_mix
from gpuwatch.fit.booking import Booking, book
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import ModelSize, PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.units import GIB
from gpuwatch.placement.what_if.answer import WhatIf
from tests.reference.what_if import PlainWhatIf

MILLISECONDS_BAR, GROWTH_BAR = 10.0, 12.0
WARM_SEED, SEED = 1, 2


def main() -> int:
    options = _options()
    kinds, plain, worked = _measure(options.nodes, options.requests, options.plain)
    _, _, tenth = _measure(options.nodes // 10, options.requests, 0)
    for kind, times in kinds.items():
        against = f"{plain[kind] / statistics.median(times):10,.0f} x" if kind in plain else ""
        print(f"  {kind:24s} {statistics.median(times):8.2f} ms  worst {max(times):8.2f} ms{against}")
    high, growth = _percentile(worked, 0.99), statistics.median(worked) / statistics.median(tenth)
    print(f"p99 on a CPU {high:.2f} ms   bar {MILLISECONDS_BAR:.0f} ms: {_verdict(high, MILLISECONDS_BAR)}")
    print(f"x10 nodes, times {growth:.1f}   bar {GROWTH_BAR:.0f}: {_verdict(growth, GROWTH_BAR)}")
    return 0 if high <= MILLISECONDS_BAR and growth <= GROWTH_BAR else 1


def _measure(nodes: int, requests: int, plain: int) -> tuple[dict[str, list[float]], dict[str, float], list[float]]:
    """(milliseconds of each kind, of the plain way; milliseconds on a CPU of all requests)."""
    snapshot = random_snapshot(nodes)
    booking, mix = book(snapshot), demand_mix(snapshot, AnalysisSettings())
    started = time.perf_counter()
    what_if = WhatIf(booking, mix)
    for _, request in _requests(WARM_SEED, len(KINDS)):
        what_if.answer(request, "warm")
    warm = time.perf_counter() - started
    print(
        f"{nodes:,} nodes, {len(snapshot.jobs):,} jobs, {len(mix.shapes)} shapes in the mix; made and warmed up in "
        f"{warm:.2f} s; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    )
    kinds: dict[str, list[float]] = defaultdict(list)
    took, worked, asked = [], [], list(_requests(SEED, requests))
    for kind, request in asked:
        started, working = time.perf_counter(), time.process_time()
        what_if.answer(request, "bench")
        milliseconds = 1e3 * (time.perf_counter() - started)
        worked.append(1e3 * (time.process_time() - working))
        kinds[kind].append(milliseconds)
        took.append(milliseconds)
    for name, times in (("by the clock", took), ("on a CPU", worked)):
        print(f"  {name:14s} median {statistics.median(times):.2f} ms, p99 {_percentile(times, 0.99):.2f} ms")
    return dict(kinds), _plain_times(booking, mix, asked, plain), worked


def _plain_times(
    booking: Booking, mix: DemandMix, asked: list[tuple[str, PlacementRequest]], count: int
) -> dict[str, float]:
    twin, times = PlainWhatIf(booking, mix), defaultdict(list)
    for kind, request in asked:
        if len(times[kind]) < count and kind in PLAIN_KINDS:
            started = time.perf_counter()
            twin.answer(request)
            times[kind].append(1e3 * (time.perf_counter() - started))
    return {kind: statistics.median(each) for kind, each in times.items() if each}


def _requests(seed: int, count: int) -> Iterator[tuple[str, PlacementRequest]]:
    """Kinds in turn, each time with other numbers."""
    rng = random.Random(seed)
    for at in range(count):
        kind = list(KINDS)[at % len(KINDS)]
        yield kind, KINDS[kind](rng)


def _shape(rng: random.Random, gpus: int, **fields: object) -> DemandShape:
    return DemandShape(gpus=gpus, cpu_millicores=rng.randint(2, 40) * 250, **fields)  # type: ignore[arg-type]


def _share(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 1, milligpu_per_gpu=rng.randint(50, 900)))


def _one(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 1, gpu_models=tuple(sorted(rng.sample(CARDS, 2)))))


def _whole_node(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 8, memory_bytes=rng.randint(1, 64) * GIB))


def _gang(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 4), members=rng.randint(4, 16))


def _nvlink(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, rng.choice((2, 4))), members=rng.randint(2, 4), same_nvlink_domain=True)


def _cpu_only(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 0))


def _memory(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 1), gpu_memory_bytes=rng.randint(20, 180) * 10**9)


def _model(rng: random.Random) -> PlacementRequest:
    size = ModelSize(parameters=rng.randint(5, 300) * 10**9, precision=rng.choice(("fp16", "fp8")))
    return PlacementRequest(shape=_shape(rng, 1), model=size, choose_gpus=True)


def _best_fit(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 1, milligpu_per_gpu=rng.randint(50, 900)), policy="best_fit")


def _too_wide(rng: random.Random) -> PlacementRequest:
    return PlacementRequest(shape=_shape(rng, 8 * rng.randint(2, 16)), members=rng.randint(1, 64))


def _too_much(rng: random.Random) -> PlacementRequest:
    shape = DemandShape(gpus=rng.choice((1, 2, 4)), cpu_millicores=rng.randint(10**6, 10**7), memory_bytes=2**45)
    return PlacementRequest(shape=shape, members=rng.randint(1, 4))


KINDS = {
    "share of a GPU": _share,
    "1 GPU of two models": _one,
    "8 GPUs": _whole_node,
    "gang of 4 GPUs each": _gang,
    "gang in an NVLink domain": _nvlink,
    "CPU only": _cpu_only,
    "GPU memory": _memory,
    "model, GPUs left open": _model,
    "share, best_fit": _best_fit,
    "fits nowhere: too wide": _too_wide,
    "fits nowhere: too much": _too_much,
}
PLAIN_KINDS = ("share of a GPU", "8 GPUs", "CPU only")  # the others take the plain way minutes


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _verdict(found: float, bar: float) -> str:
    return "met" if found <= bar else "MISSED"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=55)
    parser.add_argument("--plain", type=int, default=1, help="requests of some kinds for the plain way; 0: none")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
