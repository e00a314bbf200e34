"""Single nodes, GPUs and jobs, each only where asked for, and together no more series than allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gpuwatch_exporters.slurm.count.jobs import holds, waits
from gpuwatch_exporters.slurm.families import single as of
from gpuwatch_exporters.slurm.family import Sample
from gpuwatch_exporters.slurm.read.states import ENDED
from gpuwatch_exporters.slurm.records import Job, Node


class Wanted(NamedTuple):
    """What was asked for, and the most series of all of it."""

    nodes: bool = False
    gpus: bool = False
    jobs: bool = False
    most_series: int = 50_000


def single_samples(nodes: Iterable[Node], jobs: Iterable[Job], wanted: Wanted) -> list[Sample]:
    """The first `most_series` in the order of nodes, GPUs, jobs; how many were left out is a sample too."""
    if not (wanted.nodes or wanted.gpus or wanted.jobs):
        return []
    every: list[Sample] = []
    if wanted.nodes:
        every += (sample for node in nodes for sample in _node(node))
    if wanted.gpus:
        every += (sample for node in nodes for sample in _gpus(node))
    if wanted.jobs:
        every += (sample for job in jobs if job.state not in ENDED for sample in _job(job))
    left_out = max(len(every) - wanted.most_series, 0)
    return [*every[: wanted.most_series], Sample(of.DROPPED, (), left_out)]


def _node(node: Node) -> Iterator[Sample]:
    yield Sample(of.NODE_INFO, (node.name, node.condition), 1)
    for kind, installed in node.gpus.items():
        yield Sample(of.NODE_GPUS, (node.name, kind), installed)
        if node.gpus_used is not None:
            yield Sample(of.NODE_USED, (node.name, kind), node.gpus_used.get(kind, 0))


def _gpus(node: Node) -> Iterator[Sample]:
    """Indices are those of Slurm: the order of the device files in gres.conf."""
    if node.used_indices is None or node.gpus_used is None:
        return
    for index in range(sum(node.gpus.values())):
        yield Sample(of.GPU_USED, (node.name, str(index)), index in node.used_indices)


def _job(job: Job) -> Iterator[Sample]:
    yield Sample(of.JOB_INFO, (job.id, job.account, job.user, job.partition, job.state), 1)
    for kind, held in job.gpus.items() if holds(job) else ():
        yield Sample(of.JOB_GPUS, (job.id, kind), held)
    for kind, asked in job.gpus_asked.items() if waits(job) else ():
        yield Sample(of.JOB_ASKED, (job.id, kind), asked * job.tasks)
