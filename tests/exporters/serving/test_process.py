"""The exporter as a process: signals, its end, one cycle and out, and options from outside."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.exporters.serving.harness import SOON, child
from tests.exporters.serving.tiny import PAGE
from tests.servers import get, wait_for

pytestmark = pytest.mark.server
TINY = [sys.executable, "-m", "tests.exporters.serving.tiny"]


def once(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*TINY, "--page", str(folder / "page"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_cleanly_and_at_once(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "tiny.prom"
    with child(tmp_path, "--textfile", str(file), "--interval", "60") as made:
        wait_for("the page", lambda: "tiny_ratio" in get(made.url + "/metrics")[1], every=SOON)
        began = time.monotonic()
        made.process.send_signal(number)
        assert made.process.wait(5) == 0
        assert time.monotonic() - began < 2
        assert not file.exists()
        assert "Traceback" not in made.said()


@pytest.mark.parametrize("text", ["hang", "hang close"])
def test_a_stop_signal_ends_it_within_five_seconds_although_a_call_hangs(tmp_path: Path, text: str) -> None:
    with child(tmp_path, first=text) as made:
        assert get(made.url + "/-/healthy")[0] == 200
        began = time.monotonic()
        made.process.send_signal(signal.SIGTERM)
        assert made.process.wait(6) == 0
        assert time.monotonic() - began < 5
        assert "something hangs" in made.said()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with child(tmp_path, first="hang close") as made:
        made.process.send_signal(signal.SIGTERM)
        wait_for("the stop", lambda: "stopping" in made.said(), every=SOON)
        wait_for(
            "the end", lambda: made.process.poll() is not None or made.process.send_signal(signal.SIGTERM), every=0.2
        )
        assert made.process.returncode == 128 + signal.SIGTERM


def test_release_and_resume_by_signal_and_the_web_configuration_by_another(tmp_path: Path) -> None:
    web = tmp_path / "web.yml"
    web.write_text("")
    with child(tmp_path, "--interval", "60", "--web.config.file", str(web)) as made:
        page = f"{made.url}/metrics"
        wait_for("values", lambda: "tiny_ratio" in get(page)[1], every=SOON)
        made.process.send_signal(signal.SIGUSR1)
        wait_for("the release", lambda: "# released" in get(page)[1], seconds=5, every=SOON)
        made.process.send_signal(signal.SIGUSR2)
        wait_for("values again", lambda: "tiny_ratio" in get(page)[1], seconds=5, every=SOON)
        web.write_text("nonsense: true\n")
        made.process.send_signal(signal.SIGHUP)
        wait_for("the refusal", lambda: "web configuration not taken" in made.said(), seconds=5, every=SOON)
        assert "release: released" in made.said()
        assert made.process.poll() is None


def test_systemd_hears_that_it_is_ready_and_that_it_lives(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(10)
        variables = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
        with child(tmp_path, **variables) as made:
            heard = [sock.recv(1000) for _ in range(4)]
            assert {b"READY=1", b"STATUS=collecting", b"WATCHDOG=1"} <= set(heard)
            made.process.send_signal(signal.SIGTERM)
            while sock.recv(1000) != b"STOPPING=1":
                pass
            assert made.process.wait(5) == 0


def test_once_prints_one_page_and_ends(tmp_path: Path) -> None:
    (tmp_path / "page").write_text(PAGE)
    done = once(tmp_path, "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(PAGE)
    assert 'gpuwatch_exporter_cycles_total{exporter="tiny"} 1\n' in done.stdout


def test_once_writes_the_file_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "page").write_text(PAGE)
    done = once(tmp_path, "--once", "--textfile", str(tmp_path / "tiny.prom"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "tiny_ratio" in (tmp_path / "tiny.prom").read_text()


@pytest.mark.parametrize("interval", ["0.1"])
def test_once_tells_a_failed_cycle_and_leaves_a_file_without_values(tmp_path: Path, interval: str) -> None:
    file = tmp_path / "tiny.prom"
    file.write_text("old_ratio 1\n")
    done = once(tmp_path, "--once", "--textfile", str(file), "--interval", interval)
    assert done.returncode == 1
    assert "no page" in done.stderr
    assert "old_ratio" not in file.read_text()
    assert 'gpuwatch_exporter_cycle_failures_total{exporter="tiny"} 1\n' in file.read_text()


def test_options_come_from_file_and_environment_and_faults_are_three_lines(tmp_path: Path) -> None:
    (tmp_path / "page").write_text(PAGE)
    config = tmp_path / "tiny.toml"
    config.write_text("once = true\ninterval = 7\n")
    done = once(tmp_path, "--config", str(config), GPUWATCH_EXPORTER_INTERVAL="8")
    assert 'gpuwatch_exporter_interval_seconds{exporter="tiny"} 8\n' in done.stdout
    (tmp_path / "web.yml").write_text("tls: {}")
    done = once(tmp_path, "--web.config.file", str(tmp_path / "web.yml"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_program_that_the_exporter_starts_inherits_no_blocked_signal(tmp_path: Path) -> None:
    with child(tmp_path, first="mask") as made:
        text = wait_for("the page", lambda: re.search(r"SigBlk:\s+(\w+)", get(made.url + "/metrics")[1]), every=SOON)[1]
        assert int(text, 16) == 0
