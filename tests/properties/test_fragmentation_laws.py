"""What must hold for the index and the fits on any cluster, however odd."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.demand.mix import demand_mix
from gpuwatch.fit.booking import book
from gpuwatch.fragmentation.report import fragmentation_report
from gpuwatch.model.jobs import DemandShape, ShapeCount
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.placement.arrivals import place_stream
from gpuwatch.placement.what_if.answer import WhatIf
from tests.builders import a_job, a_node, a_snapshot
from tests.placement.random_clusters import some_cluster

SEEDS = st.integers(0, 2**31)
SETTINGS = AnalysisSettings()


def report(snapshot):
    return fragmentation_report(book(snapshot), demand_mix(snapshot, SETTINGS))


@settings(max_examples=150)
@given(seed=SEEDS)
def test_bounds_and_sums(seed):
    found = report(some_cluster(seed))
    for scope in (found.overall, *found.scopes):
        assert (scope.fragmentation_index is None) == (scope.reason in ("nothing is free", "no GPU demand known"))
        assert -1e-6 <= scope.stranded_milligpu <= scope.free_milligpu + 1e-6
        assert sum(scope.by_cause.values()) == pytest.approx(scope.stranded_milligpu)
        assert scope.fgd_ratio is None or -1e-9 <= scope.fgd_ratio <= 1 + 1e-9
    for fit in found.shapes:
        assert fit.fits_now * fit.shape.milligpu <= found.overall.free_milligpu - fit.stranded_milligpu + 1e-6


@settings(max_examples=100)
@given(seed=SEEDS)
def test_the_order_of_nodes_does_not_matter(seed):
    snapshot = some_cluster(seed)
    shuffled = list(snapshot.nodes)
    random.Random(seed).shuffle(shuffled)
    one, other = report(snapshot).overall, report(replace(snapshot, nodes=tuple(shuffled))).overall
    assert one.free_milligpu == other.free_milligpu
    assert one.stranded_milligpu == pytest.approx(other.stranded_milligpu)


@settings(max_examples=60)
@given(seed=SEEDS)
def test_twice_the_cluster_strands_twice_as_much(seed):
    snapshot = replace(some_cluster(seed), jobs=())
    counts = tuple(ShapeCount(shape=job.shape, count=1) for job in some_cluster(seed + 1).jobs)
    snapshot = replace(snapshot, arrivals=counts)
    twins = tuple(replace(node, name=f"{node.name}-twin") for node in snapshot.nodes)
    once, twice = report(snapshot), report(replace(snapshot, nodes=(*snapshot.nodes, *twins)))
    assert twice.overall.stranded_milligpu == pytest.approx(2 * once.overall.stranded_milligpu)
    assert twice.overall.fragmentation_index == pytest.approx(once.overall.fragmentation_index)
    assert [fit.fits_now for fit in twice.shapes] == [2 * fit.fits_now for fit in once.shapes]


AMOUNTS = st.sampled_from((-(10**30), -1, 0, 1, 500, 1000, 1001, 2**62, 2**63, 10**30))
ODD_SHAPES = st.builds(
    DemandShape,
    gpus=AMOUNTS,
    milligpu_per_gpu=AMOUNTS,
    cpu_millicores=AMOUNTS,
    memory_bytes=AMOUNTS,
    gpu_models=st.sampled_from(((), ("H100-80",), ("",))),
)


@settings(max_examples=300)
@given(
    shapes=st.lists(ODD_SHAPES, min_size=1, max_size=4),
    cpu=st.one_of(st.none(), AMOUNTS),
    memory=st.one_of(st.none(), AMOUNTS),
    requested=AMOUNTS,
)
def test_absurd_amounts_break_nothing(shapes, cpu, memory, requested):
    """A hand-written snapshot may hold any whole number; the report and the policies take it."""
    node = a_node(
        "a",
        2,
        cpu_allocatable_millicores=cpu,
        memory_allocatable_bytes=memory,
        other_cpu_requested_millicores=requested,
        other_memory_requested_bytes=requested,
    )
    jobs = [a_job(f"j{at}", shape=shape) for at, shape in enumerate(shapes)]
    snapshot = a_snapshot(node, jobs=jobs)
    found = report(snapshot)
    assert found.overall.free_milligpu == 2000
    assert all(0 <= fit.fits_now <= 2**50 for fit in found.shapes)
    for policy in ("best_fit", "fgd"):
        request = PlacementRequest(shape=DemandShape(gpus=1, cpu_millicores=1), policy=policy)
        advice = WhatIf(book(snapshot), demand_mix(snapshot, SETTINGS)).answer(request, "e1")
        assert advice.feasible == (advice.nearest_fix is None)
        placed = place_stream(replace(snapshot, jobs=()), jobs, policy)
        assert len(placed.jobs) == len(jobs)
