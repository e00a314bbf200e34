"""The ladder holds on any input, its scopes add up, and each odd case is counted as decided."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings

from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.fit.booking import book
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.evaluation import Waterfall
from gpuwatch.model.jobs import DeviceShare, Job, Member
from gpuwatch.model.settings import AnalysisSettings
from tests.builders import NOW, a_gpu, a_job, a_node, a_shape, a_snapshot, busy, idle
from tests.counting.snapshots import snapshots

SETTINGS = AnalysisSettings()
OLD = NOW - timedelta(hours=3)
NUMBERS = [name for name in Waterfall.__dataclass_fields__ if name.endswith("_milligpu")]


def count(snapshot) -> Waterfall:
    return waterfalls(book(snapshot), snapshot.taken_at, SETTINGS)[0]


@settings(max_examples=300)
@given(snapshots())
def test_the_ladder_holds_and_scopes_add_up(snapshot):
    overall, scopes = waterfalls(book(snapshot), snapshot.taken_at, SETTINGS)
    for w in (overall, *scopes):
        ladder = [w.installed_milligpu, w.healthy_milligpu, w.schedulable_milligpu, w.allocated_milligpu]
        assert [*ladder, w.active_milligpu, 0] == sorted([*ladder, w.active_milligpu, 0], reverse=True)
        assert sum(w.blocked.values()) == w.installed_milligpu - w.schedulable_milligpu
        assert w.allocated_milligpu == w.active_milligpu + w.idle_held_milligpu + w.activity_unknown_milligpu
        assert w.free_milligpu == w.schedulable_milligpu - w.allocated_milligpu
        assert all(getattr(w, name) >= 0 for name in NUMBERS)
        assert all(milligpu > 0 for milligpu in w.blocked.values())
    by_pool = [w for w in scopes if w.gpu_model is None]
    by_model = [w for w in scopes if w.pool is None]
    cells = [w for w in scopes if w.pool is not None and w.gpu_model is not None]
    assert (*by_pool, *by_model, *cells) == scopes
    assert [w.pool for w in by_pool] == sorted({n.pool for n in snapshot.nodes if n.gpus})
    assert [w.gpu_model for w in by_model] == sorted({g.model or "unknown" for n in snapshot.nodes for g in n.gpus})
    assert [(w.pool, w.gpu_model) for w in cells] == sorted((w.pool, w.gpu_model) for w in cells)
    for kind in (by_pool, by_model, cells):
        for name in NUMBERS:
            assert sum(getattr(w, name) for w in kind) == getattr(overall, name)


def test_an_empty_cluster_counts_nothing():
    assert waterfalls(book(a_snapshot()), NOW, SETTINGS) == (Waterfall(), ())


def test_finished_jobs_hold_nothing():
    jobs = [a_job("done", "n1", list(range(8)), phase="finished"), a_job("live", "n1", [0, 1])]
    assert count(a_snapshot(a_node(), jobs=jobs)).allocated_milligpu == 2000


def test_a_cordoned_node_keeps_its_busy_devices_and_blocks_its_free_ones():
    w = count(a_snapshot(a_node(gpus=4, block_causes=("cordoned",)), jobs=[a_job("j", "n1", [0])]))
    assert (w.allocated_milligpu, w.free_milligpu, w.blocked) == (1000, 0, {"cordoned": 3000})


def test_of_a_partly_held_device_on_a_blocked_node_only_the_rest_is_blocked():
    job = a_job("j", "n1", [0], shape=a_shape(milligpu=250))
    w = count(a_snapshot(a_node(gpus=1, block_causes=("not_ready", "cordoned")), jobs=[job]))
    assert (w.allocated_milligpu, w.blocked) == (250, {"not_ready": 750})


def test_a_held_unhealthy_device_is_blocked_whole_with_its_held_part_told():
    node = a_node(gpus=[a_gpu(0, health="unhealthy", activity=busy()), a_gpu(1)])
    w = count(a_snapshot(node, jobs=[a_job("j", "n1", [0], shape=a_shape(milligpu=400))]))
    assert (w.installed_milligpu, w.healthy_milligpu, w.allocated_milligpu) == (2000, 1000, 0)
    assert w.blocked == {"unhealthy": 600, "unhealthy_held": 400}


def test_unknown_health_counts_as_healthy_and_is_told():
    w = count(a_snapshot(a_node(gpus=[a_gpu(0, health="unknown"), a_gpu(1)])))
    assert (w.healthy_milligpu, w.health_unknown_milligpu) == (2000, 1000)


def a_mig_gpu(*slices: int, **activity) -> object:
    made = tuple(
        MigInstance(id=str(i), profile=f"{c}g.10gb", compute_slices=c, memory_slices=c, **activity)
        for i, c in enumerate(slices)
    )
    return a_gpu(0, mig_enabled=True, mig_instances=made)


def a_mig_job(name: str, *instances: str, **fields) -> Job:
    held = tuple(DeviceShare(gpu_index=0, milligpu=0, mig_instance=i) for i in instances)
    shape = a_shape(gpus=len(instances), mig_profile="1g.10gb")
    member = Member(name=name, node="n1", shares=held, devices_known=True)
    return Job(id=f"ml/{name}", name=name, shape=shape, members=(member,), **fields)


@pytest.mark.parametrize(
    ("held", "milligpu"), [(("0",), 143), (("0", "1"), 286), (("0", "1", "2", "3", "4", "5", "6"), 1000)]
)
def test_mig_instances_count_compute_sevenths(held, milligpu):
    node = a_node(gpus=[a_mig_gpu(*[1] * 7)])
    w = count(a_snapshot(node, jobs=[a_mig_job("j", *held)]))
    assert (w.allocated_milligpu, w.free_milligpu) == (milligpu, 1000 - milligpu)


def test_one_instance_claimed_twice_is_counted_once():
    w = count(a_snapshot(a_node(gpus=[a_mig_gpu(7)]), jobs=[a_mig_job("a", "0"), a_mig_job("b", "0")]))
    assert w.allocated_milligpu == 1000


def test_states_split_what_is_held():
    node = a_node(gpus=[a_gpu(0, activity=busy()), a_gpu(1, activity=idle()), a_gpu(2), a_gpu(3)])
    jobs = [a_job(f"j{i}", "n1", [i], started_at=OLD) for i in range(3)]
    w = count(a_snapshot(node, jobs=jobs))
    assert (w.active_milligpu, w.idle_held_milligpu, w.activity_unknown_milligpu, w.free_milligpu) == (1000,) * 4


def test_overheld_devices_never_overstate_idleness():
    node = a_node(gpus=[a_gpu(0, activity=idle())])
    young = a_job("young", "n1", [0], started_at=NOW)
    w = count(a_snapshot(node, jobs=[a_job("old", "n1", [0], started_at=OLD), young]))
    assert (w.allocated_milligpu, w.idle_held_milligpu, w.activity_unknown_milligpu) == (1000, 0, 1000)


def test_models_nobody_names_get_their_own_scope():
    _, scopes = waterfalls(book(a_snapshot(a_node(gpus=[a_gpu(0, model=None), a_gpu(1)]))), NOW, SETTINGS)
    assert [w.gpu_model for w in scopes if w.pool is None] == ["H100-80", "unknown"]


def test_a_card_with_four_compute_slices_is_whole_when_four_are_held():
    """An A30 is cut in quarters: one of four instances held is a quarter of it, not a seventh."""
    slices = tuple(MigInstance(id=str(at), profile="1g.6gb", compute_slices=1, memory_slices=1) for at in range(4))
    gpu = a_gpu(0, "A30", mig_enabled=True, mig_instances=slices)
    for held, milligpu in ((1, 250), (4, 1000)):
        shares = tuple(DeviceShare(gpu_index=0, milligpu=0, mig_instance=str(at)) for at in range(held))
        job = Job(
            id="ml/j",
            name="j",
            shape=a_shape(held, mig_profile="1g.6gb"),
            members=(Member(name="m", node="n1", shares=shares, devices_known=True),),
        )
        assert count(a_snapshot(a_node("n1", [gpu]), jobs=[job])).allocated_milligpu == milligpu
