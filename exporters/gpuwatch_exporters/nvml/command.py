"""Options of `gpuwatch-exporter nvml`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.device.options import (
    add_device_arguments,
    check_device_options,
    check_known,
    forget_seconds,
)
from gpuwatch_exporters.holders import add_holder_arguments, holder_settings
from gpuwatch_exporters.nvml.collector import Collector
from gpuwatch_exporters.nvml.exporter import NvmlExporter
from gpuwatch_exporters.nvml.group import GROUPS
from gpuwatch_exporters.nvml.settings import Settings
from gpuwatch_exporters.nvml.xid.xids import EVENTS, KERNEL_LOG, KERNEL_LOG_PATH
from gpuwatch_exporters.serving import add_serving_arguments
from gpuwatch_exporters.serving import run as serve

ALL = "all"
LARGEST_CODE = 255
DEVICE_SECONDS = 0.8
FIRST_CYCLE_SECONDS = 20.0  # with --once there is no second cycle that could tell what a slow driver tells late


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this exporter, of who holds the devices, and of serving."""
    group = parser.add_argument_group("what is read")
    add_device_arguments(group, "nvml.json")
    group.add_argument(
        "--device-timeout", type=float, metavar="SECONDS",
        help="how long a cycle waits for the devices; one that takes longer is down in it "
        f"(default {DEVICE_SECONDS}, or most of a shorter interval)",
    )  # fmt: skip
    group.add_argument(
        "--enable", action="append", default=[], metavar="FEATURE",
        help="a detail that is read too, with a series for each link, engine or memory; may be repeated. "
        f"One of: {', '.join(_details())}, all",
    )  # fmt: skip
    group.add_argument(
        "--disable", action="append", default=[], metavar="FEATURE",
        help=f"a feature that is not read; may be repeated. One of: {', '.join(_features())}",
    )  # fmt: skip
    group.add_argument(
        "--expected-gpus", default="pci", metavar="COUNT",
        help="pci: the GPUs on the node's bus and those that were here before; visible: those that NVML lists and "
        "those that were here before, for a container that is given only some of the node's (it does not see which "
        "of them sleep); or a number (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--process-memory", type=int, default=0, metavar="NUMBER",
        help="also tell the memory of each process, of so many of each device, the largest (default %(default)s: none, "
        "since each process is a new series)",
    )  # fmt: skip
    group.add_argument("--path.procfs", type=Path, default=Path("/proc"), metavar="DIR", help="default %(default)s")
    group.add_argument(
        "--kernel-log", type=Path, default=KERNEL_LOG_PATH, metavar="FILE",
        help="the kernel's log, the second witness of XID errors; reading it needs a right (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--exit-when-no-gpu", type=int, metavar="CODE",
        help="end with this code when at the start there is no driver or no GPU (default: run, and say so)",
    )  # fmt: skip
    add_holder_arguments(parser)
    add_serving_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Serves until told to stop. SettingsError for options that make no sense."""
    settings = settings_of(options)
    if options.exit_when_no_gpu is not None and (why := _no_gpu(settings)):
        print(f"error: there is no GPU to read\ntried: opening NVML: {why}", file=sys.stderr)
        return int(options.exit_when_no_gpu)
    return serve(NvmlExporter(settings, holder_settings(options)), options)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of parsed options. SettingsError for an unknown name or a time that is no time."""
    named = vars(options)
    check_known("--enable", options.enable, [*_details(), ALL])
    check_known("--disable", options.disable, _features())
    check_device_options(options)
    timeout = options.device_timeout
    if timeout is None:
        timeout = min(DEVICE_SECONDS, DEVICE_SECONDS * options.interval)
    if not 0 < timeout <= options.interval:
        raise SettingsError(f"--device-timeout {timeout:g} is not above 0 and within --interval {options.interval:g}")
    code = options.exit_when_no_gpu
    if code is not None and not 0 <= code <= LARGEST_CODE:
        raise SettingsError(f"--exit-when-no-gpu {code} is no exit code", todo=f"give 0 to {LARGEST_CODE}")
    if options.process_memory < 0:
        raise SettingsError(f"--process-memory {options.process_memory} is below 0", todo="0 means none")
    return Settings(
        node=options.node_name,
        interval=options.interval,
        device_timeout=FIRST_CYCLE_SECONDS if options.once else timeout,
        disabled=frozenset(options.disable).union(_left_out(options.enable)),
        compats=tuple(dict.fromkeys(options.compat)),
        sysfs=Path(named["path.sysfs"]),
        procfs=Path(named["path.procfs"]),
        kernel_log=options.kernel_log,
        state_file=options.state_file,
        forget_seconds=forget_seconds(options),
        process_memory=options.process_memory,
        whole_node=options.expected_gpus != "visible",
        expected_gpus=_number_of_gpus(options.expected_gpus),
    )


def _number_of_gpus(text: str) -> int | None:
    if text in ("pci", "visible"):
        return None
    if not (text.isascii() and text.isdecimal()):
        raise SettingsError(f"--expected-gpus {text} is no number of GPUs", todo="give pci, visible or a number")
    return int(text)


def _details() -> list[str]:
    return [name for name, group in GROUPS.items() if group.detail]


def _left_out(enabled: list[str]) -> list[str]:
    """Details that nobody asked for."""
    return [] if ALL in enabled else [name for name in _details() if name not in enabled]


def _features() -> list[str]:
    return sorted((*GROUPS.ids(), EVENTS, KERNEL_LOG))


def _no_gpu(settings: Settings) -> str:
    """Why there is nothing to read; "" when there is a GPU."""
    collector = Collector(replace(settings, device_timeout=FIRST_CYCLE_SECONDS))
    try:
        frame = collector.collect()
        why = collector.unavailable
    finally:
        collector.close()
    return why or ("" if frame.devices else "the driver lists none")
