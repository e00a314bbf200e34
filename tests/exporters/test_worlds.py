"""Worlds: speed, snapshot files, traces placed and moving, and what a missing extra says."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from gpuwatch_exporters.replay.trace_world import TraceWorld
from gpuwatch_exporters.replay.worlds import GeneratedWorld, SnapshotWorld, trace_world

from gpuwatch.errors import InputError, MissingExtraError
from gpuwatch.fit.booking import book
from gpuwatch.model.codec import dump_snapshot
from gpuwatch.simulate.cluster import advance, simulate
from tests.exporters.worlds import NOW, replay_of

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},64000,262144,4,T4\n" for i in range(3))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(
    f"p{i},1000,1024,1,{(1000, 500, 460)[i % 3]}\n" for i in range(24)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS)
    return tmp_path


def test_speed_multiplies_time_and_dates_come_back_to_the_present() -> None:
    moment = GeneratedWorld(NOW, speed=60).at(NOW + timedelta(minutes=2))
    assert moment.snapshot == advance(simulate(7, NOW), 7200).snapshot
    assert moment.shift_seconds == -118 * 60
    still = GeneratedWorld(NOW, speed=0)
    assert still.at(NOW + timedelta(days=1)) == still.at(NOW)


def test_a_snapshot_file_is_served_as_if_taken_now(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(dump_snapshot(simulate(7, NOW).snapshot))
    world = SnapshotWorld(path, NOW + timedelta(days=400))
    assert world.at(NOW).snapshot == simulate(7, NOW).snapshot
    assert world.at(NOW).shift_seconds == 400 * 86400
    with pytest.raises(InputError, match=r"absent\.json"):
        SnapshotWorld(tmp_path / "absent.json", NOW)


def test_a_trace_is_placed_on_named_devices_and_gets_generated_readings(folder: Path) -> None:
    world = TraceWorld(NOW, folder, load=0.75)
    moment = world.at(NOW)
    assert world.at(NOW + timedelta(days=1)).snapshot is moment.snapshot
    found = book(moment.snapshot)
    assert not found.findings
    held = sum(1000 - left for node in found.nodes.values() for left in node.left_milligpu)
    assert held == sum(j.shape.milligpu for j in moment.snapshot.jobs if j.phase == "running")
    assert 0.6 * 12_000 < held <= 0.75 * 12_000
    replay = replay_of(world)
    text = replay.node_page("n0").plain.decode()
    assert text.count("DCGM_FI_DEV_POWER_USAGE{") >= 4
    assert "not measured" in text


def test_arrivals_bring_new_jobs_let_the_oldest_end_and_keep_the_load(folder: Path) -> None:
    world = TraceWorld(NOW, folder, load=0.75, arrivals_per_minute=2)
    first = world.at(NOW).snapshot
    seen, moments = Counter(), []
    for minute in range(1, 30):
        snapshot = world.at(NOW + timedelta(minutes=minute)).snapshot
        assert not book(snapshot).findings
        assert sum(j.shape.milligpu for j in snapshot.jobs) <= 0.75 * 12_000
        names = [job.id for job in snapshot.jobs]
        assert len(names) == len(set(names))
        seen.update(names)
        moments.append(snapshot)
    assert {job.id for job in first.jobs} - {job.id for job in moments[-1].jobs} == {job.id for job in first.jobs}
    assert any("-2" in name for name in seen)  # the list was over and started again


def test_a_trace_without_gpus_is_refused(folder: Path) -> None:
    (folder / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,0,\n")
    with pytest.raises(InputError):
        TraceWorld(NOW, folder)


def test_a_missing_library_is_told_with_the_extra_that_brings_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith(("gpuwatch.placement", "gpuwatch.fit.columns", "numpy"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "gpuwatch_exporters.replay.trace_world")
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingExtraError) as caught:
        trace_world(NOW, folder=folder)
    assert caught.value.lines() == [
        "error: --trace needs numpy",
        "to do: pip install 'gpuwatch-stack[analytics]'",
    ]
