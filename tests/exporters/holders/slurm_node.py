"""A real Slurm of one node with four device files for GPUs, whose jobs are constrained by cgroup v1."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import need_program
from tests.servers import free_port, running, wait_for

GPUS = 4
CONF = """
ClusterName=gpuwatchtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={daemon} CPUs=8 RealMemory=100 Gres=gpu:h100:{gpus}
PartitionName=all Nodes=ALL Default=YES State=UP
"""
CGROUP_CONF = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainDevices=yes
ConstrainCores=no
ConstrainRAMSpace=no
"""


@dataclass(frozen=True)
class SlurmNode:
    folder: Path

    def run(self, *command: str) -> str:
        """What a command of Slurm prints; AssertionError when it fails."""
        environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, *options: str) -> str:
        """The number of a job that tells its GPUs' variables in `out.<job>` and waits."""
        script = "env | grep -E '^(SLURM_JOB_GPUS|CUDA_VISIBLE_DEVICES)='; sleep 600"
        output = f"--output={self.folder}/out.%j"
        return self.run("sbatch", "--parsable", "-n1", output, *options, "--wrap", script).strip()

    def told(self, job: str) -> dict[str, str]:
        """The variables that a job told."""
        path = self.folder / f"out.{job}"
        lines = path.read_text().splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines)


@contextlib.contextmanager
def slurm_node(folder: Path) -> Iterator[SlurmNode]:
    """Starts munge and both daemons below `folder`; ends all of them, their jobs and cgroups."""
    programs = {name: need_program(name) for name in ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")}
    mounts = [Path("/sys/fs/cgroup") / name for name in ("devices", "freezer")]
    if os.geteuid() != 0 or not all((mount / "tasks").exists() for mount in mounts):
        pytest.skip("no cgroup v1 that this user may change")
    name = f"gwtest{os.getpid()}"
    _configure(folder, name)
    node = SlurmNode(folder)
    before = {path for mount in mounts[0].parent.iterdir() for path in mount.glob("slurm*")}
    munge = [programs["munged"], "-F", "--force", f"--socket={folder}/munge.sock", f"--key-file={folder}/munge.key"]
    munge += [f"--{each}-file={folder}/munged.{each}" for each in ("pid", "log", "seed")]
    patch = pytest.MonkeyPatch()
    patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))  # the daemons inherit it
    try:
        with (
            running(munge, folder / "munged.out", lambda: (folder / "munge.sock").exists()),
            running(
                [programs["slurmctld"], "-D", "-i"], folder / "slurmctld.log", lambda: node.run("scontrol", "ping")
            ),
            running([programs["slurmd"], "-D", "-N", name], folder / "slurmd.log", lambda: _idle(node, name)),
        ):
            try:
                yield node
            finally:
                node.run("scancel", "--user=root")
                wait_for("the end of all jobs", lambda: not node.run("squeue", "-h"), 30)
    finally:
        patch.undo()
        _remove({path for mount in mounts[0].parent.iterdir() for path in mount.glob("slurm*")} - before)


def _configure(folder: Path, name: str) -> None:
    host = socket.gethostname().partition(".")[0]
    (folder / "dev").mkdir()
    for each in ("state", "spool"):
        (folder / each).mkdir()
    for minor in range(GPUS):
        os.mknod(folder / f"dev/nvidia{minor}", stat.S_IFCHR | 0o666, os.makedev(195, minor))
    key = folder / "munge.key"
    key.write_bytes(bytes(range(128)))
    key.chmod(0o600)
    text = CONF.format(host=host, folder=folder, node=name, controller=free_port(), daemon=free_port(), gpus=GPUS)
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text(CGROUP_CONF)
    (folder / "gres.conf").write_text(f"Name=gpu Type=h100 File={folder}/dev/nvidia[0-{GPUS - 1}]\n")


def _idle(node: SlurmNode, name: str) -> bool:
    return "State=IDLE " in node.run("scontrol", "show", "node", name)


def _remove(tops: set[Path]) -> None:
    for top in tops:
        for path in sorted((*top.rglob("*/"), top), key=lambda each: -len(each.parts)):
            with contextlib.suppress(OSError):
                path.rmdir()
