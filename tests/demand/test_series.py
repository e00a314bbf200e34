"""What is demanded now, per pool and kind; missing stays missing."""

from __future__ import annotations

import pytest

from gpuwatch.demand.series import demand_now
from gpuwatch.model.snapshot import SourceHealth
from tests.builders import a_job, a_node, a_shape, a_snapshot


def test_now_counts_pools_without_demand_as_zero():
    got = demand_now(a_snapshot(a_node(pool="idle"), a_node("n2", pool="cpu", gpus=0)))
    assert {pool for pool, _ in got} == {"idle"}
    assert got["idle", "all"] == 0.0


def test_now_says_nothing_when_a_source_failed_and_no_job_is_known():
    down = SourceHealth(name="prom", kind="prometheus", ok=False, cause="timeout")
    assert demand_now(a_snapshot(a_node(), sources=(down,))) == {}
    assert demand_now(a_snapshot(a_node(), jobs=[a_job("j", "n1", [0])], sources=(down,)))["default", "all"] == 1.0


def test_gated_members_are_no_demand():
    assert demand_now(a_snapshot(a_node(), jobs=[a_job("g", phase="gated")]))["default", "all"] == 0.0


@pytest.mark.parametrize(("profile", "milligpu"), [("1g.10gb", 143), ("7g.80gb", 1000), ("odd", 0)])
def test_mig_members_count_compute_sevenths(profile, milligpu):
    assert a_shape(mig_profile=profile).demanded_milligpu == milligpu
