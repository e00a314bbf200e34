"""Each counting trap is met where it is planted, and with how many GPUs."""

from __future__ import annotations

import pytest

from gpuwatch.counting.traps import traps
from gpuwatch.fit.booking import book
from gpuwatch.model.jobs import Job, Member
from gpuwatch.model.snapshot import ClusterSnapshot
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot, busy
from tests.render.reports import SNAPSHOT


def met(snapshot: ClusterSnapshot) -> dict[str, int]:
    return {trap.id: trap.milligpu for trap in traps(snapshot, book(snapshot))}


def test_a_plain_cluster_has_no_trap() -> None:
    node = a_node("n1", [a_gpu(0, activity=busy()), a_gpu(1)])
    assert met(a_snapshot(node, jobs=[a_job("j", "n1", [0])])) == {}


def test_a_cluster_with_many_traps() -> None:
    assert met(SNAPSHOT) == {
        "unhealthy_device": 1000,
        "blocked_free": 1000,
        "blocked_busy": 1000,
        "replicas": 3000,
        "mig_instances": 2000,
        "fractions": 500,
        "finished_jobs": 1000,
        "pending": 8000,
        "unmeasured": 1500,
    }


def bound(name: str, phase: str, *, known: bool = True, node: str = "n1", **fields) -> Job:
    job = a_job(name, node, [0], phase=phase)
    member = Member(name="m", node=node, shares=job.members[0].shares if known else (), devices_known=known, **fields)
    return Job(id=job.id, name=name, shape=a_shape(), members=(member,), phase=phase)


@pytest.mark.parametrize(
    ("trap", "job"),
    [
        ("terminating", bound("j", "running", terminating=True)),
        ("pending_bound", bound("j", "pending")),
        ("gated", a_job("j", phase="gated")),
        ("pending", a_job("j", phase="pending")),
        ("guessed_devices", bound("j", "running", known=False)),
        ("unbooked", bound("j", "running", node="elsewhere")),
    ],
)
def test_one_trap_at_a_time(trap: str, job: Job) -> None:
    assert met(a_snapshot(a_node("n1", [a_gpu(0, activity=busy())]), jobs=[job])) == {trap: 1000}


def test_health_that_nobody_reports_is_a_trap_of_its_own() -> None:
    assert met(a_snapshot(a_node("n1", [a_gpu(0, health="unknown")]))) == {"health_unknown": 1000}


def test_slices_of_a_waiting_job_weigh_their_compute() -> None:
    waiting = a_job("j", shape=a_shape(2, mig_profile="3g.40gb"))
    assert met(a_snapshot(a_node("n1", 1), jobs=[waiting])) == {"pending": 857}
