"""Owners of processes by pid: user, container, Slurm job. The last resort, for devices that nobody else claims."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch_exporters.holders.holding import SourceOffError
from gpuwatch_exporters.holders.slurm.tree import job_of_path

SOURCE = "process"
_MAX_PIDS = 2048
_HOST_PIDS = 0xEFFFFFFC  # inode of the first pid namespace, fixed in the kernel
# .../docker-<64 hex>.scope, /docker/<64 hex>, cri-containerd-<...>.scope, crio-<...>.scope, libpod-<...>.scope,
# and /kubepods/.../<64 hex>
_CONTAINER = re.compile(r"(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
_SHORT = 12  # what `docker ps` and `crictl ps` print


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a process is. Unknown texts are ""."""

    user: str = ""
    container: str = ""
    job_id: str = ""


@dataclass(frozen=True, slots=True)
class Owners:
    """Owners by pid, and how many pids could not be told, by reason."""

    by_pid: Mapping[int, Owner]
    failures: Mapping[str, int] = field(default_factory=Counter)


class Processes:
    """Reads below `procfs`."""

    def __init__(self, procfs: Path, name_of: Callable[[int], str]) -> None:
        self._procfs, self._name_of = procfs, name_of

    def look(self, pids: Iterable[int]) -> Owners:
        """The owners of these pids. Raises SourceOffError own_pid_namespace: there, pids of the host mean others."""
        if not self._shows_host():
            raise SourceOffError("own_pid_namespace")
        found, failures = {}, Counter[str]()
        for pid in sorted(pids)[:_MAX_PIDS]:
            uid = owner_uid(self._procfs, pid)
            if uid is None:
                failures["no_such_process"] += 1
                continue
            found[pid] = self._owner(pid, uid)
        return Owners(found, failures)

    def _owner(self, pid: int, uid: int) -> Owner:
        path = _text(self._procfs / str(pid) / "cgroup")
        container, job = container_of_path(path), job_of_path(path)
        return Owner(self._name_of(uid), container, job[0] if job else "")

    def _shows_host(self) -> bool:
        if self._procfs != Path("/proc"):
            return True  # mounted from the host on purpose
        try:
            return os.stat("/proc/self/ns/pid").st_ino == _HOST_PIDS
        except OSError:
            return True


def container_of_path(text: str) -> str:
    """The short id of the innermost container in a /proc/PID/cgroup; "" for none."""
    found = _CONTAINER.findall(text)
    return found[-1][:_SHORT] if found else ""


def owner_uid(procfs: Path, pid: int) -> int | None:
    """The effective uid of a process; None for one that is gone. (The folder's owner is root for some programs.)"""
    for line in _text(procfs / str(pid) / "status").splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[2])
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
