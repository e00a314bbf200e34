"""Feasibility over all nodes against the plain one-node version, and the causes that are told."""

from __future__ import annotations

import random

import pytest

from gpuwatch.fit import feasible
from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import columns_of
from gpuwatch.fit.fleet_fit import blocking_causes, first_devices, fits, members_that_fit
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.units import GIB
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
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
        causes = blocking_causes(booking, columns, shape)
        fitting = fits(columns, shape)
        for row, booked in enumerate(booking.nodes.values()):
            room = feasible.room(booked)
            one = feasible.fits(room, shape, at_most=1)
            assert fitting[row] == bool(one)
            assert (causes[row] is None) == bool(one)
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


SLICE = MigInstance(id="1", profile="1g.10gb", compute_slices=1, memory_slices=1)
SLICED = a_gpu(0, mig_enabled=True, mig_instances=(SLICE,))
SMALL = a_shape(1, mig_profile="1g.10gb")

CAUSES = {
    "fits": (a_node("a"), [], a_shape(), None),
    "no_gpus": (a_node("a", 0), [], a_shape(), "no_gpus"),
    "cpu only fits without gpus": (a_node("a", 0), [], a_shape(0), None),
    "blocked": (a_node("a", block_causes=("tainted", "not_ready")), [], a_shape(), "blocked:not_ready"),
    "model": (a_node("a"), [], a_shape(gpu_models=("T4",)), "model"),
    "gpu_lacking": (a_node("a", 1), [a_job("x", "a", [0])], a_shape(), "gpu_lacking"),
    "cpu_lacking": (a_node("a", 1), [], a_shape(cpu=12_001), "cpu_lacking"),
    "memory_lacking": (a_node("a", 1), [], a_shape(memory_bytes=101 * GIB), "memory_lacking"),
    "mig_mode": (a_node("a", [SLICED]), [], a_shape(), "mig_mode"),
    "mig fits": (a_node("a", [SLICED]), [], SMALL, None),
    "mig_busy": (a_node("a", [SLICED]), [a_job("x", "a", shape=SMALL)], SMALL, "mig_busy"),
    "mig_profile": (a_node("a", [SLICED]), [], a_shape(1, mig_profile="2g.20gb"), "mig_profile"),
    "mig of another model": (
        a_node("a", [SLICED]),
        [],
        a_shape(1, mig_profile="1g.10gb", gpu_models=("B200",)),
        "mig_busy",
    ),
}


@pytest.mark.parametrize(("node", "jobs", "shape", "cause"), CAUSES.values(), ids=CAUSES)
def test_one_cause_per_node(node, jobs, shape, cause):
    booking = book(a_snapshot(node, jobs=jobs))
    assert blocking_causes(booking, columns_of(booking), shape) == [cause]
