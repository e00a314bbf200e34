"""Calls as they go wrong: late, refused, half an answer, nothing to ask; and how often one may ask."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from gpuwatch_exporters.slurm.ask.commands import Commands, quiet_environment
from gpuwatch_exporters.slurm.ask.pace import MOST_BACKOFF_SECONDS, Pace
from gpuwatch_exporters.slurm.exporter import Settings, SlurmExporter

from gpuwatch.clock import FixedClock
from tests.exporters.slurm.page import Page
from tests.exporters.slurm.programs import UNREACHABLE, slurm_programs, write
from tests.exporters.slurm.situation import NOW
from tests.servers import wait_for

pytestmark = pytest.mark.server
VALUES = ("nodes", "gpus_installed", "jobs", "partition_up", "reservation_active")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(datetime.fromtimestamp(NOW, UTC))


def exporter_of(folder: Path, clock: FixedClock | None = None, **settings: object) -> SlurmExporter:
    return SlurmExporter(Commands(folder), Settings(**settings), clock)  # type: ignore[arg-type]


def failures(page: Page) -> dict[tuple[str, str], float]:
    return {
        (dict(labels)["command"], dict(labels)["reason"]): value
        for (name, labels), value in page.samples.items()
        if name == "call_failures_total" and value
    }


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    write(tmp_path, "scontrol", f"sleep 60 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    page = Page(exporter_of(tmp_path, timeout_seconds=0.4).cycle())
    assert time.monotonic() - began < 1.5
    assert failures(page) == {("nodes", "timeout"): 1}
    assert page.get("up") == 0
    assert not page.names() & set(VALUES)
    child = int((tmp_path / "child").read_text())
    wait_for("the end of the child", lambda: not _runs(child), seconds=5, every=0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"echo '{UNREACHABLE}' >&2; exit 1", "unreachable"),
        ("echo 'slurm_load_jobs error: Access/permission denied' >&2; exit 1", "not_allowed"),
        ("echo broken >&2; exit 3", "exit_status"),
        ("echo 'squeue: broken'", "not_json"),
        ("echo '{\"jobs\": [{]}'", "not_json"),
        ("echo '{\"others\": []}'", "bad_answer"),
        ('echo \'{"jobs": [], "errors": [{"error": "no"}]}\'', "told_error"),
        (f'echo \'{{"jobs": [], "errors": [{{"error": "{UNREACHABLE}"}}]}}\'', "unreachable"),
        ("exec true", "not_json"),
        ("echo '{[1]: 2}'", "not_json"),
        ("printf '\\377\\376'", "not_json"),
        ("echo '{\"jobs\": '; yes '[' | head -n 100000", "not_json"),
        ('echo \'{"jobs": [], "errors": "all of it"}\'', "told_error"),
    ],
)
def test_a_call_that_fails_is_counted_by_reason_and_takes_its_own_values_only(
    body: str, reason: str, tmp_path: Path
) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    write(tmp_path, "squeue", body)
    exporter = exporter_of(tmp_path)
    page = Page(exporter.cycle())
    assert failures(page) == {("jobs", reason): 1}
    assert page.get("call_up", command="jobs") == 0
    assert page.get("up") == 0
    assert "jobs" not in page.names()
    silent = reason == "unreachable"
    assert ("gpus_installed" in page.names()) is not silent
    assert ("partition_up" in page.names()) is not silent
    assert any("jobs fail" in note for note in exporter.notes())


@pytest.mark.parametrize("meta", ['"x"', "[1]", '{"plugin": [1], "slurm": 3}', '{"slurm": {"cluster": 7}}'])
def test_meta_data_of_another_form_takes_no_values_with_it(meta: str, tmp_path: Path) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    write(tmp_path, "squeue", f'echo \'{{"jobs": [], "meta": {meta}}}\'')
    page = Page(exporter_of(tmp_path).cycle())
    assert page.get("up") == 1
    assert page.get("gpus_installed", gpu_type="h100") == 48


def test_programs_that_are_not_installed(tmp_path: Path) -> None:
    exporter = exporter_of(tmp_path)
    page = Page(exporter.cycle())
    assert failures(page)["nodes", "not_installed"] == 1
    assert any("--slurm-bin" in note for note in exporter.notes())
    assert page.get("up") == 0


def test_a_release_without_json(tmp_path: Path) -> None:
    for name in ("scontrol", "squeue", "sinfo"):
        write(tmp_path, name, "echo \"x: unrecognized option '--json'\" >&2; exit 1")
    page = Page(exporter_of(tmp_path).cycle())
    assert {command for command, reason in failures(page) if reason == "bad_answer"} >= {"nodes"}


def test_a_call_is_not_made_before_its_floor_and_its_values_are_served_meanwhile(
    tmp_path: Path, clock: FixedClock
) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    exporter = exporter_of(tmp_path, clock, min_call_seconds=30)
    exporter.cycle()
    clock.advance(29)
    page = Page(exporter.cycle())
    assert page.get("calls_total", command="nodes") == 1
    assert page.get("gpus_installed", gpu_type="h100") == 48
    assert page.get("call_last_success_timestamp_seconds", command="nodes") == NOW
    assert page.get("pending_oldest_eligible_age_seconds", partition="batch") == 3629
    clock.advance(1)
    page = Page(exporter.cycle())
    assert page.get("calls_total", command="nodes") == page.get("calls_total", command="jobs") == 2
    assert page.get("calls_total", command="partitions") == 1  # those change by hand
    clock.advance(30)
    assert Page(exporter.cycle()).get("calls_total", command="partitions") == 2


def test_values_go_when_a_call_fails_and_come_back_with_it(tmp_path: Path, clock: FixedClock) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    exporter = exporter_of(tmp_path, clock, min_call_seconds=1)
    assert set(VALUES) <= Page(exporter.cycle()).names()
    write(tmp_path, "scontrol", f"echo '{UNREACHABLE}' >&2; exit 1")
    for _ in range(3):
        clock.advance(10)
        page = Page(exporter.cycle())
        assert not page.names() & set(VALUES)
        assert page.get("calls_total", command="jobs") == 1  # nothing else is asked of a silent controller
    assert page.get("call_backoff_seconds", command="nodes") == 10
    slurm_programs(tmp_path, "v0.0.42")
    clock.advance(5)
    assert not Page(exporter.cycle()).names() & set(VALUES)  # backs off still
    clock.advance(5)
    page = Page(exporter.cycle())
    assert set(VALUES) <= page.names()
    assert page.get("up") == 1
    assert page.get("call_backoff_seconds", command="nodes") == 0
    assert failures(page) == {("nodes", "unreachable"): 3}


def test_a_failure_of_one_call_takes_what_it_told_before(tmp_path: Path, clock: FixedClock) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    exporter = exporter_of(tmp_path, clock, min_call_seconds=1)
    assert "jobs" in Page(exporter.cycle()).names()
    write(tmp_path, "squeue", "exit 3")
    clock.advance(1)
    page = Page(exporter.cycle())
    assert "jobs" not in page.names()
    assert "account_jobs" not in page.names()
    assert "gpus_installed" in page.names()
    assert page.get("call_last_success_timestamp_seconds", command="jobs") == NOW


def test_the_backoff_grows_to_its_limit_and_ends_with_a_success() -> None:
    pace = Pace(floor_seconds=2)
    waits = []
    for _ in range(12):
        pace.called(0)
        pace.ended(False)
        waits.append(pace.wait_seconds())
    assert waits[:5] == [2, 5, 10, 20, 40]
    assert waits[-1] == MOST_BACKOFF_SECONDS
    assert not pace.due(299)
    assert pace.due(300)
    pace.ended(True)
    assert pace.wait_seconds() == 2


def test_calls_left_out_are_not_made(tmp_path: Path) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    exporter = exporter_of(tmp_path, without=("partitions", "reservations"))
    page = Page(exporter.cycle())
    assert {dict(labels)["command"] for name, labels in page.samples if name == "calls_total"} == {"nodes", "jobs"}
    assert page.get("up") == 1
    assert any("reservations are not asked" in note for note in exporter.notes())


def test_nothing_of_the_caller_filters_the_answers() -> None:
    heard = {"SQUEUE_STATES": "RUNNING", "SINFO_FORMAT": "%n", "SLURM_TIME_FORMAT": "relative"}
    quiet = quiet_environment({**heard, "SLURM_CONF": "/x", "PATH": "/bin"})
    assert quiet == {"SLURM_CONF": "/x", "PATH": "/bin", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C"}


def test_closing_ends_the_command_that_runs(tmp_path: Path) -> None:
    write(tmp_path, "scontrol", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    exporter = exporter_of(tmp_path, timeout_seconds=30)
    thread = threading.Thread(target=exporter.cycle, daemon=True)
    thread.start()
    wait_for("the command", lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), every=0.02)
    exporter.close()
    thread.join(5)
    assert not thread.is_alive()


def test_an_exporter_leaves_no_file_open(tmp_path: Path) -> None:
    slurm_programs(tmp_path, "v0.0.42")
    exporter = exporter_of(tmp_path, min_call_seconds=0.001)
    exporter.cycle()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        exporter.cycle()
    assert len(os.listdir("/proc/self/fd")) == before
