"""devices.list as a real kernel writes it (cgroup v1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuwatch_exporters.holders.slurm.source import SlurmJobs

from tests.exporters.holders.frames import plain
from tests.exporters.holders.trees import Node

pytestmark = pytest.mark.server


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Path]:
    """A job's cgroup in the kernel's own hierarchy, found through the node's folder."""
    [where] = [
        Path(line.split()[1])
        for line in Path("/proc/mounts").read_text().splitlines()
        if line.split()[2] == "cgroup" and "devices" in line.split()[3].split(",")
    ] or [None]
    if where is None or os.geteuid() != 0:
        pytest.skip("no cgroup v1 with devices that this user may change")
    top = where / f"gpuwatch-test-{os.getpid()}"
    folder = top / "slurm/uid_1000/job_7"
    folder.mkdir(parents=True)
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup/devices").symlink_to(top)
    yield folder
    while folder != where:
        folder.rmdir()
        folder = folder.parent


def held(tmp_path: Path) -> list[list[str]]:
    node = Node(tmp_path)
    told = SlurmJobs(node.cgroupfs, node.procfs, str, None, None).look(plain())
    return [[ref.text for ref in each.refs] for each in told.holdings]


def test_what_a_job_may_use(job: Path, tmp_path: Path) -> None:
    (job / "devices.deny").write_text("a")
    assert held(tmp_path) == []
    for line in ("c 1:3 rwm", "c 195:255 rwm", "c 195:2 rwm", "c 195:0 rw"):
        (job / "devices.allow").write_text(line)
    assert held(tmp_path) == [["0", "2"]]
    (job / "devices.deny").write_text("c 195:0 rw")
    assert held(tmp_path) == [["2"]]


def test_exceptions_to_everything_are_not_printed_and_nothing_is_told(job: Path, tmp_path: Path) -> None:
    (job / "devices.deny").write_text("c 195:1 rwm")
    assert (job / "devices.list").read_text() == "a *:* rwm\n"
    assert held(tmp_path) == []
