"""A stream of jobs: where they end up, what the seed does, and the published allocation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.errors import SettingsError
from gpuwatch.fit.booking import book
from gpuwatch.model.jobs import Member
from gpuwatch.placement.arrivals import FITS_NOWHERE, MIG_NOT_PLACED, SHAPE_WITHOUT_SENSE, place_stream
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import empty_snapshot
from tests.builders import a_job, a_node, a_shape, a_snapshot
from tests.placement.random_clusters import some_cluster


def gang(name: str, members: int, **shape):
    job = a_job(name, shape=a_shape(**shape))
    return replace(job, members=tuple(Member(name=f"{name}-{i}") for i in range(members)))


@pytest.mark.parametrize("policy", ["best_fit", "fgd"])
@pytest.mark.parametrize("seed", range(15))
def test_every_placement_is_feasible(policy, seed):
    """Booking the outcome again finds nothing over-allocated, and no pending job would still fit."""
    cluster = replace(some_cluster(seed), jobs=())
    jobs = [job for job in some_cluster(seed + 1000, jobs=60).jobs if job.phase == "pending"]
    placed = place_stream(cluster, jobs, policy)
    assert book(placed).findings == ()
    for job in placed.jobs:
        for member in job.members:
            assert (member.node is not None) == (job.phase == "running")
            if member.node is not None:
                assert len(member.shares) == job.shape.gpus
    for booked in book(placed).nodes.values():
        assert booked.cpu_free_millicores is None or booked.cpu_free_millicores >= 0
        if booked.node.block_causes:
            assert not any(booked.holds)


def test_what_does_not_fit_is_pending_with_a_reason():
    shapes = a_shape(8), a_shape(2), a_shape(mig_profile="x"), a_shape(2, milligpu=500), a_shape(cpu=-1)
    jobs = [a_job(f"j{at}", shape=shape) for at, shape in enumerate(shapes)]
    placed = place_stream(a_snapshot(a_node("a", 4)), jobs)
    assert [(job.phase, job.pending_reason) for job in placed.jobs] == [
        ("pending", FITS_NOWHERE),
        ("running", None),
        ("pending", MIG_NOT_PLACED),
        ("pending", SHAPE_WITHOUT_SENSE),
        ("pending", SHAPE_WITHOUT_SENSE),
    ]


def test_a_gang_is_all_or_nothing():
    cluster = a_snapshot(a_node("a", 4), a_node("b", 4))
    placed = place_stream(cluster, [gang("three", 3, gpus=3), gang("two", 2, gpus=3), a_job("rest")])
    assert [job.phase for job in placed.jobs] == ["pending", "running", "running"]
    assert {member.node for member in placed.jobs[1].members} == {"a", "b"}


def test_the_stream_ends_where_it_is_told():
    jobs = [a_job(f"j{i}") for i in range(6)]
    placed = place_stream(a_snapshot(a_node("a", 2)), jobs, until_milligpu=3000)
    assert [job.phase for job in placed.jobs] == ["running", "running", "pending"]
    assert place_stream(a_snapshot(a_node("a")), jobs, until_milligpu=0).jobs == ()


def test_running_jobs_stay_and_take_room():
    cluster = a_snapshot(a_node("a", 1), jobs=[a_job("old", "a", [0])])
    placed = place_stream(cluster, [a_job("new")])
    assert placed.jobs[0] == cluster.jobs[0]
    assert placed.jobs[1].phase == "pending"


def test_the_seed_fixes_order_and_ties():
    cluster = a_snapshot(*(a_node(f"n{i}") for i in range(6)))
    jobs = [a_job(f"j{i}", shape=a_shape(1 + i % 4)) for i in range(30)]
    once, again = (place_stream(cluster, jobs, "fgd", seed=3) for _ in range(2))
    assert once == again
    assert place_stream(cluster, jobs[::-1], "fgd", seed=3) == once  # the order given does not matter then
    assert place_stream(cluster, jobs, "fgd", seed=4) != once
    assert [job.id for job in place_stream(cluster, jobs, "fgd").jobs] == [job.id for job in jobs]


def test_an_unknown_policy_names_the_known_ones():
    with pytest.raises(SettingsError) as caught:
        place_stream(a_snapshot(a_node("a")), [], policy="lucky")
    assert "best_fit" in caught.value.todo


@pytest.mark.parametrize("policy", ["best_fit", "fgd"])
def test_nothing_to_place_on(policy):
    assert place_stream(a_snapshot(), [a_job("x")], policy).jobs[0].phase == "pending"


@pytest.mark.traces
@pytest.mark.parametrize(("policy", "published"), [("best_fit", 92.86), ("fgd", 95.23)])
def test_the_default_list_allocates_as_published(traces, policy, published):
    """The list asks for 98% of the cluster; the published figures are means of ten seeds at 100%, hence the width."""
    trace = read_openb(traces / "openb")
    booking = book(place_stream(empty_snapshot(trace), trace.jobs, policy, seed=42))
    free = sum(sum(booked.left_milligpu) for booked in booking.nodes.values())
    assert booking.findings == ()
    assert 100 * (1 - free / 6_212_000) == pytest.approx(published, abs=0.5)
