"""Jobs by state, partition, shape and tenant, and what the waiting ones wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuwatch_exporters.slurm.count.tally import NONE, OTHER, SEVERAL, Tally, bounded
from gpuwatch_exporters.slurm.families import jobs as of
from gpuwatch_exporters.slurm.families import pending, tenants
from gpuwatch_exporters.slurm.families.gpus import GRES_USED
from gpuwatch_exporters.slurm.family import Family
from gpuwatch_exporters.slurm.read.states import ENDED, HOLDS
from gpuwatch_exporters.slurm.records import Job

_MOST_REASONS, _MOST_SHAPES = 100, 200


def job_samples(jobs: Iterable[Job], now: float) -> Tally:
    """Everything that is told of jobs without their tenants. `now`: Unix time of the answer."""
    tally = Tally()
    jobs = list(jobs)
    reasons = bounded((job.reason for job in jobs if waits(job)), _MOST_REASONS)
    shapes = set(sorted({_shape(job) for job in jobs})[:_MOST_SHAPES])
    for job in jobs:
        partition = partition_label(job)
        if job.state in ENDED:
            tally.add(of.ENDED, job.state)
            continue
        tally.add(of.JOBS, partition, job.state, number=job.tasks)
        gpus = job.gpus if holds(job) else job.gpus_asked
        if gpus:
            shape = _shape(job)
            tally.add(of.BY_SHAPE, job.state, *(shape if shape in shapes else (OTHER, OTHER)), number=job.tasks)
            if job.limit_seconds is None:
                tally.add(of.NO_LIMIT, job.state, number=job.tasks)
        if holds(job):
            _held(tally, job, partition, now)
        elif waits(job):
            _waiting(tally, job, partition, reasons[job.reason], now)
    return tally


def tenant_samples(jobs: Iterable[Job], most: int, per_user: bool) -> Tally:
    """GPUs and jobs by account, and by user where asked for; at most `most` names of each."""
    tally = Tally()
    alive = [job for job in jobs if job.state not in ENDED]
    sides: list[tuple[Callable[[Job], str], Family, Family, Family]] = [
        (lambda job: job.account, tenants.ACCOUNT_JOBS, tenants.ACCOUNT_GPUS, tenants.ACCOUNT_ASKED)
    ]
    if per_user:
        sides.append((lambda job: job.user, tenants.USER_JOBS, tenants.USER_GPUS, tenants.USER_ASKED))
    for who, counted, allocated, asked in sides:
        label = bounded(map(who, alive), most)
        for job in alive:
            name = label[who(job)] or NONE
            tally.add(counted, name, job.state, number=job.tasks)
            for kind, held in job.gpus.items():
                tally.add(allocated, name, kind, number=held)
            for kind, wanted in job.gpus_asked.items() if waits(job) else ():
                tally.add(asked, name, kind, number=wanted * job.tasks)
    return tally


def whole_nodes(jobs: Iterable[Job]) -> frozenset[str]:
    """Names of the nodes that a job has for itself."""
    return frozenset(name for job in jobs if job.exclusive and holds(job) for name in job.node_names)


def holds(job: Job) -> bool:
    """Whether its GPUs are taken."""
    return job.state in HOLDS


def waits(job: Job) -> bool:
    """Whether it waits to start."""
    return job.state == "pending"


def partition_label(job: Job) -> str:
    """Its partition; a waiting job may have been sent to several."""
    return SEVERAL if "," in job.partition else job.partition


def _shape(job: Job) -> tuple[str, str]:
    """(nodes, GPUs per node) as labels; "" where not told."""
    nodes, gpus = ("" if told is None else str(told) for told in (job.nodes, job.gpus_per_node))
    return nodes, gpus


def _held(tally: Tally, job: Job, partition: str, now: float) -> None:
    total = sum(job.gpus.values())
    for each in job.others:
        tally.add(GRES_USED, each.name, number=each.count)
    for kind, held in job.gpus.items():
        tally.add(of.GPUS, partition, kind, number=held)
    if job.exclusive:
        tally.add(of.UNASKED, partition, number=max(total - sum(job.gpus_asked.values()), 0))
    if total and job.limit_seconds is not None and job.ends_at is not None:
        tally.add(of.SECONDS_LEFT, partition, number=total * max(job.ends_at - now, 0))


def _waiting(tally: Tally, job: Job, partition: str, reason: str, now: float) -> None:
    tally.add(pending.JOBS, reason, number=job.tasks)
    total = sum(job.gpus_asked.values()) * job.tasks
    for kind, wanted in job.gpus_asked.items():
        tally.add(pending.GPUS, reason, kind, number=wanted * job.tasks)
        tally.add(pending.BY_PARTITION, partition, kind, number=wanted * job.tasks)
    if total and job.limit_seconds is not None:
        tally.add(pending.GPU_SECONDS, partition, number=total * job.limit_seconds)
    if job.submitted_at is not None:
        tally.most(pending.OLDEST, partition, number=max(now - job.submitted_at, 0))
    if job.eligible_at is not None and job.eligible_at <= now:
        tally.most(pending.OLDEST_ELIGIBLE, partition, number=now - job.eligible_at)
