"""The program in service: values over HTTP, and scrapes that do not wait for a Slurm that hangs."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from tests.exporters.slurm.page import Page
from tests.exporters.slurm.programs import slurm_programs, write
from tests.servers import EXPORTER, get, running, wait_for

pytestmark = pytest.mark.server


def test_a_slurm_that_hangs_delays_neither_a_scrape_nor_the_end(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    slurm_programs(programs, "v0.0.42")
    log = tmp_path / "log"
    options = ["--interval", "0.3", "--min-call-seconds", "0.1", "--timeout", "60", "--slurm-bin", str(programs)]
    command = [*EXPORTER, "slurm", "--listen", "127.0.0.1:0", *options]
    with running(command, log, lambda: _address(log)) as process:
        url = f"http://{_address(log)}/metrics"

        def values() -> Page:
            return Page(get(url)[1])

        wait_for("the values", lambda: values().get("gpus_installed", gpu_type="h100") == 48, every=0.05)
        write(programs, "scontrol", f"echo $$ > {tmp_path}/pid; exec sleep 60")
        hanging = wait_for("the call", lambda: int((tmp_path / "pid").read_text()), every=0.05)
        began = time.monotonic()
        status, _ = get(url)
        assert time.monotonic() - began < 1
        assert status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(6) == 0
        assert time.monotonic() - began < 6
        wait_for("the end of the command", lambda: not _runs(hanging), seconds=5, every=0.05)


def _address(log: Path) -> str:
    found = re.search(r"exporter on (\S+:\d+)", log.read_text())
    return found[1] if found else ""


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
