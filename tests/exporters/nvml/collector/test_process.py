"""The exporter as a process of its own: on a node without a driver, released, stuck, without rights."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.exporters.nvml.collector.node import Node
from tests.servers import EXPORTER, get, running, wait_for

pytestmark = pytest.mark.server
ALL = ("--holders", "none", "--kernel-log", "/dev/null", "--log-level", "debug")


def sample(page: str, name: str, *texts: str) -> float | None:
    """The first sample of the family whose labels hold all these texts."""
    for line in page.splitlines():
        if re.match(rf"{name}[{{ ]", line) and all(text in line for text in texts):
            return float(line.rpartition(" ")[2])
    return None


@contextmanager
def served(node: Node, log: Path, *more: str, command: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """(address, pid) of an exporter at work on the node."""
    told = node.command(command or EXPORTER, "nvml", "--listen", "127.0.0.1:0", *ALL, *more)

    def address() -> str:
        found = re.search(r"127\.0\.0\.1:\d+", log.read_text())
        return f"http://{found[0]}" if found else ""

    with running(told, log, lambda: address() and get(f"{address()}/-/ready")[0] == 200) as process:
        yield address(), process.pid


def once(environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [*EXPORTER, "nvml", *ALL, "--path.sysfs", "/nowhere", "--path.procfs", "/nowhere", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def without_driver() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}


def test_without_a_library_it_runs_and_says_so() -> None:
    done = once(without_driver(), "--once")
    assert done.returncode == 0
    assert sample(done.stdout, "gpuwatch_exporter_nvml_available") == 0
    assert sample(done.stdout, "gpuwatch_exporter_nvml_unavailable_info", "library_not_found") == 1
    assert sample(done.stdout, "gpuwatch_gpus_expected") == 0


def test_who_wants_an_exit_without_a_gpu_gets_it() -> None:
    done = once(without_driver(), "--exit-when-no-gpu", "7")
    assert done.returncode == 7
    assert "library_not_found" in done.stderr


def device_files(pid: int) -> list[str]:
    """The process's open files that are device files of GPUs."""
    links = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(each))
        except FileNotFoundError:
            continue
    return [link for link in links if re.fullmatch(r"nvidia(\d+|ctl)", os.path.basename(link))]


def post(url: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=20) as answer:
        return str(answer.read().decode())


def test_released_it_holds_no_device_file_and_is_still_scraped(node: Node, tmp_path: Path) -> None:
    node.say("gpus 2")
    with served(node, tmp_path / "log", "--interval", "0.5") as (address, pid):
        assert len(device_files(pid)) >= 3
        assert "released" in post(f"{address}/-/release")
        assert device_files(pid) == []

        def released() -> bool:
            page = get(f"{address}/metrics")[1]
            return sample(page, "gpuwatch_exporter_collecting") == 0

        wait_for("collecting 0", released, 10)
        page = get(f"{address}/metrics")[1]
        assert sample(page, "gpuwatch_exporter_open_device_files") == 0
        assert sample(page, "gpuwatch_gpu_down_info", 'gpu="1"', 'reason="released"') == 1
        assert sample(page, "gpuwatch_gpu_up", 'gpu="1"') == 0
        os.kill(pid, signal.SIGUSR2)
        wait_for("up", lambda: sample(get(f"{address}/metrics")[1], "gpuwatch_gpu_up", 'gpu="1"') == 1, 10)


def test_it_ends_though_a_call_hangs(node: Node, tmp_path: Path) -> None:
    node.say("gpus 2", "hang 1")
    with served(node, tmp_path / "log", "--interval", "1", "--device-timeout", "0.3") as (address, pid):
        page = get(f"{address}/metrics")[1]
        assert sample(page, "gpuwatch_gpu_up", 'gpu="0"') == 1
        began = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        wait_for("the end", lambda: not _alive(pid), 10, every=0.02)
        assert time.monotonic() - began < 5


def test_a_plain_user_reads_the_devices(node: Node, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("the whole run is a plain user's")
    node.say("gpus 2")
    node.open_to_all()
    # The checkout may be in a folder that is closed to others: what it has is read before the rights are given up.
    become = (
        "import argparse, os, sys, encodings.idna; import gpuwatch_exporters.nvml.command as c;"
        "parser = argparse.ArgumentParser(); c.add_arguments(parser); options = parser.parse_args(sys.argv[2:]);"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534); sys.exit(c.run(options))"
    )
    with served(node, tmp_path / "log", command=(sys.executable, "-c", become)) as (address, _):
        page = get(f"{address}/metrics")[1]
        assert sample(page, "gpuwatch_gpu_up", 'gpu="1"') == 1
        assert sample(page, "gpuwatch_gpu_utilization_ratio", 'gpu="1"') is not None


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False
