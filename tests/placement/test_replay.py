"""What a replay tells: curves and admission on cases small enough to count by hand, refusals, the published means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.errors import InputError, SettingsError
from gpuwatch.model.jobs import Member
from gpuwatch.model.replay import ReplayPoint, SizeAdmission
from gpuwatch.placement.replay import field_of, replay_arrivals
from gpuwatch.placement.replay_curve import admission, curve, ratio_at
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import JobTrace
from tests.builders import a_job, a_node, a_shape


def a_field(*jobs, nodes=None):
    return field_of(JobTrace(nodes=nodes or (a_node("a", 4),), jobs=jobs, workload="small"))


def test_the_curve_is_the_mean_of_the_arrivals_at_each_percent():
    asked = np.array([500, 0, 500, 1000])  # 25, 25, 50 and 100% of two devices
    free = np.array([1500.0, 1500.0, 1000.0, 0.0])
    fragment = np.array([300.0, 600.0, 500.0, 0.0])
    assert curve(asked, free, fragment, 2000) == (
        ReplayPoint(
            arrived_percent=25,
            allocation_ratio=0.25,
            fragment_ratio=pytest.approx(0.3),
            fragment_of_capacity_ratio=pytest.approx(0.225),
        ),
        ReplayPoint(arrived_percent=50, allocation_ratio=0.5, fragment_ratio=0.5, fragment_of_capacity_ratio=0.25),
        ReplayPoint(arrived_percent=100, allocation_ratio=1.0, fragment_ratio=None, fragment_of_capacity_ratio=0.0),
    )
    assert ratio_at(curve(asked, free, fragment, 2000), 75) is None


def test_admission_counts_by_size_up_to_the_capacity_and_in_all():
    shapes = [a_shape(0), a_shape(1, milligpu=500), a_shape(2), a_shape(1), a_shape(2)]
    told = admission(shapes, np.array([True, True, False, True, False]), capacity=4000)
    counted = [(each.size, each.arrived, each.admitted, each.arrived_in_all, each.admitted_in_all) for each in told]
    assert counted == [("cpu", 1, 1, 1, 1), ("share", 1, 1, 1, 1), ("1", 1, 1, 1, 1), ("2", 1, 0, 2, 0)]


def test_a_run_on_four_devices():
    """Five whole-device jobs on four devices: the fifth, whichever it is, finds nothing."""
    run = replay_arrivals(a_field(*[a_job(f"j{at}") for at in range(5)]), "best_fit", seed=1, inflate=1.25)
    assert run.arrivals == 5
    assert [point.arrived_percent for point in run.curve] == [25, 50, 75, 100, 125]
    assert [point.allocation_ratio for point in run.curve] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert run.admission == (SizeAdmission(size="1", arrived=4, admitted=4, arrived_in_all=5, admitted_in_all=4),)
    assert (run.allocation_ratio_at_100, run.allocation_ratio_at_130) == (1.0, None)


@pytest.mark.parametrize("inflate", [0.0, -1.0, 10.1, float("nan")])
def test_an_inflation_out_of_bounds_is_refused(inflate):
    with pytest.raises(SettingsError, match="inflate"):
        replay_arrivals(a_field(a_job("j")), "fgd", seed=1, inflate=inflate)


def test_an_unknown_policy_is_refused():
    with pytest.raises(SettingsError, match="nosuch"):
        replay_arrivals(a_field(a_job("j")), "nosuch", seed=1, inflate=1.0)


def test_traces_that_the_protocol_cannot_place_are_refused():
    gang = replace(a_job("g"), members=(Member(name="0"), Member(name="1")))
    with pytest.raises(InputError, match="g is a gang"):
        a_field(a_job("j"), gang)
    with pytest.raises(InputError, match="MIG"):
        a_field(a_job("m", shape=a_shape(mig_profile="1g.10gb")))
    with pytest.raises(InputError, match="no usable GPU"):
        a_field(a_job("j"), nodes=(a_node("cpu", []),))
    with pytest.raises(InputError, match="asks for a GPU"):
        replay_arrivals(a_field(a_job("c", shape=a_shape(0))), "fgd", seed=1, inflate=1.0)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("policy", "at_100", "at_130"), [("fgd", 95.23, 95.39), ("best_fit", 92.86, 93.08), ("random", 86.30, 87.47)]
)
def test_means_are_the_published_ones(traces, policy, at_100, at_130):
    """Four seeds against the mean of ten, so with some room beyond the half point that ten seeds keep."""
    field = field_of(read_openb(traces / "openb"))
    runs = [replay_arrivals(field, policy, seed=seed, inflate=1.3) for seed in range(42, 46)]
    assert 100 * np.mean([run.allocation_ratio_at_100 for run in runs]) == pytest.approx(at_100, abs=0.6)
    assert 100 * np.mean([run.allocation_ratio_at_130 for run in runs]) == pytest.approx(at_130, abs=0.6)
