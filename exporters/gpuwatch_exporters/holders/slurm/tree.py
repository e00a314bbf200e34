"""The cgroups of Slurm's jobs on this node, whichever way Slurm lays them out.

    v1            <root>/<controller>/slurm[_<node>]/uid_<uid>/job_<id>/step_<step>/task_<n>
    v2            <root>/<slice>/[<node>_]slurmstepd.scope/job_<id>/step_<step>/user/task_<n>
    v2 (26.05 on) <root>/<slice>/[<node>_]slurmstepd.scope/<SLUID>/step_<step>/user/task_<n>

A SLUID does not hold the job's number; the title of the step's slurmstepd does ("slurmstepd: [<id>.<step>]").
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_JOB = re.compile(r"job_(\d+)")
_SLUID = re.compile(r"s[0-9A-Z]{13}")
_UID = re.compile(r"uid_(\d+)")
_SCOPE = re.compile(r"(?:.+_)?slurmstepd\.scope")
_V1_ROOT = re.compile(r"slurm(?:_.+)?")
_TITLE = re.compile(rb"slurmstepd: \[(\d+)\.")
# Where v1 is searched: the devices controller tells the devices, freezer (process tracking) at least the jobs.
_V1_CONTROLLERS = ("devices", "freezer", "cpuset", "memory")
_PATH_V1 = re.compile(r"/slurm[^/]*/uid_(\d+)/job_(\d+)(?:/|$)")
_PATH_V2 = re.compile(r"slurmstepd\.scope/(?:job_(\d+)|(s[0-9A-Z]{13}))(?:/|$)")


@dataclass(frozen=True, slots=True)
class JobGroup:
    """One job's cgroup. `named` is the job's number, or the SLUID where the folder has only that (see job_id)."""

    path: Path
    version: int
    named: str
    uid: int | None = None

    @property
    def numbered(self) -> bool:
        """Whether `named` is a job's number."""
        return self.named.isdigit()


def job_groups(root: Path) -> list[JobGroup]:
    """Every job's cgroup below `root` (/sys/fs/cgroup), each job once per Slurm daemon; [] where there is no Slurm.

    Raises nothing for folders that vanish meanwhile.
    """
    found = list(_v2(root))
    known = {group.named for group in found}
    for controller in _V1_CONTROLLERS:
        new = [group for group in _v1(root / controller) if group.named not in known]
        found += new
        known |= {group.named for group in new}
    return found


def has_slurm(root: Path) -> bool:
    """Whether Slurm has any folder here, be it without jobs."""
    return any(True for _ in _scopes(root)) or any(
        True for controller in _V1_CONTROLLERS for _ in _matching(root / controller, _V1_ROOT)
    )


def steps(group: JobGroup) -> Iterator[tuple[str, list[int]]]:
    """(step, pids) of each step: "batch", "extern", "interactive" or its number. Only the job's own processes, not
    the slurmstepd that watches them."""
    for folder, name in _matching(group.path, re.compile(r"step_(.+)")):
        user = folder / "user" if group.version == 2 else folder
        yield name[1], [pid for each in _with_children(user) for pid in pids(each)]


def job_id(group: JobGroup, procfs: Path) -> str:
    """The job's number; the SLUID where no slurmstepd tells the number."""
    if group.numbered:
        return group.named
    for folder, _ in _matching(group.path, re.compile(r"step_.+")):
        for pid in pids(folder / "slurm"):
            if title := _TITLE.search(_read(procfs / str(pid) / "cmdline")):
                return title[1].decode()
    return group.named


def job_of_path(text: str) -> tuple[str, int | None] | None:
    """(job number or SLUID, uid) of a process, from its /proc/PID/cgroup; None for a process of no job."""
    if v1 := _PATH_V1.search(text):
        return v1[2], int(v1[1])
    if v2 := _PATH_V2.search(text):
        return v2[1] or v2[2], None
    return None


def pids(folder: Path) -> list[int]:
    """The processes of one cgroup; those outside of our pid namespace (0) are left out."""
    return [int(each) for each in _read(folder / "cgroup.procs").split() if each != b"0"]


def _v2(root: Path) -> Iterator[JobGroup]:
    for scope in _scopes(root):
        for entry in _folders(scope):
            if job := _JOB.fullmatch(entry.name):
                yield JobGroup(Path(entry.path), 2, job[1])
            elif _SLUID.fullmatch(entry.name):
                yield JobGroup(Path(entry.path), 2, entry.name)


def _v1(controller: Path) -> Iterator[JobGroup]:
    for slurm, _ in _matching(controller, _V1_ROOT):
        for user, uid in _matching(slurm, _UID):
            for job, number in _matching(user, _JOB):
                yield JobGroup(job, 1, number[1], int(uid[1]))


def _scopes(root: Path) -> Iterator[Path]:
    """Scopes in the root or one or two slices below it (CgroupSlice), on hybrid hosts below `unified` too."""
    for top in (root, root / "unified"):
        for entry in _folders(top):
            if _SCOPE.fullmatch(entry.name):
                yield Path(entry.path)
            elif entry.name.endswith(".slice"):
                yield from _in_slice(Path(entry.path), 1)


def _in_slice(folder: Path, depth: int) -> Iterator[Path]:
    for entry in _folders(folder):
        if _SCOPE.fullmatch(entry.name):
            yield Path(entry.path)
        elif depth and entry.name.endswith(".slice"):
            yield from _in_slice(Path(entry.path), depth - 1)


def _with_children(folder: Path) -> Iterator[Path]:
    yield folder
    for entry in _folders(folder):
        if entry.name.startswith("task_"):
            yield Path(entry.path)


def _matching(folder: Path, pattern: re.Pattern[str]) -> Iterator[tuple[Path, re.Match[str]]]:
    for entry in _folders(folder):
        if found := pattern.fullmatch(entry.name):
            yield Path(entry.path), found


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if e.is_dir(follow_symlinks=False)), key=lambda e: e.name)
    except OSError:
        return []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the job or process ended meanwhile
        return b""
