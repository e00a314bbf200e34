"""Runs of a replay written down by hand."""

from __future__ import annotations

from gpuwatch.model.replay import ReplayPoint, ReplayRun, SizeAdmission


def a_point(percent: int, allocated: float, fragment: float | None = 0.5) -> ReplayPoint:
    return ReplayPoint(
        arrived_percent=percent,
        allocation_ratio=allocated,
        fragment_ratio=fragment,
        fragment_of_capacity_ratio=(fragment or 0.0) * (1 - allocated),
    )


def a_run(
    policy: str = "fgd",
    seed: int = 42,
    workload: str = "default",
    *,
    allocated: tuple[float | None, float | None] = (0.95, 0.96),
    fragments: tuple[float | None, float | None, float | None] = (0.2, 0.4, 0.9),
    admitted: dict[str, tuple[int, int]] | None = None,
    seconds: float = 1.0,
) -> ReplayRun:
    """A run with points at 40, 80, 95, 100 and 130% (the last two only where allocation is given)."""
    ends = [(percent, ratio) for percent, ratio in zip((100, 130), allocated, strict=True) if ratio is not None]
    points = [a_point(at, at / 100, part) for at, part in zip((40, 80, 95), fragments, strict=True)]
    sizes = {"cpu": (10, 10), "share": (20, 19), "1": (40, 38), "8": (4, 3)} if admitted is None else admitted
    return ReplayRun(
        trace="openb",
        workload=workload,
        policy=policy,
        seed=seed,
        inflate_ratio=1.3,
        arrivals=100,
        allocation_ratio_at_100=allocated[0],
        allocation_ratio_at_130=allocated[1],
        curve=(*points, *(a_point(percent, ratio, 1.0) for percent, ratio in ends)),
        admission=tuple(
            SizeAdmission(size=size, arrived=came, admitted=got, arrived_in_all=came + 5, admitted_in_all=got)
            for size, (came, got) in sizes.items()
        ),
        seconds=seconds,
    )
