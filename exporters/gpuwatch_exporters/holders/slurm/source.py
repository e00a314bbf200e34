"""The source "slurm": jobs on this node and their devices, a process on them or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.holders.holding import Holding, Ref, SourceOffError, Told
from gpuwatch_exporters.holders.processes import owner_uid
from gpuwatch_exporters.holders.slurm import allowed, environment, programs, tree, written
from gpuwatch_exporters.holders.slurm.interpreter import NotUnderstoodError

CGROUP, WRITTEN, ENVIRONMENT = "slurm_cgroup", "slurm_job_dir", "slurm_environment"


@dataclass(slots=True)
class _Look:
    """What one look at the node keeps at hand."""

    minors: list[int]
    majors: dict[str, int]
    caps: dict[str, int]
    files: dict[str, tuple[Ref, ...]]
    failures: Counter[str] = field(default_factory=Counter)


class SlurmJobs:
    """Reads cgroups below `cgroupfs` and processes below `procfs`; what prologs wrote, where folders are named.

    A job's device list wins over what a prolog wrote, and that over the environment of its processes.
    """

    def __init__(
        self, cgroupfs: Path, procfs: Path, name_of: Callable[[int], str], by_job: Path | None, by_device: Path | None
    ) -> None:
        self._cgroupfs, self._procfs, self._name_of = cgroupfs, procfs, name_of
        self._by_job, self._by_device = by_job, by_device

    def look(self, frame: Frame) -> Told:
        """Every job with a device. Raises SourceOffError no_slurm on a node without Slurm, LookError."""
        groups = tree.job_groups(self._cgroupfs)
        files = written.by_job(self._by_job)
        for job, refs in written.by_device(self._by_device).items():
            files[job] = (*files.get(job, ()), *refs)
        if not groups and not files and not self._here():
            raise SourceOffError("no_slurm")
        minors = [device.identity.minor for device in frame.devices if device.identity.minor is not None]
        majors, caps = allowed.device_majors(self._procfs), allowed.capabilities(self._procfs)
        look = _Look(minors, majors, caps, files)
        jobs = [(group, tree.job_id(group, self._procfs)) for group in groups]
        holdings = [each for group, job in jobs if (each := self._holding(group, job, look)) is not None]
        known = {job for _, job in jobs}
        holdings += [Holding(refs, WRITTEN, job_id=job) for job, refs in files.items() if refs and job not in known]
        return Told(tuple(holdings), look.failures)

    def _here(self) -> bool:
        return self._by_job is not None or self._by_device is not None or tree.has_slurm(self._cgroupfs)

    def _holding(self, group: tree.JobGroup, job: str, look: _Look) -> Holding | None:
        refs, source = self._devices(group, job, look)
        if not refs:
            return None
        return Holding(refs, source, job_id=job, user=self._user(group))

    def _devices(self, group: tree.JobGroup, job: str, look: _Look) -> tuple[tuple[Ref, ...], str]:
        try:
            rule = allowed.rule_of(group)
            if rule is not None and look.minors:
                return allowed.held(rule, look.minors, look.majors, look.caps), CGROUP
        except programs.DeniedError:
            look.failures["device_program_denied"] += 1
        except NotUnderstoodError:
            look.failures["device_program_unknown"] += 1
        if job in look.files:
            return look.files[job], WRITTEN
        try:
            return environment.refs(group, job, self._procfs), ENVIRONMENT
        except environment.UnreadableError:
            look.failures["environment_denied"] += 1
            return (), ENVIRONMENT

    def _user(self, group: tree.JobGroup) -> str:
        if group.uid is not None:
            return self._name_of(group.uid)
        for uid in _uids(group, self._procfs):
            return self._name_of(uid)
        return ""


def _uids(group: tree.JobGroup, procfs: Path) -> Iterable[int]:
    """The user of a job's first living process, besides root's own helpers where another one is there."""
    found = (owner_uid(procfs, pid) for _, pids in tree.steps(group) for pid in pids[:4])
    uids = [uid for uid in found if uid is not None]
    return sorted(uids, key=lambda uid: uid == 0)[:1]
