"""Options of the sources of holders, shared by every exporter that knows devices."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import SettingsError

SOURCES = ("podresources", "slurm", "process")
KUBELET_SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")


@dataclass(frozen=True, slots=True)
class HolderSettings:
    """Seconds and paths; see add_holder_arguments."""

    sources: tuple[str, ...] = SOURCES
    kubelet_socket: Path = KUBELET_SOCKET
    kubelet_timeout: float = 2.0
    max_age: float = 60.0
    interval: float = 5.0
    wait: float = 0.3
    cgroupfs: Path = Path("/sys/fs/cgroup")
    procfs: Path = Path("/proc")
    slurm_job_dir: Path | None = None
    gpu_job_dir: Path | None = None


def add_holder_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options; --path.procfs only where the parser has none yet."""
    group = parser.add_argument_group("who holds the devices")
    none = HolderSettings()
    group.add_argument(
        "--holders", default=",".join(SOURCES), metavar="LIST",
        help="sources of holders, between commas, or none (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--pod-resources-socket", type=Path, default=none.kubelet_socket, metavar="PATH",
        help="the kubelet's PodResources socket (default %(default)s)",
    )  # fmt: skip
    _seconds(group, "--pod-resources-timeout", none.kubelet_timeout, "time for one answer of the kubelet")
    _seconds(group, "--pod-map-max-age", none.max_age, "how long the last good answer of a source is used")
    _seconds(group, "--holders-interval", none.interval, "least time between two questions to a source")
    _seconds(group, "--holders-wait", none.wait, "how long a cycle waits for a fresh answer")
    group.add_argument(
        "--slurm-job-dir", type=Path, metavar="DIR",
        help="files written by a prolog: named by job, each with the numbers or uuids of its GPUs",
    )  # fmt: skip
    group.add_argument(
        "--gpu-job-dir", type=Path, metavar="DIR",
        help="files written by a prolog: named by GPU (number or uuid), a job at the start of each line",
    )  # fmt: skip
    group.add_argument("--path.cgroupfs", type=Path, default=none.cgroupfs, metavar="DIR", help="default %(default)s")
    with suppress(argparse.ArgumentError):  # the exporter has declared it
        parser.add_argument("--path.procfs", type=Path, default=none.procfs, metavar="DIR", help="default %(default)s")


def holder_settings(options: argparse.Namespace) -> HolderSettings:
    """The settings of parsed options. Raises SettingsError for a source that does not exist or a time below 0."""
    named = vars(options)
    return HolderSettings(
        sources=_sources(options.holders),
        kubelet_socket=Path(options.pod_resources_socket),
        kubelet_timeout=_positive("--pod-resources-timeout", options.pod_resources_timeout),
        max_age=_positive("--pod-map-max-age", options.pod_map_max_age),
        interval=_positive("--holders-interval", options.holders_interval),
        wait=_positive("--holders-wait", options.holders_wait),
        cgroupfs=Path(named["path.cgroupfs"]),
        procfs=Path(named["path.procfs"]),
        slurm_job_dir=options.slurm_job_dir,
        gpu_job_dir=options.gpu_job_dir,
    )


def _seconds(group: argparse._ArgumentGroup, name: str, default: float, told: str) -> None:
    group.add_argument(name, type=float, default=default, metavar="SECONDS", help=f"{told} (default %(default)s)")


def _positive(name: str, seconds: float) -> float:
    if not 0 <= seconds < 86400:
        raise SettingsError(f"{name} is {seconds:g}", todo="give seconds from 0 to a day")
    return seconds


def _sources(text: str) -> tuple[str, ...]:
    named = [each.strip() for each in text.split(",") if each.strip()]
    if named in ([], ["none"]):
        return ()
    for each in named:
        if each not in SOURCES:
            raise SettingsError(f"no source of holders is called {each!r}", todo=f"choose of: {', '.join(SOURCES)}")
    return tuple(each for each in SOURCES if each in named)
