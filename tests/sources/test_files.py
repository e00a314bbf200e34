"""Snapshot files as a source."""

from __future__ import annotations

import os
import threading
from datetime import timedelta

import pytest

from gpuwatch.errors import SourceError
from gpuwatch.model.codec import dump_snapshot
from gpuwatch.model.snapshot import SourceHealth
from gpuwatch.sources.files import SnapshotFileSource
from tests.builders import NOW, a_node, a_snapshot


def test_the_file_is_read_anew_and_keeps_its_own_age(tmp_path):
    path = tmp_path / "s.json"
    source = SnapshotFileSource(path)
    path.write_text(dump_snapshot(a_snapshot(a_node())))
    later = NOW + timedelta(hours=9)
    assert source.read(later).taken_at == NOW
    path.write_text(dump_snapshot(a_snapshot(a_node(), a_node("n2"))))
    assert len(source.read(later).nodes) == 2


def test_what_the_recording_run_said_of_its_sources_stays(tmp_path):
    down = SourceHealth(name="prometheus:a", kind="prometheus", ok=False, cause="timeout")
    path = tmp_path / "s.json"
    path.write_text(dump_snapshot(a_snapshot(sources=(down,))))
    told = SnapshotFileSource(path).read(NOW).sources
    assert [(s.name, s.ok) for s in told] == [("file:s.json", True), ("prometheus:a", False)]


def test_what_is_there_but_no_plain_file_is_read_or_told_for_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "\ufeff" + dump_snapshot(a_snapshot(a_node()))  # with the mark that some editors put before a text
    threading.Thread(target=lambda: pipe.write_text(text, encoding="utf-8"), daemon=True).start()
    assert len(SnapshotFileSource(pipe).read(NOW).nodes) == 1
    with pytest.raises(SourceError, match="directory"):
        SnapshotFileSource(tmp_path).read(NOW)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "unreachable"),
        ("{", "bad_answer"),
        ("{}", "bad_answer"),
        ("\udcff", "bad_answer"),
        ("[" * 100_000, "bad_answer"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_source_error(tmp_path, text, code):
    path = tmp_path / "s.json"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SourceError) as caught:
        SnapshotFileSource(path).read(NOW)
    assert caught.value.code == code
