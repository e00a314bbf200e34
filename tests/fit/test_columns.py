"""The columnar view says what the booking says."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.fit import feasible
from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import ENOUGH, UNKNOWN_MODEL, columns_of
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import DeviceShare, Member
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.placement.random_clusters import some_cluster


def test_rows_follow_the_nodes_and_short_ones_are_padded():
    nodes = a_node("a", 2, model="T4", pool="p"), a_node("b", [a_gpu(5, model=None)], pool="q"), a_node("c", 0)
    columns = columns_of(book(a_snapshot(*nodes)))
    assert columns.names == ("a", "b", "c")
    assert columns.left.tolist() == [[1000, 1000], [1000, 0], [0, 0]]
    assert columns.model.tolist() == [[0, 0], [UNKNOWN_MODEL] * 2, [UNKNOWN_MODEL] * 2]
    assert columns.gpu_index.tolist() == [[0, 1], [5, -1], [-1, -1]]
    assert [columns.pools[code] for code in columns.pool] == ["p", "q", "default"]


@pytest.mark.parametrize("nodes", [(), (a_node("cpu", 0),)])
def test_no_device_anywhere_still_has_one_column(nodes):
    assert columns_of(book(a_snapshot(*nodes))).left.shape == (len(nodes), 1)


def test_unknown_capacity_is_enough():
    node = a_node("a", cpu_allocatable_millicores=None, memory_allocatable_bytes=None)
    columns = columns_of(book(a_snapshot(node)))
    assert columns.cpu_free.tolist() == columns.memory_free.tolist() == [ENOUGH]
    assert not columns.cpu_known[0]
    assert not columns.memory_known[0]


@pytest.mark.parametrize("seed", range(40))
def test_free_capacity_is_the_bookings(seed):
    booking = book(some_cluster(seed))
    columns = columns_of(booking)
    for row, booked in enumerate(booking.nodes.values()):
        count = len(booked.node.gpus)
        assert columns.left[row, :count].tolist() == booked.free_milligpu
        assert not columns.left[row, count:].any()
        assert not columns.usable[row, count:].any()
        if booked.cpu_free_millicores is not None:
            assert columns.cpu_free[row] == booked.cpu_free_millicores
        room = feasible.room(booked)
        free = sum(int(instances[row].sum()) for instances in columns.mig_free.values())
        assert free == len(room.free_instances)


def test_an_unknown_model_matches_no_named_one():
    columns = columns_of(book(a_snapshot(a_node("a", [a_gpu(0, model=None), a_gpu(1, model="T4")]))))
    assert columns.accepted(("T4",)).tolist() == [[False, True]]
    assert columns.accepted(()).tolist() == [[True, True]]
    assert columns.accepted(("B200",)).tolist() == [[False, False]]


def test_taking_from_a_copy_leaves_the_view_alone():
    columns = columns_of(book(a_snapshot(a_node("a", 2))))
    copy = columns.copy()
    shape = a_shape(2, cpu=1000, memory_bytes=5)
    copy.take(0, shape, (0, 1))
    assert copy.left.tolist() == [[0, 0]]
    assert columns.left.tolist() == [[1000, 1000]]
    copy.give_back(0, shape, (0, 1))
    assert (copy.left == columns.left).all()
    assert (copy.cpu_free == columns.cpu_free).all()
    assert (copy.memory_free == columns.memory_free).all()


def test_held_instances_are_not_free():
    slices = tuple(MigInstance(id=i, profile="1g.10gb", compute_slices=1, memory_slices=1) for i in "12")
    gpu = a_gpu(3, mig_enabled=True, mig_instances=slices)
    job = a_job("x", "a", shape=a_shape(1, mig_profile="1g.10gb"))
    held = Member(
        name="x-0", node="a", devices_known=True, shares=(DeviceShare(gpu_index=3, milligpu=0, mig_instance="2"),)
    )
    snapshot = a_snapshot(a_node("a", [gpu]), jobs=[replace(job, members=(held,))])
    columns = columns_of(book(snapshot))
    assert columns.mig_free["1g.10gb"].tolist() == [[1]]
    assert columns.mig_gpus == 1
    assert columns.free_instances("1g.10gb", ("T4",)).tolist() == [[0]]
    assert columns.free_instances("9g.90gb", ()).tolist() == [[0]]


@pytest.mark.parametrize("seed", range(20))
def test_taking_on_many_nodes_is_taking_on_each(seed):
    rng = random.Random(seed)
    columns = columns_of(book(some_cluster(seed)))
    width, profiles = columns.left.shape[1], list(columns.mig_free)
    shapes = [a_shape(1, milligpu=250, cpu=500, memory_bytes=7), a_shape(0, cpu=100)]
    shapes += [a_shape(2, mig_profile=profile) for profile in profiles]
    for shape in shapes:
        one, many = columns.copy(), columns.copy()
        rows = np.array([row for row in range(len(columns.names)) if rng.random() < 0.6], dtype=np.int64)
        chosen = [[rng.randrange(width) for _ in range(shape.gpus)] for _ in rows]
        for row, devices in zip(rows.tolist(), chosen, strict=True):
            one.take(row, shape, tuple(devices))
        counts = np.array([np.bincount(each, minlength=width) for each in chosen], dtype=np.int64).reshape(-1, width)
        many.take_each(rows, shape, counts)
        for name in ("left", "cpu_free", "memory_free", "running"):
            assert getattr(one, name).tolist() == getattr(many, name).tolist(), name
        assert all((one.mig_free[each] == many.mig_free[each]).all() for each in profiles)


@pytest.mark.parametrize("seed", range(10))
def test_a_part_is_those_nodes_alone_and_its_own(seed):
    columns = columns_of(book(some_cluster(seed)))
    rows = np.array(random.Random(seed).choices(range(len(columns.names)), k=5))
    part = columns.part(rows)
    assert part.names == tuple(columns.names[row] for row in rows)
    assert part.accepted(("T4",)).tolist() == columns.accepted(("T4",))[rows].tolist()
    before = columns.left.copy()
    part.left[:] = -1
    part.cpu_free[:] = -1
    assert (columns.left == before).all()
    assert (columns.cpu_free >= 0).all()


def test_only_some_devices_take_work():
    columns = columns_of(book(a_snapshot(a_node("a", 3))))
    some = columns.only(np.array([[True, False, True]]))
    assert some.accepted(()).tolist() == [[True, False, True]]
    assert some.accepted(("H100-80",)).tolist() == [[True, False, True]]
    assert some.usable.tolist() == [[True, True, True]]  # what the node has is not less for it
    assert some.left.tolist() == columns.left.tolist()
