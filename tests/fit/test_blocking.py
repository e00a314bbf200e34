"""Why a node takes no member: the cause that is told, and that one is told exactly where nothing fits."""

from __future__ import annotations

import random

import pytest

from gpuwatch.fit.blocking import Blocking
from gpuwatch.fit.booking import Booking, book
from gpuwatch.fit.capacity import Capacity
from gpuwatch.fit.columns import columns_of
from gpuwatch.fit.fleet_fit import fits
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import DemandShape
from gpuwatch.model.units import GIB
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.placement.random_clusters import some_cluster, some_shape

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


def causes(booking: Booking, shape: DemandShape) -> list[list[str]]:
    """Every cause that is charged to each node."""
    columns = columns_of(booking)
    lacking = Capacity(columns).device_room(shape) == 0
    charged = list(Blocking(booking, columns).charged(shape, lacking))
    return [[cause for cause, here in charged if here[row]] for row in range(len(columns.names))]


@pytest.mark.parametrize(("node", "jobs", "shape", "cause"), CAUSES.values(), ids=CAUSES)
def test_one_cause_per_node(node, jobs, shape, cause):
    assert causes(book(a_snapshot(node, jobs=jobs)), shape) == [[] if cause is None else [cause]]


@pytest.mark.parametrize("seed", range(60))
def test_a_node_has_one_cause_exactly_where_nothing_fits(seed):
    booking = book(some_cluster(seed))
    rng = random.Random(seed)
    for _ in range(10):
        shape = some_shape(rng)
        fitting = fits(columns_of(booking), shape)
        assert [len(each) for each in causes(booking, shape)] == [0 if ok else 1 for ok in fitting]
