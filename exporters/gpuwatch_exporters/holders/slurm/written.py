"""What prologs write for monitoring: a folder of files named by job, or one of files named by GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gpuwatch_exporters.holders.holding import LookError, Ref
from gpuwatch_exporters.holders.slurm.environment import devices

_MAX_BYTES, _MAX_FILES = 4096, 4096
_JOB = re.compile(r"\d[\d_+.]*")
_MIG = re.compile(r"([0-9]+)[.:]([0-9]+)")


def by_job(folder: Path | None) -> dict[str, tuple[Ref, ...]]:
    """job -> devices, of files named by job that hold numbers or uuids. {} without a folder. Raises LookError."""
    return {name: devices(text) for name, text in _files(folder) if _JOB.fullmatch(name)}


def by_device(folder: Path | None) -> dict[str, tuple[Ref, ...]]:
    """job -> devices, of files named by GPU ("0", "GPU-...", "MIG-...", "0.3" for a MIG instance by its id) whose
    lines begin with a job. Raises LookError.
    """
    found: dict[str, list[Ref]] = {}
    for name, text in _files(folder):
        mig = _MIG.fullmatch(name)
        refs = (Ref("mig", f"{mig[1]}/{mig[2]}/0"),) if mig else devices(name)
        if len(refs) != 1:  # no file of a GPU: one that is being written, an editor's copy
            continue
        for line in text.splitlines():
            job = line.split()[0] if line.strip() else ""
            if _JOB.fullmatch(job):
                found.setdefault(job, []).extend(refs)
    return {job: tuple(refs) for job, refs in found.items()}


def _files(folder: Path | None) -> Iterator[tuple[str, str]]:
    if folder is None:
        return
    try:
        paths = sorted(folder.iterdir())[:_MAX_FILES]
    except FileNotFoundError:
        return  # the first job's prolog makes it
    except OSError as err:
        raise LookError("job_dir_unreadable", f"{folder} cannot be read: {err.strerror}") from None
    for path in paths:
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                yield path.name, file.read(_MAX_BYTES)
        except OSError:  # removed by an epilog meanwhile, or a folder
            continue
