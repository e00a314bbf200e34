"""The times that openb tells, and what a run on it takes from them."""

from __future__ import annotations

import math
from statistics import median, pstdev

import pytest

from gpuwatch.errors import InputError
from gpuwatch.placement.churn.replay import churn_field, replay_churn
from gpuwatch.placement.churn.settings import ChurnSettings
from gpuwatch.placement.churn.stream import churn_stream
from gpuwatch.traces.openb import read_openb
from gpuwatch.traces.trace_format import read_trace

HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"


def read(tmp_path, *rows: str):
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n"
    )
    (tmp_path / "openb_pod_list_default.csv").write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return read_openb(tmp_path)


def test_a_job_ran_from_being_scheduled_to_being_deleted(tmp_path):
    trace = read(tmp_path, "ran,1,1,1,1000,5,40,10", "waited,1,1,1,1000,5,40,", "stays,1,1,1,1000,5,,10")
    assert trace.duration_seconds == {"ran": 30}


def test_a_job_deleted_before_it_was_scheduled_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"pod_list_default\.csv:2: column deletion_time is 9, outside 10"):
        read(tmp_path, "odd,1,1,1,1000,5,9,10")


@pytest.mark.traces
def test_the_default_list_tells_what_the_page_says(traces):
    trace = read_trace(traces / "openb")
    told = list(trace.duration_seconds.values())
    assert (len(trace.jobs), len(told)) == (8152, 7255)
    assert median(told) == 616
    assert pstdev([math.log(seconds) for seconds in told]) == pytest.approx(1.88, abs=0.005)
    field = churn_field(trace)
    stream = churn_stream(trace, field.capacity_milligpu, ChurnSettings(times="trace"), 42)
    assert (stream.jobs_without_time, stream.jobs_left_out, len(stream.kind)) == (897, 0, 8152)
    drawn = churn_stream(trace, field.capacity_milligpu, ChurnSettings(load=0.95), 42)
    assert drawn.initial == 7904
    assert len(drawn.kind) == pytest.approx(7904 * 7, rel=0.02)


@pytest.mark.traces
def test_a_list_without_times_can_only_be_drawn(traces):
    trace = read_trace(traces / "openb", "multigpu20")
    with pytest.raises(InputError, match="does not tell how long a job ran"):
        churn_stream(trace, 1, ChurnSettings(times="durations"), 42)


@pytest.mark.traces
def test_a_run_on_the_default_list(traces):
    """Short, and over NumPy, which needs no compiling; a load that everybody can serve is served."""
    settings = ChurnSettings(load=0.6, turnovers=0.2)
    run = replay_churn(
        churn_field(read_trace(traces / "openb")), "best_fit", seed=42, settings=settings, compiled=False
    )
    assert run.refused == 0
    assert run.waiting == 0
    assert run.utilization_ratio == pytest.approx(run.offered_load_ratio, abs=1e-6)
    assert run.utilization_ratio == pytest.approx(0.6, abs=0.03)
