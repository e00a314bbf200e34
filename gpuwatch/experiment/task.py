"""One run as a value that travels to another process, and the function that makes it there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpuwatch.errors import InputError
from gpuwatch.experiment.protocol import PROTOCOLS, Option
from gpuwatch.model.values import value
from gpuwatch.traces.trace_format import JobTrace, read_trace

Cell = tuple[str, str, int]  # workload, policy, seed


@value
class Task:
    """One run. The trace is named, not carried: whoever runs it reads the folder and checks what it found."""

    protocol: str
    folder: str
    workload: str
    digest: str  # of the trace that the asker read
    policy: str
    seed: int
    options: tuple[tuple[str, Option], ...]

    @property
    def cell(self) -> Cell:
        return self.workload, self.policy, self.seed


def tasks_of(
    folder: Path,
    protocol: str,
    workloads: Iterable[str],
    policies: Iterable[str],
    seeds: Iterable[int],
    options: Mapping[str, Option],
) -> tuple[Task, ...]:
    """The tasks by workload, policy and seed, in the order given; options that are not named get their defaults.

    Reads every workload's trace (InputError). An option that the protocol does not take is a KeyError of the caller's.
    """
    defaults = PROTOCOLS.get(protocol).options
    if unknown := options.keys() - defaults.keys():
        raise KeyError(f"{protocol} takes no {', '.join(sorted(unknown))}")
    chosen = tuple(sorted({**defaults, **options}.items()))
    where = str(folder.resolve())  # a worker's own folder is another one
    digests = {workload: _read(where, workload)[1] for workload in workloads}
    policies, seeds = tuple(policies), tuple(seeds)
    return tuple(
        Task(
            protocol=protocol,
            folder=where,
            workload=workload,
            digest=digest,
            policy=policy,
            seed=seed,
            options=chosen,
        )
        for workload, digest in digests.items()
        for policy in policies
        for seed in seeds
    )


def run_task(task: Task) -> Any:
    """The protocol's result. InputError when the folder holds another trace here than where the task was made."""
    trace, digest = _read(task.folder, task.workload)
    if digest != task.digest:
        raise InputError(
            f"{task.folder} does not hold the same {task.workload} list everywhere",
            tried=f"reading it where the replay runs ({digest}; asked for {task.digest})",
            todo="give every worker the same files under the same path, and the same release of gpuwatch",
        )
    return PROTOCOLS.get(task.protocol).run(trace, task.policy, task.seed, dict(task.options))


def trace_digest(trace: JobTrace) -> str:
    """A short name of the trace's content: the same nodes and jobs, in the same order, give the same one."""
    return hashlib.sha256(repr(trace).encode()).hexdigest()[:16]


@lru_cache(maxsize=2)  # tasks come workload by workload
def _read(folder: str, workload: str) -> tuple[JobTrace, str]:
    trace = read_trace(Path(folder), workload)
    return trace, trace_digest(trace)
