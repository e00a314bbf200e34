"""Demand is running plus pending; gated is neither; a sum that suffices is not a place."""

from __future__ import annotations

from hypothesis import given, settings

from gpuwatch.demand.pending import pending_demand
from gpuwatch.demand.series import demand_now
from gpuwatch.fit.booking import book
from gpuwatch.model.jobs import Job, Member
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.counting.snapshots import snapshots


def rows(*nodes, jobs=()):
    snapshot = a_snapshot(*nodes, jobs=jobs)
    return {(row.pool, row.kind): row for row in pending_demand(snapshot, book(snapshot))}


def a_gang(members: int, **shape) -> Job:
    waiting = tuple(Member(name=f"r{i}") for i in range(members))
    return Job(id="ml/gang", name="gang", shape=a_shape(**shape), members=waiting, phase="pending")


def half_free(name: str):
    """A 4-GPU node with two devices held."""
    return a_node(name, gpus=4), a_job(f"on-{name}", name, [0, 1], shape=a_shape(gpus=2))


def test_running_pending_and_gated_are_told_apart():
    jobs = [
        a_job("r", "n1", [0, 1], shape=a_shape(gpus=2), kind="training"),
        a_job("p", shape=a_shape(milligpu=500), pool="p1", kind="training"),
        a_job("g", shape=a_shape(gpus=8), pool="p1", kind="training", phase="gated"),
        a_job("f", "n1", [3], phase="finished", kind="training"),
        a_job("c", shape=a_shape(gpus=0)),
    ]
    got = rows(a_node(pool="p1"), jobs=jobs)
    assert list(got) == [("p1", "training")]
    row = got["p1", "training"]
    assert (row.demand_milligpu, row.pending_milligpu, row.gated_milligpu) == (2500, 500, 8000)


def test_eight_by_sum_none_by_node():
    pairs = [half_free(f"n{i}") for i in range(4)]
    waiting = a_job("big", shape=a_shape(gpus=8, cpu=0))
    got = rows(*(n for n, _ in pairs), jobs=[*(j for _, j in pairs), waiting])
    assert got["*", "unknown"].fits_by_sum_not_by_shape_jobs == ("ml/big",)


def test_a_gang_is_checked_by_node_not_by_sum():
    node, other = a_node("n1", gpus=3), a_node("n2", gpus=3)
    assert rows(node, other, jobs=[a_gang(3, gpus=2)])["*", "unknown"].fits_by_sum_not_by_shape_jobs == ("ml/gang",)
    assert rows(node, other, jobs=[a_gang(2, gpus=2)])["*", "unknown"].fits_by_sum_not_by_shape_jobs == ()


def test_cpu_can_be_what_is_lacking():
    waiting = a_job("p", shape=a_shape(gpus=1, cpu=90_000))
    assert rows(a_node(gpus=4), jobs=[waiting])["*", "unknown"].fits_by_sum_not_by_shape_jobs == ("ml/p",)


def test_too_few_by_sum_or_of_another_model_is_not_listed():
    jobs = [a_job("many", shape=a_shape(gpus=9)), a_job("t4", shape=a_shape(gpu_models=("T4",)))]
    assert rows(a_node(), jobs=jobs)["*", "unknown"].fits_by_sum_not_by_shape_jobs == ()


def test_free_capacity_of_another_pool_does_not_count():
    jobs = [a_job("p", shape=a_shape(gpus=4, cpu=0), pool="small")]
    got = rows(a_node("n1", pool="big"), a_node("n2", gpus=2, pool="small"), jobs=jobs)
    assert got["small", "unknown"].fits_by_sum_not_by_shape_jobs == ()


@settings(max_examples=150)
@given(snapshots())
def test_rows_agree_with_the_series(snapshot):
    now = demand_now(snapshot)
    for row in pending_demand(snapshot, book(snapshot)):
        assert row.demand_milligpu >= row.pending_milligpu >= 0
        if row.demand_milligpu:
            assert now[row.pool, row.kind] * 1000 == row.demand_milligpu
    for pool in {pool for pool, _ in now}:
        assert abs(now[pool, "all"] - sum(v for (p, k), v in now.items() if p == pool and k != "all")) < 1e-9
