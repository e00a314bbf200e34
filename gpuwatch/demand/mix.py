"""From what was submitted to the demand mix: the commonest shapes and their shares.

A shape here is GPUs, share of each, CPU and accepted models. Memory and tenant do not split shapes: the published index
ignores memory, and a mix that told every memory size apart would have a tail that no share covers. MIG shapes take no
part, since a time-share index says nothing about slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.mix import DemandMix, ShapeShare
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI


def demand_mix(snapshot: ClusterSnapshot, settings: AnalysisSettings) -> DemandMix:
    """The mix of `snapshot.arrivals` where given, else of the members of its unfinished jobs.

    Commonest shapes first (ties: larger shape first) until settings.mix_coverage_ratio of the members is covered, then
    shares are scaled to sum to 1. Empty, with a basis that says why, when nothing countable is asked for.
    """
    counted, basis = _counted(snapshot)
    counts: Counter[DemandShape] = Counter()
    mig = 0
    for shape, count in counted:
        if shape.mig_profile:
            mig += count
        elif count > 0:
            counts[_key(shape)] += count
    total = sum(counts.values())
    told = f"{basis}; {mig:,} MIG members take no part" if mig else basis
    if total == 0:
        return DemandMix(basis=f"no demand known ({told})")
    kept = _covering(counts, settings.mix_coverage_ratio * total)
    covered = sum(count for _, count in kept)
    return DemandMix(
        shapes=tuple(ShapeShare(shape=shape, share_ratio=count / covered) for shape, count in kept),
        basis=told,
        coverage_ratio=covered / total,
    )


def _counted(snapshot: ClusterSnapshot) -> tuple[Iterable[tuple[DemandShape, int]], str]:
    if snapshot.arrivals:
        given = [(entry.shape, entry.count) for entry in snapshot.arrivals]
        return given, snapshot.arrivals_basis or f"{sum(count for _, count in given):,} members submitted lately"
    jobs = [job for job in snapshot.jobs if job.phase != "finished"]
    members = sum(len(job.members) for job in jobs)
    return [(job.shape, len(job.members)) for job in jobs], f"{members:,} members of {len(jobs):,} unfinished jobs"


def _key(shape: DemandShape) -> DemandShape:
    # Shapes without GPUs carry a share that means nothing; one value for all keeps them together.
    return DemandShape(
        gpus=shape.gpus,
        milligpu_per_gpu=shape.milligpu_per_gpu if shape.gpus else MILLI,
        cpu_millicores=shape.cpu_millicores,
        gpu_models=shape.gpu_models,
    )


def _covering(counts: Counter[DemandShape], enough: float) -> list[tuple[DemandShape, int]]:
    """The commonest shapes until `enough` members are covered; all of them when the bound is beyond their sum."""
    kept: list[tuple[DemandShape, int]] = []
    covered = 0
    for shape, count in sorted(counts.items(), key=_rank, reverse=True):
        kept.append((shape, count))
        covered += count
        if covered >= enough:
            break
    return kept


def _rank(entry: tuple[DemandShape, int]) -> tuple[int, int, int, int, tuple[str, ...]]:
    shape, count = entry
    return count, shape.milligpu, shape.gpus, shape.cpu_millicores, shape.gpu_models
