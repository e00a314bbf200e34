"""Folders as the kernel and Slurm lay them out: cgroups, /proc, with nothing of this machine in them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_NOBODY = 65534


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


class Node:
    """`cgroupfs` and `procfs` below a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.cgroupfs, self.procfs = folder / "cgroup", folder / "proc"
        write(self.procfs / "devices", "Character devices:\n  1 mem\n195 nvidia\n235 nvidia-caps\n\nBlock devices:\n")

    def process(
        self,
        pid: int,
        uid: int = 1000,
        environment: Mapping[str, str] | None = None,
        cgroup: str = "/",
        title: str = "python",
    ) -> int:
        folder = self.procfs / str(pid)
        write(folder / "status", f"Name:\tx\nPid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t1\t1\t1\t1\n")
        write(folder / "cgroup", f"0::{cgroup}\n")
        write(folder / "cmdline", title.encode() + b"\0")
        write(folder / "environ", b"".join(f"{k}={v}\0".encode() for k, v in (environment or {}).items()))
        return pid

    def v2(
        self,
        job: str,
        steps: Mapping[str, Iterable[int]],
        scope: str = "system.slice/slurmstepd.scope",
        stepd: int | None = None,
    ) -> Path:
        """A job's cgroup, v2: `job` as the folder is named; pids per step ("batch", "0"); the pid of slurmstepd."""
        folder = self.cgroupfs / scope / job
        for step, pids in steps.items():
            write(folder / f"step_{step}/user/task_0/cgroup.procs", "".join(f"{pid}\n" for pid in pids))
            write(folder / f"step_{step}/user/cgroup.procs", "")
            write(folder / f"step_{step}/slurm/cgroup.procs", "" if stepd is None else f"{stepd}\n")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def v1(
        self,
        job: int,
        uid: int = 1000,
        devices: str | None = None,
        steps: Mapping[str, Iterable[int]] | None = None,
        root: str = "slurm",
        controller: str = "devices",
    ) -> Path:
        """A job's cgroup, v1: `devices` is the text of devices.list."""
        folder = self.cgroupfs / controller / root / f"uid_{uid}/job_{job}"
        folder.mkdir(parents=True, exist_ok=True)
        if devices is not None:
            write(folder / "devices.list", devices)
        for step, pids in (steps or {}).items():
            write(folder / f"step_{step}/cgroup.procs", "")
            write(folder / f"step_{step}/task_0/cgroup.procs", "".join(f"{pid}\n" for pid in pids))
        return folder


def allowing(*minors: int, extra: str = "") -> str:
    """devices.list of a job that may use these GPUs."""
    gpus = "".join(f"c 195:{minor} rwm\n" for minor in minors)
    return f"c 1:3 rwm\nc 1:5 rwm\nb 8:0 r\nc 195:255 rwm\nc 195:254 rwm\n{gpus}{extra}"


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """The rights of a user who is not root, for a moment; nothing to change where the tests run as one."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
