"""Jobs of a real Slurm, whose own record of the devices is the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.holders.slurm.source import SlurmJobs

from tests.exporters.holders.frames import plain
from tests.exporters.holders.slurm_node import GPUS, SlurmNode, slurm_node
from tests.servers import wait_for

pytestmark = pytest.mark.server


def truth(node: SlurmNode, job: str) -> set[str]:
    """The device numbers that slurmctld gave to a job."""
    shown = node.run("scontrol", "show", "job", "-d", job)
    out: set[str] = set()
    for part in re.findall(r"IDX:([\d,-]+)", shown):
        for span in part.split(","):
            first, _, last = span.partition("-")
            out |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return out


def held(frame: Frame) -> dict[str, set[str]]:
    jobs = SlurmJobs(Path("/sys/fs/cgroup"), Path("/proc"), str, None, None)
    return {each.job_id: {ref.text for ref in each.refs} for each in jobs.look(frame).holdings}


def test_jobs_hold_what_slurm_gave_them_however_they_see_it(tmp_path: Path) -> None:
    with slurm_node(tmp_path) as node:
        first, second, none = node.submit("--gres=gpu:1"), node.submit("--gpus=h100:2"), node.submit()
        wait_for(
            "the jobs",
            lambda: (
                node.told(first) and node.told(second) and "RUNNING" in node.run("squeue", "-h", "-j", none, "-o", "%T")
            ),
        )
        given = {job: truth(node, job) for job in (first, second)}
        assert [len(each) for each in given.values()] == [1, 2]
        # both count their own devices from 0, and so at least one by other numbers than the node's
        assert node.told(first)["CUDA_VISIBLE_DEVICES"] == "0"
        assert node.told(second)["CUDA_VISIBLE_DEVICES"] == "0,1"
        assert {job: devices for job, devices in held(plain(GPUS)).items() if job in (first, second, none)} == given
        node.run("scancel", first)
        wait_for("the end of one", lambda: first not in held(plain(GPUS)))
        assert held(plain(GPUS))[second] == given[second]
