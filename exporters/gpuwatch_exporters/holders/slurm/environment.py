"""GPUs of a job from the environment of its processes: the last resort, as users may change theirs and Slurm hands a
job's variables on to steps on other nodes.

SLURM_JOB_GPUS and SLURM_STEP_GPUS hold the node's own device numbers. CUDA_VISIBLE_DEVICES is numbered anew where
cgroups constrain devices: its numbers are never used, only the uuids that it may hold instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gpuwatch_exporters.holders.holding import Ref
from gpuwatch_exporters.holders.slurm.tree import JobGroup, steps

_MAX_BYTES = 1 << 18
_PIDS_PER_STEP, _STEPS = 3, 32  # all processes of a step say the same
_OWN_STEPS = frozenset(("batch", "interactive"))  # their variables were made for this node
_WANTED = frozenset((
    "SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
))  # fmt: skip
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]+")
# No longer than a number of a device: a user's own text of thousands of digits is none, and int() refuses it.
_NUMBERS = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class UnreadableError(Exception):
    """No process of the job lets its environment be read (root, or the job's own user, may)."""


def refs(group: JobGroup, job: str, procfs: Path) -> tuple[Ref, ...]:
    """The devices that the processes of a job name; () where none does. Raises UnreadableError."""
    of_job: dict[Ref, None] = {}
    of_steps: dict[Ref, None] = {}
    denied = readable = False
    for step, pids in list(steps(group))[:_STEPS]:
        for pid in pids[:_PIDS_PER_STEP]:
            try:
                told = _environment(procfs / str(pid) / "environ")
            except PermissionError:
                denied = True
                continue
            except OSError:  # it ended meanwhile
                continue
            readable = True
            if told.get("SLURM_JOB_ID", job) != job and group.numbered:
                continue  # handed on from another job
            whole, part = _named(step, told)
            of_job.update(dict.fromkeys(whole))
            of_steps.update(dict.fromkeys(part))
    if denied and not readable:
        raise UnreadableError
    return tuple(of_job or of_steps)


def devices(text: str) -> tuple[Ref, ...]:
    """Refs of a list as Slurm and prologs write it: numbers, ranges ("0-3"), uuids, between commas or spaces."""
    out: dict[Ref, None] = {}
    for each in re.split(r"[,\s]+", text.strip()):
        if span := _NUMBERS.fullmatch(each):
            first, last = int(span[1]), int(span[2] or span[1])
            out.update({Ref("number", str(number)): None for number in range(first, min(last, first + 255) + 1)})
        elif _UUID.fullmatch(each):
            out[Ref("text", each)] = None
    return tuple(out)


def _named(step: str, told: dict[str, str]) -> tuple[Iterable[Ref], Iterable[Ref]]:
    """(devices of the job on this node, devices of this step)."""
    job_gpus, step_gpus = devices(told.get("SLURM_JOB_GPUS", "")), devices(told.get("SLURM_STEP_GPUS", ""))
    visible = [told.get(name, "") for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")]
    uuids = [ref for text in visible for ref in devices(text) if ref.kind == "text"]
    nodes = told.get("SLURM_JOB_NUM_NODES") or told.get("SLURM_NNODES")
    if step in _OWN_STEPS or (not step_gpus and nodes == "1"):
        return job_gpus, step_gpus or uuids
    return (), step_gpus or uuids


def _environment(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        pairs = [each.partition(b"=") for each in file.read(_MAX_BYTES).split(b"\0")]
    return {
        name.decode(): value.decode(errors="replace")
        for name, _, value in pairs
        if name.decode("ascii", "replace") in _WANTED
    }
