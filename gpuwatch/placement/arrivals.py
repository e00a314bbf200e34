"""Places a stream of jobs, one after the other, and gives the cluster as it stands after the last.

Nothing leaves and nothing is retried, as in the published experiments: a job that fits nowhere when it comes is
pending.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.demand.mix import demand_mix
from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import Columns, columns_of
from gpuwatch.fragmentation.report import table_of
from gpuwatch.model.jobs import DemandShape, DeviceShare, Job
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI
from gpuwatch.placement.placer import Placer, Spot

FITS_NOWHERE = "fits_nowhere"
SHAPE_WITHOUT_SENSE = "shape_without_sense"  # negative amounts, or shares that no device can give
MIG_NOT_PLACED = "mig_not_placed"  # a stream is placed on time shares only; slices would have to be named


def place_stream(
    snapshot: ClusterSnapshot,
    jobs: Sequence[Job],
    policy: str = "best_fit",
    until_milligpu: int | None = None,
    seed: int | None = None,
) -> ClusterSnapshot:
    """`snapshot` with `jobs` placed on it: running on named devices, or pending with a reason.

    until_milligpu: the stream ends before the job with which more than this would have arrived (placed or not); later
    jobs are left out. seed: jobs come in a random order and ties between nodes fall in another one, both fixed by the
    seed; None keeps the order given and the order of nodes. The policy's mix is that of `snapshot`, or of the jobs
    when that has no demand of its own. An unknown policy is a SettingsError.
    """
    columns = columns_of(book(snapshot))
    rng = random.Random(seed)
    stream, order = list(jobs), list(range(len(columns.names)))
    if seed is not None:
        stream.sort(key=lambda job: job.id)
        rng.shuffle(stream)
        rng.shuffle(order)
    known = snapshot if snapshot.arrivals or snapshot.jobs else replace(snapshot, jobs=tuple(jobs))
    mix = table_of(columns, demand_mix(known, AnalysisSettings()))
    placer = Placer(columns, mix, policy, order=np.array(order, dtype=np.int64), seed=seed or 0, holds_back=True)
    arrived, placed = 0, []
    for job in stream:
        arrived += job.shape.milligpu * len(job.members)
        if until_milligpu is not None and arrived > until_milligpu:
            break
        placed.append(_place(placer, job))
    return replace(snapshot, jobs=(*snapshot.jobs, *placed))


def _place(placer: Placer, job: Job) -> Job:
    if job.shape.mig_profile:
        return replace(job, phase="pending", pending_reason=MIG_NOT_PLACED)
    if not _makes_sense(job.shape):
        return replace(job, phase="pending", pending_reason=SHAPE_WITHOUT_SENSE)
    spots = placer.take_gang(job.shape, len(job.members))
    if not spots:
        return replace(job, phase="pending", pending_reason=FITS_NOWHERE)
    members = tuple(
        replace(
            member,
            node=placer.columns.names[spot.row],
            shares=_shares(placer.columns, spot),
            devices_known=True,
        )
        for member, spot in zip(job.members, spots, strict=True)
    )
    return replace(job, phase="running", pending_reason=None, members=members)


def _makes_sense(shape: DemandShape) -> bool:
    shares = range(1, MILLI + 1) if shape.gpus == 1 else range(MILLI, MILLI + 1)
    devices = shape.gpus == 0 or (shape.gpus > 0 and shape.milligpu_per_gpu in shares)
    return devices and shape.cpu_millicores >= 0 and shape.memory_bytes >= 0


def _shares(columns: Columns, spot: Spot) -> tuple[DeviceShare, ...]:
    return tuple(
        DeviceShare(gpu_index=int(columns.gpu_index[spot.row, device]), milligpu=spot.shape.milligpu_per_gpu)
        for device in spot.devices
    )
