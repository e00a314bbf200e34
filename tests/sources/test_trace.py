"""A public trace as a source."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpuwatch.errors import SourceError
from gpuwatch.fit.booking import book
from gpuwatch.sources.trace import TraceSource
from tests.builders import NOW


def test_a_folder_that_is_no_trace_is_a_source_error(tmp_path):
    with pytest.raises(SourceError) as caught:
        TraceSource(tmp_path).read(NOW)
    assert caught.value.code == "bad_answer"
    assert caught.value.what


@pytest.mark.traces
def test_the_load_is_what_was_asked_for(traces):
    source = TraceSource(traces / "openb", load_ratio=0.5, live=True)
    snapshot = source.read(NOW)
    capacity = 1000 * sum(len(node.gpus) for node in snapshot.nodes)
    asked = sum(job.shape.milligpu * len(job.members) for job in snapshot.jobs)
    assert 0.49 * capacity < asked <= 0.5 * capacity
    assert book(snapshot).findings == ()
    assert snapshot.taken_at == NOW
    assert source.read(NOW + timedelta(minutes=1)).taken_at == NOW + timedelta(minutes=1)


@pytest.mark.traces
def test_without_a_load_it_is_empty_and_keeps_its_own_time(traces):
    snapshot = TraceSource(traces / "openb", load_ratio=None).read(NOW)
    assert snapshot.jobs == ()
    assert snapshot.arrivals
    assert snapshot.taken_at != NOW
