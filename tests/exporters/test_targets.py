"""The target list: one target per node on one address, written in one step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpuwatch_exporters.replay.targets import target_groups, targets_json, write_atomically

from gpuwatch.errors import InputError


def test_every_target_has_a_path_a_job_and_an_instance_of_its_own() -> None:
    groups = target_groups("127.0.0.1:9437", ["n1", "rack/2 é"])
    labels = [group["labels"] for group in groups]
    assert [label["__metrics_path__"] for label in labels] == [
        "/nodes/n1/metrics",
        "/nodes/rack%2F2%20%C3%A9/metrics",
        "/kube-state-metrics/metrics",
        "/metrics",
    ]
    assert [label["job"] for label in labels] == ["dcgm-exporter"] * 2 + ["kube-state-metrics", "gpuwatch-replay"]
    assert len({(label["job"], label["instance"]) for label in labels}) == 4
    assert {tuple(group["targets"]) for group in groups} == {("127.0.0.1:9437",)}
    assert json.loads(targets_json("127.0.0.1:9437", ["n1", "rack/2 é"])) == groups


def test_the_file_is_replaced_whole_and_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "new" / "targets.json"
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="targets"):
        write_atomically(tmp_path / "file" / "targets.json", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder"):
        write_atomically(tmp_path / "folder", "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
