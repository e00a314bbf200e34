"""The demand mix: what counts, in which order, and what an empty one says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.demand.mix import demand_mix
from gpuwatch.model.jobs import DemandShape, Member, ShapeCount
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import empty_snapshot
from tests.builders import a_job, a_node, a_shape, a_snapshot

EVERYTHING = AnalysisSettings(mix_coverage_ratio=1.0)


def arrivals(*counted: tuple[DemandShape, int]):
    return a_snapshot(arrivals=tuple(ShapeCount(shape=shape, count=count) for shape, count in counted))


def test_members_of_unfinished_jobs_count_where_no_arrivals_are_given():
    gang = replace(a_job("g", shape=a_shape(8)), members=tuple(Member(name=f"g-{i}") for i in range(3)))
    jobs = [gang, a_job("r", "n1", [0]), a_job("done", phase="finished"), a_job("gated", phase="gated")]
    mix = demand_mix(a_snapshot(a_node(), jobs=jobs), EVERYTHING)
    assert [(s.shape.gpus, s.share_ratio) for s in mix.shapes] == [(8, 0.6), (1, 0.4)]
    assert mix.basis == "5 members of 3 unfinished jobs"


def test_arrivals_win_over_jobs():
    snapshot = replace(arrivals((a_shape(2), 4)), jobs=(a_job("x"),), arrivals_basis="last week")
    mix = demand_mix(snapshot, EVERYTHING)
    assert [s.shape.gpus for s in mix.shapes] == [2]
    assert mix.basis == "last week"


def test_memory_does_not_split_shapes():
    mix = demand_mix(arrivals((a_shape(memory_bytes=1), 1), (a_shape(memory_bytes=2), 1)), EVERYTHING)
    assert [(s.shape.memory_bytes, s.share_ratio) for s in mix.shapes] == [(0, 1.0)]


def test_coverage_keeps_the_commonest_and_renormalizes():
    counted = arrivals((a_shape(1), 90), (a_shape(2), 6), (a_shape(4), 3), (a_shape(8), 1))
    mix = demand_mix(counted, AnalysisSettings(mix_coverage_ratio=0.95))
    assert [s.shape.gpus for s in mix.shapes] == [1, 2]
    assert mix.coverage_ratio == pytest.approx(0.96)
    assert [s.share_ratio for s in mix.shapes] == pytest.approx([90 / 96, 6 / 96])


def test_of_equally_common_shapes_the_larger_comes_first():
    counted = arrivals((a_shape(0), 1), (a_shape(1, milligpu=500), 1), (a_shape(4), 1), (a_shape(1), 1))
    mix = demand_mix(counted, EVERYTHING)
    assert [s.shape.milligpu for s in mix.shapes] == [4000, 1000, 500, 0]


def test_shapes_without_gpus_are_one_whatever_their_share():
    mix = demand_mix(arrivals((a_shape(0, milligpu=0), 1), (a_shape(0, milligpu=1000), 1)), EVERYTHING)
    assert len(mix.shapes) == 1


def test_mig_takes_no_part_and_is_told():
    counted = arrivals((a_shape(mig_profile="1g.10gb"), 7), (a_shape(), 1))
    mix = demand_mix(counted, EVERYTHING)
    assert [s.share_ratio for s in mix.shapes] == [1.0]
    assert mix.basis.endswith("7 MIG members take no part")


@pytest.mark.parametrize(
    "snapshot", [a_snapshot(), arrivals((a_shape(), 0)), arrivals((a_shape(mig_profile="1g.10gb"), 2))]
)
def test_no_demand_gives_an_empty_mix_that_says_so(snapshot):
    mix = demand_mix(snapshot, EVERYTHING)
    assert mix.shapes == ()
    assert mix.coverage_ratio is None
    assert mix.basis.startswith("no demand known (")


@settings(max_examples=200)
@given(
    counts=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 9), st.integers(0, 50)), max_size=20),
    coverage=st.floats(0, 1),
)
def test_shares_sum_to_one_and_cover_enough(counts, coverage):
    counted = arrivals(*((a_shape(gpus, cpu=cpu), count) for gpus, cpu, count in counts))
    mix = demand_mix(counted, AnalysisSettings(mix_coverage_ratio=coverage))
    if mix.coverage_ratio is None:
        assert sum(count for _, _, count in counts) == 0
        return
    assert sum(s.share_ratio for s in mix.shapes) == pytest.approx(1)
    assert mix.coverage_ratio >= coverage - 1e-9
    shares = [s.share_ratio for s in mix.shapes]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.traces
def test_the_published_default_list(traces):
    mix = demand_mix(empty_snapshot(read_openb(traces / "openb")), AnalysisSettings())
    assert len(mix.shapes) == 35
    assert mix.coverage_ratio == pytest.approx(0.9526, abs=5e-5)
    assert sum(s.share_ratio for s in mix.shapes if s.shape.gpus == 0) == pytest.approx(0.1360, abs=5e-5)
