"""Holds become free capacity: known devices as told, unknown ones guessed, contradictions clipped and reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.fit.booking import book, node_block_cause
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import DeviceShare, Member
from gpuwatch.model.units import GIB
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot

SLICES = tuple(MigInstance(id=i, profile="1g.10gb", compute_slices=1, memory_slices=1) for i in "12")


def left(snapshot, node="a"):
    return book(snapshot).nodes[node].left_milligpu


def codes(snapshot):
    return [(finding.code, finding.subject) for finding in book(snapshot).findings]


def test_known_devices_are_booked_as_told():
    jobs = [a_job("x", "a", [1]), a_job("y", "a", [2], shape=a_shape(1, milligpu=300))]
    booked = book(a_snapshot(a_node("a", 4), jobs=jobs)).nodes["a"]
    assert booked.left_milligpu == [1000, 0, 700, 1000]
    assert [[hold.job.name for hold in holds] for holds in booked.holds] == [[], ["x"], ["y"], []]
    assert booked.cpu_free_millicores == 48_000 - 2 * 4000


def test_pending_and_finished_jobs_hold_nothing_but_a_bound_pending_member_does():
    finished = a_job("f", "a", [0], phase="finished")
    bound = a_job("p", "a", [1], phase="pending")
    snapshot = a_snapshot(a_node("a", 2), jobs=[finished, bound, a_job("q")])
    assert left(snapshot) == [1000, 0]


def test_a_terminating_member_still_holds():
    job = a_job("x", "a", [0])
    job = replace(job, members=(replace(job.members[0], terminating=True),))
    assert left(a_snapshot(a_node("a", 1), jobs=[job])) == [0]


def test_unnamed_devices_are_guessed_after_the_named_ones():
    """The fullest device with room, a healthy one first, whatever the order of the jobs."""
    unnamed = a_job("u", "a", shape=a_shape(1, milligpu=400))
    named = a_job("n", "a", [2], shape=a_shape(1, milligpu=500))
    for jobs in ([unnamed, named], [named, unnamed]):
        snapshot = a_snapshot(a_node("a", 3), jobs=jobs)
        assert left(snapshot) == [1000, 1000, 100]
        assert [hold.guessed for hold in book(snapshot).nodes["a"].holds[2]] == [False, True]
    sick = a_node("a", [a_gpu(0, health="unhealthy"), a_gpu(1)])
    assert left(a_snapshot(sick, jobs=[a_job("u", "a")])) == [1000, 0]


def test_a_member_is_guessed_on_devices_that_differ():
    assert left(a_snapshot(a_node("a", 3), jobs=[a_job("u", "a", shape=a_shape(2))])) == [0, 0, 1000]


def test_a_job_on_an_unknown_node_is_reported_and_unbooked():
    snapshot = a_snapshot(a_node("a", 1), jobs=[a_job("x", "ghost", [0])])
    assert codes(snapshot) == [("unknown_node", "ml/x")]
    assert [job.name for job, _ in book(snapshot).unbooked] == ["x"]
    assert left(snapshot) == [1000]


def test_more_held_than_there_is_counts_as_one_whole_device():
    jobs = [a_job("x", "a", [0]), a_job("y", "a", [0])]
    snapshot = a_snapshot(a_node("a", 2), jobs=jobs)
    assert left(snapshot) == [0, 1000]
    assert codes(snapshot) == [("over_allocated", "a/0")]


@pytest.mark.parametrize("job", [a_job("x", "a", [5]), a_job("x", "a", shape=a_shape(3))])
def test_devices_that_are_not_there_are_reported(job):
    snapshot = a_snapshot(a_node("a", 2), jobs=[job])
    assert codes(snapshot) == [("over_allocated", "ml/x")]
    assert len(book(snapshot).unbooked) == 1


def test_cpu_and_memory_never_go_below_nothing():
    job = a_job("x", "a", [0], shape=a_shape(1, cpu=99_000, memory_bytes=999 * GIB))
    booked = book(a_snapshot(a_node("a", 1), jobs=[job])).nodes["a"]
    assert (booked.cpu_free_millicores, booked.memory_free_bytes) == (0, 0)


def test_unknown_capacity_stays_unknown():
    node = a_node("a", 1, cpu_allocatable_millicores=None, memory_allocatable_bytes=None)
    booked = book(a_snapshot(node, jobs=[a_job("x", "a", [0])])).nodes["a"]
    assert (booked.cpu_free_millicores, booked.memory_free_bytes) == (None, None)


def test_work_that_is_not_listed_as_a_job_takes_cpu_too():
    node = a_node("a", 1, other_cpu_requested_millicores=2000, other_memory_requested_bytes=GIB)
    booked = book(a_snapshot(node)).nodes["a"]
    assert (booked.cpu_free_millicores, booked.memory_free_bytes) == (10_000, 99 * GIB)


def test_what_may_not_be_scheduled_is_left_but_not_free():
    cordoned = a_node("a", 2, block_causes=("cordoned",))
    sick = a_node("b", [a_gpu(0, health="unhealthy"), a_gpu(1, health="unknown")])
    nodes = book(a_snapshot(cordoned, sick)).nodes
    assert (nodes["a"].left_milligpu, nodes["a"].free_milligpu) == ([1000, 1000], [0, 0])
    assert nodes["b"].free_milligpu == [0, 1000]


def test_mig_members_hold_instances_and_no_time_share():
    gpu = a_gpu(0, mig_enabled=True, mig_instances=SLICES)
    small = a_shape(1, mig_profile="1g.10gb")
    named = replace(
        a_job("n", "a", shape=small),
        members=(
            Member(
                name="n-0",
                node="a",
                devices_known=True,
                shares=(DeviceShare(gpu_index=0, milligpu=0, mig_instance="1"),),
            ),
        ),
    )
    snapshot = a_snapshot(a_node("a", [gpu]), jobs=[a_job("u", "a", shape=small), named, a_job("v", "a", shape=small)])
    booked = book(snapshot).nodes["a"]
    assert sorted(hold.mig_instance for hold in booked.holds[0]) == ["1", "2"]
    assert booked.left_milligpu == [0]
    assert codes(snapshot) == [("over_allocated", "ml/v")]  # the third found no instance


@pytest.mark.parametrize(
    ("causes", "charged"),
    [
        ((), None),
        (("tainted", "not_ready"), "not_ready"),
        (("reserved", "cordoned"), "cordoned"),
        (("moonlight",), "moonlight"),
    ],
)
def test_one_cause_is_charged(causes, charged):
    assert node_block_cause(a_node("a", block_causes=causes)) == charged
