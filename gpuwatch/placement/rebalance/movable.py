"""Why a running job is left where it is."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from gpuwatch.fit.booking import BookedNode, Booking, Hold
from gpuwatch.fit.columns import ENOUGH
from gpuwatch.model.jobs import Job
from gpuwatch.model.plan import PlanLimits
from gpuwatch.model.units import MILLI


def immovable(job: Job, holds: list[tuple[int, Hold]], limits: PlanLimits, booking: Booking) -> str | None:
    """The first reason why a running job is left where it is."""
    member = job.members[0]
    node = booking.nodes.get(member.node or "")
    if node is None:
        return "gang" if len(job.members) > 1 else "node_unknown"
    checks = (
        ("cpu_only", job.shape.gpus == 0 and not limits.include_cpu_jobs),
        ("other_tenant", bool(limits.tenants) and job.tenant not in limits.tenants),
        ("other_pool", bool(limits.pools) and node.node.pool not in limits.pools),
        ("protected", job.protected or _named(job, limits.protect)),
        ("not_preemptible", job.preemptible is False),
        ("gang", len(job.members) > 1),
        ("terminating", member.terminating),
        ("not_running", job.phase != "running"),
        ("mig", job.shape.mig_profile is not None or any(hold.mig_instance is not None for _, hold in holds)),
        ("devices_unknown", any(hold.guessed for _, hold in holds) or len(holds) != job.shape.gpus),
        ("share_unclear", any(hold.milligpu != job.shape.milligpu_per_gpu for _, hold in holds)),
        ("gpu_model_unknown", not limits.any_model and any(node.node.gpus[at].model is None for at, _ in holds)),
        ("over_allocated", any(_overheld(node, at) for at, _ in holds)),
        ("amounts_unclear", not countable(job)),
    )
    return next((reason for reason, holds_true in checks if holds_true), None)


def _named(job: Job, patterns: Iterable[str]) -> bool:
    names = [name for name in (job.id, job.name, job.tenant, job.owner) if name]
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _overheld(node: BookedNode, at: int) -> bool:
    return sum(hold.milligpu for hold in node.holds[at]) > MILLI


def countable(job: Job) -> bool:
    """Whether its shape can be reckoned with: whole devices or one share, amounts of a sane size."""
    shape = job.shape
    shares = range(1, MILLI + 1) if shape.gpus == 1 else range(MILLI, MILLI + 1)
    sound = shape.gpus == 0 or (shape.gpus > 0 and shape.milligpu_per_gpu in shares)
    return sound and 0 <= shape.cpu_millicores < ENOUGH and 0 <= shape.memory_bytes < ENOUGH
