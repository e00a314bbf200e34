"""Which pods hold which device: the index from which both pages are printed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gpuwatch.model.jobs import Job, Member
from gpuwatch.model.snapshot import ClusterSnapshot

DEFAULT_NAMESPACE = "default"
CONTAINER = "main"


@dataclass(frozen=True, slots=True)
class Pod:
    """One member of a job as a pod that the kubelet knows."""

    job: Job
    member: Member

    @property
    def namespace(self) -> str:
        return namespace_of(self.job)


# node name -> (device index, MIG instance or None) -> pods on it, in the order of the snapshot
Holders = dict[str, dict[tuple[int, str | None], list[Pod]]]


def namespace_of(job: Job) -> str:
    """The part of the job's id before the slash, else its tenant."""
    head, slash, _ = job.id.partition("/")
    return head if slash and head else job.tenant or DEFAULT_NAMESPACE


def holders_of(snapshot: ClusterSnapshot) -> Holders:
    """Pods per device. A finished pod holds nothing; a pod whose devices nobody knows is on no device's series."""
    found: Holders = defaultdict(lambda: defaultdict(list))
    for pod in bound_pods(snapshot.jobs):
        for hold in pod.member.shares:
            found[pod.member.node or ""][hold.gpu_index, hold.mig_instance].append(pod)
    return found


def bound_pods(jobs: Iterable[Job]) -> Iterable[Pod]:
    """Pods that stand on a node and have not ended."""
    for job in jobs:
        if job.phase != "finished":
            for member in job.members:
                if member.node is not None:
                    yield Pod(job, member)
