"""The reader of the kernel log, on a plain file and on a pipe in its place."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gpuwatch_exporters.device.families import xid as of
from gpuwatch_exporters.nvml.xid.book import XidBook
from gpuwatch_exporters.nvml.xid.kernel_log import KernelLog

from tests.servers import wait_for

GPU = "0000:18:00.0"
NOW = 1_800_000_000.0


def xid(code: int, uptime: float = 1.0, place: str = "0000:18:00") -> str:
    return f"4,7,{int(uptime * 1e6)},-;NVRM: Xid (PCI:{place}): {code}, pid=1, name=x\n SUBSYSTEM=pci\n"


@pytest.fixture
def book() -> XidBook:
    return XidBook()


@pytest.fixture
def reading(book: XidBook, tmp_path: Path) -> Iterator[KernelLog]:
    log = KernelLog(book, tmp_path / "kmsg", now=lambda: NOW)
    yield log
    log.stop()


def counts(book: XidBook, pci: str = GPU) -> dict[str, float]:
    return {each.labels[0]: each.number for each in book.values(pci) if each.family is of.XID_ERRORS}


def times(book: XidBook, pci: str = GPU) -> dict[str, float]:
    return {each.labels[0]: each.number for each in book.values(pci) if each.family is of.XID_LAST}


def start(log: KernelLog, lines: int) -> None:
    log.start()
    wait_for(f"{lines} lines", lambda: log.lines >= lines, every=0.01)


def test_what_was_logged_before_the_start_is_counted_at_its_own_time(
    reading: KernelLog, book: XidBook, tmp_path: Path
) -> None:
    uptime = time.monotonic()
    (tmp_path / "kmsg").write_text("".join(xid(code, uptime - 50) for code in (31, 31, 62, 79, 119, 120)))
    start(reading, 6)
    assert counts(book) == {"119": 1, "120": 1, "31": 2, "62": 1, "79": 1}
    assert times(book)["79"] == pytest.approx(NOW - 50, abs=5)


def test_what_comes_later_is_counted_at_the_time_it_comes(reading: KernelLog, book: XidBook, tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text(xid(31, 3.0))
    start(reading, 1)
    wait_for("the end of the file", lambda: _waits(), every=0.01)
    with path.open("a") as more:
        more.write(xid(31, 4.0))
    wait_for("the second line", lambda: counts(book) == {"31": 2}, every=0.01)
    assert times(book) == {"31": NOW}  # the log's own clock drifts


def _waits() -> bool:
    """Whether the thread sits in poll: its frame is in _follow and no read is going on."""
    thread = next(each for each in threading.enumerate() if each.name == "kernel-log")
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == "_follow" and bool(frame.f_locals.get("live"))


def test_a_lost_gpu_with_a_line_only_is_counted_where_it_sat(reading: KernelLog, book: XidBook, tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text(xid(79, place="0000:3b:00"))
    start(reading, 1)
    assert counts(book, "0000:3b:00.0") == {"79": 1}
    assert counts(book) == {}
    [unknown] = [each for each in book.node_values({GPU}) if each.family is of.UNIDENTIFIED_XIDS]
    assert unknown.labels == ("0000:3b:00.0", "79")
    assert not [each for each in book.node_values({"0000:3b:00.0"}) if each.family is of.UNIDENTIFIED_XIDS]


def test_other_faults_have_counters_of_their_own(reading: KernelLog, book: XidBook, tmp_path: Path) -> None:
    lines = (
        "4,1,1,-;NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.\n"
        "4,1,1,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 3 LTSSM Fault Up\n"
    )
    (tmp_path / "kmsg").write_text(lines)
    start(reading, 2)
    [fallen] = [each for each in book.values(GPU) if each.family is of.LOG_ERRORS]
    assert fallen.labels == ("fallen_off_bus",)
    [switch] = book.node_values({GPU})
    assert (switch.labels, switch.number) == (("0000:c1:00.0", "20034", "fatal"), 1)
    assert counts(book) == {}


def test_a_storm_is_counted_and_stays_small(reading: KernelLog, book: XidBook, tmp_path: Path) -> None:
    storm = "".join(xid(31 if i % 2 else 1000 + i, i / 1000) for i in range(100_000))
    (tmp_path / "kmsg").write_text(storm)
    began = time.process_time()
    start(reading, 100_000)
    assert time.process_time() - began < 10
    told = counts(book)
    assert sum(told.values()) == 100_000
    assert told["31"] == 50_000
    assert len(told) <= 257  # codes beyond a bound are counted together
    assert told["other"] > 0


def test_a_pipe_in_its_place_is_read_as_it_comes(book: XidBook, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    log = KernelLog(book, pipe, now=lambda: NOW)
    log.start()
    with pipe.open("w") as writer:
        writer.write(xid(94))
        writer.flush()
        wait_for("the line", lambda: counts(book) == {"94": 1}, every=0.01)
    began = time.monotonic()
    log.stop()
    assert time.monotonic() - began < 1
    assert not [each for each in threading.enumerate() if each.name == "kernel-log"]


def test_a_line_in_two_pieces_is_one_line(book: XidBook, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    log = KernelLog(book, pipe, now=lambda: NOW)
    log.start()
    whole = xid(63)
    with pipe.open("w") as writer:
        writer.write(whole[:20])
        writer.flush()
        writer.write(whole[20:])
        writer.flush()
        wait_for("the line", lambda: counts(book) == {"63": 1}, every=0.01)
    log.stop()


def test_without_the_right_to_read_it_the_feature_is_off(book: XidBook, tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text(xid(79))
    path.chmod(0)
    log = KernelLog(book, path)
    with nobody():
        log.start()
    assert log.reason == "no_permission"
    assert log.values() == []
    log.stop()


@contextmanager
def nobody() -> Iterator[None]:
    """Without root's rights, which would open anything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_log_that_breaks_off_says_so(book: XidBook, tmp_path: Path) -> None:
    log = KernelLog(book, tmp_path)  # a folder can be opened and not read
    log.start()
    wait_for("a reason", lambda: log.reason, every=0.01)
    assert log.reason == "eisdir"
    log.stop()


def test_no_kernel_log_at_all(book: XidBook, tmp_path: Path) -> None:
    log = KernelLog(book, tmp_path / "none")
    log.start()
    assert log.reason == "not_found"
    log.stop()


def test_a_log_that_cannot_be_read_is_told_once_and_tried_with_each_cycle(
    book: XidBook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = KernelLog(book, tmp_path / "kmsg")
    for _ in range(3):
        log.start()
    assert len(caplog.records) == 1
    (tmp_path / "kmsg").write_text("")
    log.start()
    try:
        assert log.reason == ""
    finally:
        log.stop()


def test_after_a_stop_it_does_not_count_the_same_lines_again(reading: KernelLog, book: XidBook, tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text(xid(31))
    start(reading, 1)
    reading.stop()
    reading.start()
    assert reading.reason == "stopped"
    assert counts(book) == {"31": 1}
