"""What a plan gains: the cluster before and after it, each measured as if it had been observed."""

from __future__ import annotations

from gpuwatch.model.evaluation import FragmentationReport
from gpuwatch.model.plan import PlanMeasure, ShapeGain
from gpuwatch.model.snapshot import ClusterSnapshot


def measure(snapshot: ClusterSnapshot, report: FragmentationReport) -> PlanMeasure:
    """What is held, free, usable and waited for. `report` is of `snapshot` and the mix."""
    scope = report.overall
    waiting = [job for job in snapshot.jobs if job.phase == "pending" and job.shape.milligpu]
    return PlanMeasure(
        allocated_milligpu=_allocated(snapshot),
        free_milligpu=scope.free_milligpu,
        usable_milligpu=scope.free_milligpu - scope.stranded_milligpu,
        stranded_milligpu=scope.stranded_milligpu,
        fragmentation_index=scope.fragmentation_index,
        pending_jobs=sum(all(member.node is None for member in job.members) for job in waiting),
        pending_milligpu=sum(job.shape.milligpu for job in waiting for member in job.members if member.node is None),
    )


def _allocated(snapshot: ClusterSnapshot) -> int:
    """Held by bound members, counted as asked for."""
    return sum(
        job.shape.demanded_milligpu
        for job in snapshot.jobs
        if job.phase != "finished"
        for member in job.members
        if member.node is not None
    )


def shape_gains(before: FragmentationReport, after: FragmentationReport) -> tuple[ShapeGain, ...]:
    """Shapes of the mix, in its order, whose fits change. Both reports are over the same mix."""
    return tuple(
        ShapeGain(shape=a.shape.label, fits_before=a.fits_now, fits_after=b.fits_now)
        for a, b in zip(before.shapes, after.shapes, strict=True)
        if a.fits_now != b.fits_now
    )
