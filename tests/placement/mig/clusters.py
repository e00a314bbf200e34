"""Small clusters of cut devices, and a plan made real in a snapshot."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from gpuwatch.fit.booking import book
from gpuwatch.model.catalogue import mig_geometry
from gpuwatch.model.cluster import Gpu, MigInstance, Node
from gpuwatch.model.jobs import DeviceShare, Job, Member
from gpuwatch.model.mig import MigPlan
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.placement.mig.asks import asks_of
from gpuwatch.placement.mig.devices import Limits, devices_of
from gpuwatch.placement.mig.exact import THOROUGH
from gpuwatch.placement.mig.plan import plan_layouts
from tests.builders import a_gpu, a_node, a_shape, a_snapshot
from tests.reference import mig as plain

NAMES = {"1g": "1g.10gb", "1g_double": "1g.20gb", "2g": "2g.20gb", "3g": "3g.40gb", "4g": "4g.40gb", "7g": "7g.80gb"}


def an_instance(id_: int | str, profile: str, start: int | None, model: str = "H100-80") -> MigInstance:
    geometry = mig_geometry(model)
    assert geometry is not None
    known = geometry.profile(profile)
    assert known is not None
    return MigInstance(
        id=str(id_),
        profile=profile,
        compute_slices=known.compute_slices,
        memory_slices=known.memory_slices,
        placement_start=start,
    )


def a_cut(index: int, *instances: MigInstance, model: str = "H100-80", **fields) -> Gpu:
    return a_gpu(index, model, uuid=f"GPU-{index:08x}", mig_enabled=True, mig_instances=instances, **fields)


def on(node: str, gpu: Gpu, id_: str, **fields) -> Job:
    """A job that holds one instance."""
    profile = next(each.profile for each in gpu.mig_instances if each.id == id_)
    share = DeviceShare(gpu_index=gpu.index, milligpu=0, mig_instance=id_)
    member = Member(name="m", node=node, devices_known=True, shares=(share,))
    name = f"{node}-{gpu.index}-{id_}"
    return Job(id=f"ml/{name}", name=name, shape=a_shape(mig_profile=profile), members=(member,), **fields)


def planned(snapshot: ClusterSnapshot, demand: dict[str, int], exact: bool = True, **limits) -> MigPlan:
    devices, out = devices_of(book(snapshot), Limits(**limits))
    return plan_layouts(asks_of(demand), devices, out, effort=THOROUGH if exact else None)


def random_cut(rng: random.Random, count: int) -> tuple[ClusterSnapshot, list[tuple[tuple, tuple]]]:
    """One node of H100s in random legal states, instances held or idle; and the same for the plain twin."""
    every = sorted(plain.states_cached(tuple(NAMES)), key=sorted)
    gpus, jobs, twin = [], [], []
    for index in range(count):
        state = sorted(rng.choice(every)) if rng.random() < 0.7 else []
        held = [rng.random() < 0.5 for _ in state]
        gpu = a_cut(index, *(an_instance(3 + at, NAMES[kind], start) for at, (kind, start) in enumerate(state)))
        jobs += [on("n1", gpu, str(3 + at)) for at, busy in enumerate(held) if busy]
        gpus.append(gpu)
        parts = [tuple(p for p, busy in zip(state, held, strict=True) if busy is want) for want in (True, False)]
        twin.append((parts[0], parts[1]))
    return a_snapshot(a_node("n1", gpus), jobs=jobs), twin


def applied(snapshot: ClusterSnapshot, plan: MigPlan) -> ClusterSnapshot:
    """The snapshot after the plan's deletions and creations. New ids are those that the driver would give next."""
    layouts = {(each.node, each.gpu_index): each for each in plan.devices}
    return replace(snapshot, nodes=tuple(_node(node, layouts) for node in snapshot.nodes))


def _node(node: Node, layouts: dict) -> Node:
    return replace(node, gpus=tuple(_gpu(gpu, layouts.get((node.name, gpu.index))) for gpu in node.gpus))


def _gpu(gpu: Gpu, layout) -> Gpu:
    if layout is None:
        return gpu
    gone = {spot.id for spot in layout.delete}
    stay = [each for each in gpu.mig_instances if each.id not in gone]
    made = [an_instance(100 + at, spot.profile, spot.start, gpu.model) for at, spot in enumerate(layout.create)]
    return replace(gpu, mig_enabled=True, mig_instances=(*stay, *made))


def places(instances: Iterable[MigInstance]) -> list[tuple[str, int | None]]:
    return sorted((each.profile, each.placement_start) for each in instances)
