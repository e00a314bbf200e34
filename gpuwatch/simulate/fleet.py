"""Builds the whole fleet of the plan, copy by copy: nodes, devices, slices, their jobs and the queue."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from uuid import UUID

from gpuwatch.model.catalogue import card
from gpuwatch.model.cluster import Gpu, MigInstance, Node
from gpuwatch.model.jobs import DemandShape, Member
from gpuwatch.model.units import GIB, MIB, MILLI
from gpuwatch.simulate.filling import fill_node
from gpuwatch.simulate.jobs import WAITING, WaitingJob
from gpuwatch.simulate.layout import Layout, Slot, job_name
from gpuwatch.simulate.machines import GPU_FAULTS, MACHINES, MIG_LAYOUTS, PLAN, Machine, NodePlan


def build(seed: int, scale: int) -> Layout:
    """The whole fleet; `scale` copies of the plan, each with its own background work."""
    layout = Layout(seed=seed)
    counts: dict[str, int] = defaultdict(int)
    for copy in range(scale):
        for plan in PLAN:
            counts[plan.machine] += 1
            name = f"{plan.machine}-{counts[plan.machine]:02d}"
            layout.nodes[name] = _node(layout, name, plan, MACHINES[plan.machine])
            fill_node(layout, name, plan, copy)
        layout.slots += [_waiting(wanted, copy, layout) for wanted in WAITING]
    return layout


def _node(layout: Layout, name: str, plan: NodePlan, machine: Machine) -> Node:
    draw = Random(f"{layout.seed}/node/{name}")
    troubles = dict(plan.troubles)
    for index, trouble in troubles.items():
        layout.troubles[name, index] = trouble
        layout.planted[trouble].append(f"{name}/{index}")
    for cause in (*plan.block, *((plan.shows,) if plan.shows else ()), *(("exporter_down",) * plan.exporter_down)):
        layout.planted[cause].append(name)
    return Node(
        name=name,
        pool=plan.pool,
        gpus=tuple(_gpu(layout, name, i, plan, machine, troubles.get(i), draw) for i in range(machine.gpus)),
        cpu_allocatable_millicores=machine.cpus * MILLI,
        memory_allocatable_bytes=machine.memory_gib * GIB,
        other_cpu_requested_millicores=2000 + 100 * draw.randrange(10),
        other_memory_requested_bytes=8 * GIB,
        block_causes=plan.block,
    )


def _gpu(
    layout: Layout, node: str, index: int, plan: NodePlan, machine: Machine, trouble: str | None, draw: Random
) -> Gpu:
    broken = trouble in GPU_FAULTS
    dark = "lost" if trouble == "lost" else "exporter_down" if plan.exporter_down else None
    profile = card(machine.model)
    assert profile is not None  # the plan names catalogue cards only
    causes = ("lost", "xid_79") if trouble == "lost" else (trouble,) if broken and trouble else ()
    uuid = f"GPU-{UUID(int=draw.getrandbits(128), version=4)}"
    return Gpu(
        index=index,
        uuid=uuid,
        model=machine.model,
        product=machine.product,
        memory_total_bytes=profile.memory_total_mib * MIB,
        health="unhealthy" if broken else "unknown" if plan.exporter_down else "healthy",
        health_causes=causes,
        replicas=plan.replicas,
        mig_enabled=index in plan.mig,
        mig_instances=_instances(uuid, machine.model, plan.mig.get(index)),
        telemetry_reason=dark,
        activity_reason=dark,
    )


def _instances(uuid: str, model: str, layout_id: str | None) -> tuple[MigInstance, ...]:
    profile = card(model)
    if layout_id is None or profile is None:
        return ()
    by_family = {p.name.split(".")[0]: p for p in reversed(profile.mig_profiles)}  # the plain one, not the doubled 1g
    return tuple(
        MigInstance(
            id=str(number),
            profile=by_family[family].name,
            compute_slices=by_family[family].compute_slices,
            memory_slices=by_family[family].memory_slices,
            placement_start=start,
            uuid=f"MIG-{UUID(int=Random(f'{uuid}/{number}').getrandbits(128), version=4)}",
        )
        for number, (family, start) in enumerate(MIG_LAYOUTS[layout_id], start=3)
    )


def _waiting(wanted: WaitingJob, copy: int, layout: Layout) -> Slot:
    name = job_name(wanted.name, copy)
    layout.planted[wanted.case].append(f"{wanted.tenant}/{name}")
    shape = DemandShape(
        gpus=wanted.gpus,
        cpu_millicores=round(wanted.cpus * MILLI),
        memory_bytes=round(wanted.memory_gib * GIB),
        gpu_models=wanted.models,
        mig_profile=wanted.mig_profile,
    )
    return Slot(
        name=name,
        tenant=wanted.tenant,
        kind=wanted.kind,
        shape=shape,
        members=tuple(Member(name=f"{name}-{i}") for i in range(wanted.members)),
        owner=f"Job/{name}",
        age_seconds=60 * wanted.age_minutes,
        pool=wanted.pool,
        phase="gated" if wanted.phase == "gated" else "pending",
        pending_reason=wanted.reason,
        priority=wanted.priority,
    )
