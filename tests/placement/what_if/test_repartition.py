"""What cutting idle slices anew would give, told in the blockers and the nearest fix of a MIG request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import columns_of
from gpuwatch.model.cluster import Gpu, MigInstance, Telemetry
from gpuwatch.model.jobs import DeviceShare, Member
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.placement.what_if.answer import WhatIf
from gpuwatch.placement.what_if.repartition import Repartition
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot, busy, idle

SLICES = {"1g.10gb": (1, 1), "2g.20gb": (2, 2), "3g.40gb": (3, 4), "7g.80gb": (7, 8)}


def cut(index: int, *slices: tuple[str, int | None]) -> Gpu:
    instances = tuple(
        MigInstance(
            id=str(at),
            profile=name,
            compute_slices=SLICES[name][0],
            memory_slices=SLICES[name][1],
            placement_start=start,
        )
        for at, (name, start) in enumerate(slices)
    )
    return a_gpu(index, mig_enabled=True, mig_instances=instances)


def holder(name: str, device: int, instance: str, profile: str):
    share = DeviceShare(gpu_index=device, milligpu=0, mig_instance=instance)
    member = Member(name=f"{name}-0", node="a", devices_known=True, shares=(share,))
    return replace(a_job(name, "a", shape=a_shape(1, mig_profile=profile)), members=(member,))


def instances(gpus: list[Gpu], jobs, profile: str) -> int:
    booking = book(a_snapshot(a_node("a", gpus), jobs=jobs))
    return int(Repartition(booking, columns_of(booking)).instances(a_shape(1, mig_profile=profile))[0])


@pytest.mark.parametrize(
    ("gpus", "jobs", "profile", "count"),
    [
        ([cut(0)], [], "1g.10gb", 7),
        ([cut(0)], [], "3g.40gb", 2),
        ([cut(0), cut(1)], [], "7g.80gb", 2),
        ([cut(0, ("3g.40gb", 0))], [], "1g.10gb", 7),  # idle: may be deleted
        ([cut(0, ("3g.40gb", 0))], [holder("h", 0, "0", "3g.40gb")], "1g.10gb", 3),  # memory slices 4, 5, 6
        ([cut(0, ("3g.40gb", 4))], [holder("h", 0, "0", "3g.40gb")], "1g.10gb", 4),
        ([cut(0, ("3g.40gb", None))], [holder("h", 0, "0", "3g.40gb")], "3g.40gb", 0),  # either half may be taken
        ([cut(0, ("7g.80gb", 0))], [holder("h", 0, "0", "7g.80gb")], "1g.10gb", 0),
        ([cut(0, ("1g.10gb", 0), ("1g.10gb", 1))], [holder("h", 0, "0", "1g.10gb")], "1g.10gb", 6),
        ([a_gpu(0)], [], "1g.10gb", 0),  # not in MIG mode
        ([cut(0)], [], "1g.99gb", 0),
    ],
)
def test_instances_that_idle_slices_could_become(gpus, jobs, profile, count):
    assert instances(gpus, jobs, profile) == count


def test_an_instance_that_works_without_a_known_holder_stays():
    whole = cut(0, ("7g.80gb", 0))
    assert instances([whole], [], "1g.10gb") == 7
    for seen in ({"activity": busy()}, {"telemetry": Telemetry(engine_active_ratio=0.4)}):
        works = replace(whole, mig_instances=(replace(whole.mig_instances[0], **seen),))
        assert instances([works], [], "1g.10gb") == 0
    quiet = replace(whole, mig_instances=(replace(whole.mig_instances[0], activity=idle()),))
    assert instances([quiet], [], "1g.10gb") == 7


def test_other_models_and_sick_devices_give_none():
    sick = replace(cut(0), health="unhealthy")
    assert instances([sick], [], "1g.10gb") == 0
    booking = book(a_snapshot(a_node("a", [cut(0)])))
    shape = a_shape(1, mig_profile="1g.10gb", gpu_models=("B200",))
    assert Repartition(booking, columns_of(booking)).instances(shape).tolist() == [0]


def test_it_is_told_where_nothing_fits_and_only_there():
    snapshot = a_snapshot(
        a_node("a", [cut(0, ("3g.40gb", 0), ("3g.40gb", 4))]),
        a_node("b", [cut(0, ("7g.80gb", 0))]),
        a_node("c", 1),
        jobs=[holder("h", 0, "0", "3g.40gb")],
    )

    def ask(profile: str, gpus: int = 1, members: int = 1):
        request = PlacementRequest(shape=a_shape(gpus, mig_profile=profile), members=members)
        return WhatIf(book(snapshot), DemandMix()).answer(request, "e1")

    small = ask("1g.10gb", 2)
    assert small.blockers == {"mig_repartition_needed": 2, "mig_profile": 1}
    assert small.nearest_fix == "repartition idle slices (gpuwatch mig plan): fits on 2 nodes"
    assert ask("3g.40gb").blockers == {"mig_profile": 1, "mig_repartition_needed": 1}
    assert ask("3g.40gb").nearest_fix is None
    switch = "switch free GPUs to MIG mode (gpuwatch mig plan): fits on 2 nodes"
    assert ask("7g.80gb", members=2).nearest_fix == switch  # b and c
    assert ask("7g.80gb", members=3).nearest_fix == "ask for 1 member instead of 3: fits on 1 node"


@pytest.mark.parametrize(
    ("gpu", "jobs", "count"),
    [
        (a_gpu(0), [], 7),
        (a_gpu(0, model="A30"), [], 0),  # has no such profile
        (a_gpu(0, model="T4"), [], 0),
        (a_gpu(0, model=None), [], 0),
        (a_gpu(0), [a_job("x", "a", [0])], 0),
        (a_gpu(0), [a_job("x", "a", [0], shape=a_shape(1, milligpu=1))], 0),
        (a_gpu(0, replicas=4), [], 0),
        (a_gpu(0, health="unhealthy"), [], 0),
        (cut(0, ("7g.80gb", 0)), [], 7),  # idle, as without switching
    ],
)
def test_instances_of_free_devices_that_are_switched(gpu, jobs, count):
    booking = book(a_snapshot(a_node("a", [gpu]), jobs=jobs))
    shape = a_shape(1, mig_profile="1g.10gb")
    assert Repartition(booking, columns_of(booking)).after_switching(shape).tolist() == [count]
    other = replace(shape, gpu_models=("B200",))
    assert Repartition(booking, columns_of(booking)).after_switching(other).tolist() == [0]
