"""Which devices a job's cgroup lets it open: the list of cgroup v1, the device program of cgroup v2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from gpuwatch_exporters.holders.holding import Ref
from gpuwatch_exporters.holders.slurm import programs
from gpuwatch_exporters.holders.slurm.tree import JobGroup

# (major, minor) of a character device -> whether the job may read and write it
Rule = Callable[[int, int], bool]
_LINE = re.compile(r"c (\d+):(\d+|\*) ([rwm]+)")
_NVIDIA_MAJOR = 195  # fixed in the kernel's list of devices
_CAPS = re.compile(r"gpu(\d+)/gi(\d+)/ci(\d+)/access (\d+)")


def rule_of(group: JobGroup) -> Rule | None:
    """The rule; None where the cgroup does not constrain devices, or does not tell.

    Raises programs.DeniedError where only the rights to read a device program are missing.
    """
    if group.version == 1:
        return _list_rule(group.path / "devices.list")
    return programs.rule_of(group.path)


def held(rule: Rule, minors: Iterable[int], majors: Mapping[str, int], caps: Mapping[str, int]) -> tuple[Ref, ...]:
    """The devices that a rule leaves to the job: MIG instances where it allows any of a device, else the device.

    minors: of the node's GPUs. majors: of "nvidia" and "nvidia-caps". caps: "minor/gi/ci" -> minor of nvidia-caps.
    """
    refs: list[Ref] = []
    for minor in minors:
        if not rule(majors.get("nvidia", _NVIDIA_MAJOR), minor):
            continue
        instances = [name for name in caps if name.startswith(f"{minor}/")]
        allowed = [name for name in instances if "nvidia-caps" in majors and rule(majors["nvidia-caps"], caps[name])]
        refs += [Ref("mig", name) for name in allowed] or [Ref("minor", str(minor))]
    return tuple(refs)


def device_majors(procfs: Path) -> dict[str, int]:
    """Majors of "nvidia" and "nvidia-caps" from /proc/devices, where the driver is loaded."""
    names = {"nvidia": "nvidia", "nvidia-frontend": "nvidia", "nvidia-caps": "nvidia-caps"}
    out: dict[str, int] = {}
    for line in _text(procfs / "devices").splitlines():
        major, _, name = line.strip().partition(" ")
        if name in names and major.isdigit():
            out.setdefault(names[name], int(major))
    return out


def capabilities(procfs: Path) -> dict[str, int]:
    """ "minor/gi/ci" -> minor of the nvidia-caps file that opens that MIG instance."""
    found = _CAPS.findall(_text(procfs / "driver/nvidia-caps/mig-minors"))
    return {f"{gpu}/{gi}/{ci}": int(minor) for gpu, gi, ci, minor in found}


def _list_rule(path: Path) -> Rule | None:
    """The rule of devices.list. A list that allows everything may hide exceptions, which the kernel does not print."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    if any(line.startswith("a *:*") for line in lines):
        return None
    allowed = {(int(m[1]), m[2]) for m in map(_LINE.fullmatch, lines) if m and "r" in m[3] and "w" in m[3]}
    if (_NVIDIA_MAJOR, "*") in allowed:
        return None  # all of NVIDIA's devices by one line: a default of the site, nothing about this job
    return lambda major, minor: (major, str(minor)) in allowed or (major, "*") in allowed


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
