"""Where one shape can start on one node, and what a leaving job gives back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from gpuwatch.fit.booking import book
from gpuwatch.fit.feasible import fits, room, spots, start_all, take
from gpuwatch.model.cluster import MigInstance
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.counting.snapshots import snapshots


def room_of(*jobs, without=frozenset(), **node):
    return room(book(a_snapshot(a_node(**node), jobs=jobs)).nodes["n1"], without)


def test_the_fullest_fitting_device_is_taken_first():
    half = a_job("half", "n1", [2], shape=a_shape(milligpu=500))
    place = room_of(half, gpus=4)
    assert spots(place, a_shape(milligpu=500)) == ((2, None),)
    assert spots(place, a_shape(gpus=3)) == ((0, None), (1, None), (3, None))
    assert spots(place, a_shape(gpus=4)) is None


@pytest.mark.parametrize(
    "refused",
    [
        a_shape(cpu=13_000),
        a_shape(cpu=1, memory_bytes=101 * 2**30),
        a_shape(gpu_models=("T4",)),
        a_shape(mig_profile="1g.10gb"),
    ],
)
def test_cpu_memory_model_and_profile_refuse(refused):
    assert spots(room_of(gpus=1), refused) is None


def test_unknown_capacity_does_not_refuse():
    assert spots(room_of(gpus=1, cpu_allocatable_millicores=None), a_shape(cpu=10**6)) is not None


def test_a_blocked_node_takes_nothing():
    assert spots(room_of(block_causes=("cordoned",)), a_shape()) is None
    assert spots(room_of(block_causes=("cordoned",)), a_shape(gpus=0)) is None


def test_fits_counts_until_something_runs_out():
    assert fits(room_of(gpus=8), a_shape(cpu=24_000)) == 4
    assert fits(room_of(gpus=8), a_shape(gpus=3, cpu=0)) == 2


def test_a_gang_starts_across_nodes_or_not_at_all():
    places = [room_of(gpus=2), room_of(gpus=4)]
    assert start_all(places, a_shape(gpus=2), 3) is not None
    assert start_all(places, a_shape(gpus=2), 4) is None
    assert places[0].free_milligpu == [1000, 1000]


def test_a_leaving_job_gives_back_no_more_than_the_device_has():
    twice = [a_job("a", "n1", [0]), a_job("b", "n1", [0])]
    assert room_of(*twice, gpus=1, without=frozenset({"ml/a"})).free_milligpu == [0]
    assert room_of(*twice, gpus=1, without=frozenset({"ml/a", "ml/b"})).free_milligpu == [1000]
    sick = [a_gpu(0, health="unhealthy")]
    assert room_of(a_job("a", "n1", [0]), gpus=sick, without=frozenset({"ml/a"})).free_milligpu == [0]


def test_a_leaving_job_gives_back_cpu_once():
    job = a_job("a", "n1", [0, 1], shape=a_shape(gpus=2, cpu=5000))
    assert room_of(job, gpus=2).cpu_free_millicores == 19_000
    assert room_of(job, gpus=2, without=frozenset({"ml/a"})).cpu_free_millicores == 24_000


def test_mig_instances_are_taken_by_profile():
    made = tuple(
        MigInstance(id=str(i), profile=p, compute_slices=1, memory_slices=1)
        for i, p in enumerate(["1g.10gb", "2g.20gb", "1g.10gb"])
    )
    place = room_of(gpus=[a_gpu(0, mig_enabled=True, mig_instances=made)])
    shape = a_shape(mig_profile="1g.10gb", cpu=0)
    assert spots(place, shape) == ((0, "0"),)
    assert fits(place, shape) == 2


@settings(max_examples=150)
@given(snapshots())
def test_what_spots_gives_can_be_taken_and_nothing_goes_below_zero(snapshot):
    for booked in book(snapshot).nodes.values():
        everyone = frozenset(job.id for job in snapshot.jobs)
        for place in (room(booked), room(booked, everyone)):
            for shape in (a_shape(cpu=0), a_shape(milligpu=250), a_shape(gpus=2), a_shape(mig_profile="1g.10gb")):
                while place.takes_work and (where := spots(place, shape)) is not None:
                    assert len(where) == shape.gpus
                    take(place, shape, where)
                    assert min(place.free_milligpu) >= 0
                    assert all(snapshot_gpu_ok(place, at) for at, _ in where)
        assert all(
            a <= b for a, b in zip(room(booked).free_milligpu, room(booked, everyone).free_milligpu, strict=True)
        )


def snapshot_gpu_ok(place, at: int) -> bool:
    return place.node.gpus[at].health != "unhealthy"


def test_a_leaving_job_first_frees_what_was_asked_for_beyond_capacity():
    jobs = [a_job(f"j{i}", "n1", [i], shape=a_shape(cpu=8000, memory_bytes=10)) for i in range(3)]
    node = {"gpus": 4, "cpu_allocatable_millicores": 16_000, "memory_allocatable_bytes": 20}
    assert (room_of(*jobs, **node).cpu_free_millicores, room_of(*jobs, **node).memory_free_bytes) == (0, 0)
    one_less = room_of(*jobs, without=frozenset({"ml/j0"}), **node)
    assert (one_less.cpu_free_millicores, one_less.memory_free_bytes) == (0, 0)
    nobody = room_of(*jobs, without=frozenset(job.id for job in jobs), **node)
    assert (nobody.cpu_free_millicores, nobody.memory_free_bytes) == (16_000, 20)
