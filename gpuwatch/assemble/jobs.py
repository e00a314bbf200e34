"""Pods become jobs: what each holds on which device, what each waits for, and which belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gpuwatch.assemble.pods import Want
from gpuwatch.assemble.resources import GpuAsk
from gpuwatch.assemble.settings import AssembleSettings
from gpuwatch.assemble.workloads import asked_models, asked_pool, gang_of, is_protected, kind_of, owner_of
from gpuwatch.model.jobs import DemandShape, DeviceShare, Job, JobPhase, Member
from gpuwatch.model.observations import Holder, PodRecord
from gpuwatch.model.snapshot import Finding
from gpuwatch.model.units import MILLI


@dataclass(frozen=True, slots=True)
class Spot:
    """A device, or a slice of it, that names a pod as its holder."""

    node: str
    index: int
    mig_id: str | None = None
    profile: str | None = None


def jobs_of(
    pods: Iterable[tuple[PodRecord, Want]],
    spots: Mapping[Holder, list[Spot]],
    pools: Mapping[str, str],
    settings: AssembleSettings,
) -> tuple[tuple[Job, ...], list[Finding]]:
    """One job per pod and form of ask; pods of one gang with one form are members of one job.

    `pools`: pool by node name.
    """
    findings: list[Finding] = []
    single: list[tuple[str | None, Job]] = []
    for pod, want in pods:
        held = spots.get(Holder(namespace=pod.namespace, pod=pod.name), [])
        here = [spot for spot in held if spot.node == pod.node]
        if pod.node and len(here) < len(held):
            detail = f"devices on another node than {pod.node} name it as their holder; they are not believed"
            findings.append(_finding(pod, "holder_on_other_node", detail))
        for number, ask in enumerate(want.asks):
            job = _job(pod, want, ask, number, here, pools, settings, findings)
            single.append((gang_of(pod), job))
    return tuple(_gangs(single)), findings


def _job(
    pod: PodRecord,
    want: Want,
    ask: GpuAsk,
    number: int,
    here: list[Spot],
    pools: Mapping[str, str],
    settings: AssembleSettings,
    findings: list[Finding],
) -> Job:
    first = number == 0  # a pod of several forms holds its CPU and memory once
    shape = DemandShape(
        gpus=ask.gpus,
        milligpu_per_gpu=MILLI if ask.profile else ask.milligpu,
        cpu_millicores=want.cpu_millicores if first else 0,
        memory_bytes=want.memory_bytes if first else 0,
        gpu_models=asked_models(pod),
        mig_profile=ask.profile,
    )
    shares = _shares(pod, ask, here, findings) if pod.node else ()
    member = Member(
        name=pod.name,
        node=pod.node,
        shares=shares,
        devices_known=bool(shares),
        terminating=pod.deletion_requested,
    )
    name = pod.name if first else f"{pod.name}+{number}"
    return Job(
        id=f"{pod.namespace}/{name}",
        name=name,
        shape=shape,
        members=(member,),
        tenant=pod.namespace,
        kind=kind_of(pod, settings),
        phase=_phase(pod),
        priority=settings.priority_by_class.get(pod.priority_class or ""),
        pool=pools.get(pod.node) if pod.node else asked_pool(pod, settings),
        owner=owner_of(pod),
        pending_reason=_pending_reason(pod),
        protected=is_protected(pod, settings),
        submitted_at=_at(pod.created_seconds),
        started_at=_at(pod.started_seconds) if pod.node else None,
    )


def _shares(pod: PodRecord, ask: GpuAsk, here: list[Spot], findings: list[Finding]) -> tuple[DeviceShare, ...]:
    """The devices by name, when the series name exactly as many as were asked for; else none."""
    if ask.profile:
        fitting = sorted(
            {s for s in here if s.mig_id and s.profile == ask.profile}, key=lambda s: (s.index, s.mig_id or "")
        )
        shares = tuple(DeviceShare(gpu_index=s.index, milligpu=0, mig_instance=s.mig_id) for s in fitting)
    else:
        indexes = sorted({spot.index for spot in here if not spot.mig_id})
        shares = tuple(DeviceShare(gpu_index=index, milligpu=ask.milligpu) for index in indexes)
    if len(shares) > ask.gpus:
        detail = f"{len(shares)} devices name it as their holder, {ask.gpus} were asked for; the count asked for stands"
        findings.append(_finding(pod, "device_labels_disagree", detail))
    return shares if len(shares) == ask.gpus else ()


def _phase(pod: PodRecord) -> JobPhase:
    if pod.node:
        return "running"  # bound: it holds its devices from before its first container starts until it is gone
    return "gated" if pod.gated else "pending"


def _pending_reason(pod: PodRecord) -> str | None:
    if pod.node:
        return None if "Running" in pod.phases else "starting" if "Pending" in pod.phases else "node_unreachable"
    return "scheduling_gate" if pod.gated else "unschedulable" if pod.unschedulable else "not_scheduled_yet"


def _at(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 < seconds < 2**40 else None


def _finding(pod: PodRecord, code: str, detail: str) -> Finding:
    return Finding(code=code, severity="warning", subject=f"{pod.namespace}/{pod.name}", detail=detail)


def _gangs(single: list[tuple[str | None, Job]]) -> list[Job]:
    """Pods of one owner, one form and one state as one job; the others as they are."""
    out: list[Job] = []
    groups: dict[tuple[str | None, str, DemandShape, JobPhase], list[Job]] = defaultdict(list)
    for gang, job in single:
        if gang is None:
            out.append(job)
        else:
            groups[job.tenant, gang, job.shape, job.phase].append(job)
    used: set[str] = {job.id for job in out}
    for (tenant, gang, _, _), jobs in groups.items():
        first = jobs[0]
        if len(jobs) == 1:
            out.append(first)
            continue
        name = gang.split("/", 1)[1]
        id_ = f"{tenant}/{name}" if f"{tenant}/{name}" not in used else first.id
        used.add(id_)
        pools = {job.pool for job in jobs}
        out.append(
            replace(
                first,
                id=id_,
                name=id_.split("/", 1)[1],
                members=tuple(job.members[0] for job in jobs),
                pool=first.pool if len(pools) == 1 else None,
                pending_reason=next((job.pending_reason for job in jobs if job.pending_reason), None),
                protected=any(job.protected for job in jobs),
                submitted_at=min((job.submitted_at for job in jobs if job.submitted_at), default=None),
                # The gang is as young as its youngest member: no verdict before all have warmed up.
                started_at=max((job.started_at for job in jobs if job.started_at), default=None),
            )
        )
    return sorted(out, key=lambda job: job.id)
