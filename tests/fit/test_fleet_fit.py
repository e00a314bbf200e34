"""Feasibility over all nodes against the plain one-node version."""

from __future__ import annotations

import random

import pytest

from gpuwatch.fit import feasible
from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import columns_of
from gpuwatch.fit.fleet_fit import first_devices, fits, members_that_fit
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.placement.random_clusters import some_cluster, some_shape

MANY = 10_000


@pytest.mark.parametrize("seed", range(60))
def test_counts_agree_with_placing_one_by_one(seed):
    booking = book(some_cluster(seed))
    columns = columns_of(booking)
    rng = random.Random(seed)
    for _ in range(10):
        shape = some_shape(rng)
        counted = members_that_fit(columns, shape)
        fitting = fits(columns, shape)
        for row, booked in enumerate(booking.nodes.values()):
            room = feasible.room(booked)
            one = feasible.fits(room, shape, at_most=1)
            assert fitting[row] == bool(one)
            bounded = shape.gpus or (shape.cpu_millicores and booked.cpu_free_millicores is not None)
            if bounded:
                assert counted[row] == feasible.fits(room, shape, at_most=MANY)
            else:
                assert (counted[row] > 0) == bool(one)


def test_several_shares_of_several_devices_count_each_device_once_a_member():
    jobs = [a_job("x", "a", [0], shape=a_shape(1, milligpu=500)), a_job("y", "a", [1])]
    columns = columns_of(book(a_snapshot(a_node("a", 3), jobs=jobs)))
    assert members_that_fit(columns, a_shape(2, milligpu=250)).tolist() == [2]  # room for 2, 0 and 4 shares


def test_a_share_of_nothing_gives_no_endless_count():
    columns = columns_of(book(a_snapshot(a_node("a", 1))))
    assert members_that_fit(columns, a_shape(1, milligpu=0, cpu=0)).tolist() == [1000]


def test_the_first_devices_with_room():
    columns = columns_of(book(a_snapshot(a_node("a", 4), jobs=[a_job("x", "a", [1])])))
    assert first_devices(columns, 0, a_shape(2)) == (0, 2)
    assert first_devices(columns, 0, a_shape(0)) == ()
