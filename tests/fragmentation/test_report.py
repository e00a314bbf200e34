"""The report on small clusters whose numbers can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.demand.mix import demand_mix
from gpuwatch.fit.booking import book
from gpuwatch.fragmentation.report import NO_GPU_DEMAND, NOTHING_FREE, fragmentation_report
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import ShapeCount
from gpuwatch.model.settings import AnalysisSettings
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot


def report(snapshot):
    return fragmentation_report(book(snapshot), demand_mix(snapshot, AnalysisSettings(mix_coverage_ratio=1.0)))


def asked(**counts):
    shapes = {"one": a_shape(1), "eight": a_shape(8), "cpu": a_shape(0), "t4": a_shape(1, gpu_models=("T4",))}
    return tuple(ShapeCount(shape=shapes[name], count=count) for name, count in counts.items())


def test_half_empty_nodes_strand_eight_gpu_jobs():
    jobs = [a_job("x", "a", [0, 1, 2, 3]), a_job("y", "b", [0, 1, 2, 3])]
    found = report(a_snapshot(a_node("a"), a_node("b"), jobs=jobs, arrivals=asked(one=3, eight=1)))
    assert found.overall.free_milligpu == 8000
    assert found.overall.stranded_milligpu == pytest.approx(2000)  # a quarter of the demand cannot use any of it
    assert found.overall.fragmentation_index == pytest.approx(25)
    assert found.overall.by_cause == pytest.approx(
        {"no_access": 0, "gpu_lacking": 2000, "cpu_lacking": 0, "both_lacking": 0}
    )
    assert [(fit.shape.gpus, fit.fits_now, fit.stranded_milligpu) for fit in found.shapes] == [(1, 8, 0), (8, 0, 8000)]


def test_cpu_only_demand_stays_out_of_the_headline():
    snapshot = a_snapshot(a_node("a"), arrivals=asked(one=3, cpu=1))
    found = report(snapshot).overall
    assert found.fragmentation_index == 0
    assert found.cpu_only_milligpu == pytest.approx(2000)
    assert found.fgd_ratio == pytest.approx(0.25)


def test_causes_by_model_and_by_cpu():
    nodes = a_node("a", model="T4"), a_node("b", cpu_allocatable_millicores=1000)
    found = report(a_snapshot(*nodes, arrivals=asked(t4=1, one=1)))
    causes = found.overall.by_cause
    assert causes["no_access"] == pytest.approx(4000)  # half the demand accepts T4 only
    assert causes["cpu_lacking"] == pytest.approx(4000)  # the other half finds no CPU on b
    assert sum(causes.values()) == pytest.approx(found.overall.stranded_milligpu)
    by_model = {scope.gpu_model: scope.fragmentation_index for scope in found.scopes if scope.gpu_model}
    assert by_model == pytest.approx({"H100-80": 100, "T4": 0})


def test_scopes_add_up():
    nodes = a_node("a", pool="p"), a_node("b", 4, model="T4", pool="q"), a_node("c", 2, pool="q")
    found = report(a_snapshot(*nodes, arrivals=asked(t4=1, one=2, eight=1, cpu=1)))
    by_pool = [s for s in found.scopes if s.gpu_model is None]
    by_model = [s for s in found.scopes if s.pool is None]
    cells = [s for s in found.scopes if s.is_cell]
    assert (*by_pool, *by_model, *cells) == found.scopes
    assert [(s.pool, s.gpu_model) for s in cells] == [("p", "H100-80"), ("q", "H100-80"), ("q", "T4")]
    for scopes in (by_pool, by_model, cells):
        assert sum(s.free_milligpu for s in scopes) == found.overall.free_milligpu
        assert sum(s.stranded_milligpu for s in scopes) == pytest.approx(found.overall.stranded_milligpu)


def test_nothing_free_gives_no_index():
    found = report(a_snapshot(a_node("a", 1), jobs=[a_job("x", "a", [0])])).overall
    assert found.free_milligpu == 0
    assert found.fragmentation_index is None
    assert found.fgd_ratio is None
    assert found.reason == NOTHING_FREE


@pytest.mark.parametrize("arrivals", [(), asked(cpu=5)])
def test_no_gpu_demand_gives_no_index(arrivals):
    found = report(a_snapshot(a_node("a"), arrivals=arrivals)).overall
    assert found.fragmentation_index is None
    assert found.reason == NO_GPU_DEMAND
    assert found.by_cause == {}
    assert found.fgd_ratio == (1.0 if arrivals else None)


@pytest.mark.parametrize("nodes", [(), (a_node("cpu", 0),)])
def test_no_gpus_at_all(nodes):
    found = report(a_snapshot(*nodes, arrivals=asked(one=1, cpu=1)))
    assert found.overall.reason == NOTHING_FREE
    assert [fit.fits_now for fit in found.shapes] == [0, 3 * len(nodes)]


def test_unknown_cpu_strands_nothing_and_is_told():
    node = a_node("a", cpu_allocatable_millicores=None)
    found = report(a_snapshot(node, arrivals=asked(one=1))).overall
    assert found.fragmentation_index == 0
    assert found.reason == "CPU capacity of 1 node(s) is unknown and taken as enough"


def test_blocked_and_unhealthy_devices_are_not_free():
    cordoned = a_node("a", block_causes=("cordoned",))
    sick = a_node("b", [a_gpu(0, health="unhealthy"), a_gpu(1)])
    found = report(a_snapshot(cordoned, sick, arrivals=asked(one=1)))
    assert found.overall.free_milligpu == 1000
    assert found.shapes[0].fits_now == 1


def test_mig_devices_take_no_part():
    instance = MigInstance(id="1", profile="1g.10gb", compute_slices=1, memory_slices=1)
    node = a_node("a", [a_gpu(0, mig_enabled=True, mig_instances=(instance,)), a_gpu(1)])
    found = report(a_snapshot(node, arrivals=asked(one=1)))
    assert found.excluded_mig_gpus == 1
    assert found.overall.free_milligpu == 1000


def test_leftover_too_small_for_a_shape_that_runs_is_lacking_gpu():
    half = a_shape(1, milligpu=600)
    job = a_job("x", "a", [0], shape=half)
    found = report(a_snapshot(a_node("a", 2), jobs=[job], arrivals=asked(one=1))).overall
    assert found.by_cause["gpu_lacking"] == pytest.approx(400)


def test_equal_input_gives_equal_reports_and_memory_does_not_matter():
    snapshot = a_snapshot(a_node("a"), arrivals=asked(one=1, eight=1))
    fat = replace(snapshot.arrivals[0], shape=replace(snapshot.arrivals[0].shape, memory_bytes=2**60))
    assert report(snapshot) == report(snapshot)
    assert report(replace(snapshot, arrivals=(fat, snapshot.arrivals[1]))).overall == report(snapshot).overall
